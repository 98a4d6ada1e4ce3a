"""Each mistake that a person can make in a scenario: where it is, what was given, what would be right."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest

from ringnet.errors import InputError
from ringnet.scenario import load, loads

GOOD = """\
scenario_version: 1
workers: 8
message: 1 KiB
network:
  bandwidth: 50 GB/s
  latency: 5 us
"""


def faults_of(text: str, *overrides: str, **options) -> list[str]:
    with pytest.raises(InputError) as caught:
        loads(textwrap.dedent(text), overrides, file="s.yaml", **options)
    assert caught.value.exit_code == 2
    return [str(fault) for fault in caught.value.faults]


def fault_of(text: str, *overrides: str, **options) -> str:
    (fault,) = faults_of(text, *overrides, **options)
    return fault


def with_key(line: str) -> str:
    """The fault of one more key, in line 7."""
    return fault_of(GOOD + line + "\n").removeprefix("s.yaml:7: ")


def with_network(line: str) -> str:
    """The fault of one more key of the network, in line 7."""
    return fault_of(f"{GOOD}  {line}\n").removeprefix("s.yaml:7: network.")


def with_value(path: str, value: str) -> str:
    """The fault of another value."""
    return fault_of(GOOD, f"{path}={value}").removeprefix(f"--set: {path}: ")


@pytest.mark.parametrize(
    "key", ["workers", "message", "network", "network.bandwidth", "network.latency", "scenario_version"]
)
def test_what_set_takes_out_is_missing_there(key):
    assert fault_of(GOOD, f"{key}=").startswith(f"--set: {key}: the key is missing; right would be: ")


def test_every_mistake_is_told_at_once_in_the_order_of_the_lines():
    text = """\
    scenario_version: 1
    workers: eight
    message: 6.4
    dtpye: float32
    reduce: max
    weights: [1, 3]
    network:
      bandwidth: 50 Gb
      latancy: 5 us
      links: {3->9: {bandwidth: 5 GB/s}}
    worker: {exceptions: {0: {start: soon}}}
    """
    assert [fault.split(";")[0] for fault in faults_of(text)] == [
        "s.yaml:2: workers: a whole number is wanted",
        "s.yaml:3: message: a size needs a unit",
        "s.yaml:4: dtpye: there is no such key",
        "s.yaml:6: weights: the key is never read: max has no weights",
        "s.yaml:8: network.bandwidth: Gb is not a unit of a rate",
        "s.yaml:9: network.latancy: there is no such key",
        "s.yaml:11: worker.exceptions.0.start: this should be a time",
    ]


class TestKeys:
    def test_an_unknown_key(self):
        fault = with_key("colour: red")
        assert fault.startswith("colour: there is no such key; got red; right would be: one of scenario_version, name")

    def test_the_nearest_key_beside_it(self):
        assert with_network("latncy: 1 us") == "latncy: there is no such key; got 1 us; did you mean latency?"
        assert with_key("weigths: [1]") == "weigths: there is no such key; did you mean weights?"

    def test_a_key_in_the_wrong_place(self):
        assert with_key("topology: ring").endswith("got ring; did you mean network.topology?")
        assert with_key("bandwith: 5 GB/s").endswith("got 5 GB/s; did you mean network.bandwidth?")
        assert with_key("strategy: fsdp").endswith("got fsdp; did you mean step.strategy?")
        assert with_key("dies: 2 ms").endswith("did you mean trouble.0.dies?")
        assert "did you mean" not in with_key("precision: 2")
        assert (
            with_network("seed: 3")
            == "seed: there is no such key here; got 3; right would be: seed: 3, at the top of the file"
        )

    def test_what_is_misplaced_is_not_missing_too(self):
        two_hosts = "scenario_version: 1\nmessage: 1 MiB\nnetwork: {machine: dgx-h100, hosts: 2}\n"
        eight = "scenario_version: 1\nmessage: 1 MiB\nnetwork: {workers: 8, bandwidth: 5 GB/s, latency: 1 us}\n"
        there = "there is no such key here"
        assert [fault.split("; got")[0] for fault in faults_of(two_hosts)] == [
            f"s.yaml:3: network.machine: {there}",
            f"s.yaml:3: network.hosts: {there}",
        ]
        assert [fault.split("; got")[0] for fault in faults_of(eight)] == [f"s.yaml:3: network.workers: {there}"]

    def test_a_merge_key_is_no_key(self):
        assert with_key("<<: {seed: 1}").startswith("<<: there is no such key")

    def test_missing_keys_are_told_by_example(self):
        assert faults_of("scenario_version: 1\n") == [
            "s.yaml:1: workers: the key is missing; right would be: workers: 8",
            "s.yaml:1: message: the key is missing; right would be: message: 64 MiB",
            "s.yaml:1: network: the key is missing; right would be: network: {bandwidth: 50 GB/s, latency: 500 ns}",
        ]

    @pytest.mark.parametrize("line", ["network: 50 GB/s", "worker: [eager]", "sweep: 3", "report: all", "network: {}"])
    def test_a_value_where_keys_belong(self, line):
        text = "".join(GOOD.splitlines(keepends=True)[:3]) if line.startswith("network") else GOOD
        key = line.split(":")[0]
        assert f": {key}" in faults_of(text + line)[0]
        assert "right would be" in faults_of(text + line)[0]

    def test_exceptions_of_nothing(self):
        assert with_network("links: {0->1: {}}") == "links.0->1: nothing stands here: leave the key out"

    @pytest.mark.parametrize(
        ("line", "path", "right"),
        [
            ("links: {0-1: {latency: 1 us}}", "links.0-1", "3->4"),
            ("links_of: {0->1: {latency: 1 us}}", "links_of.0->1", "3"),
            ("links_of: {-1: {latency: 1 us}}", "links_of.-1", "3"),
            ("links_of: {01: {latency: 1 us}}", "links_of.01", "3"),
        ],
    )
    def test_keys_of_exceptions_have_a_form(self, line, path, right):
        assert with_network(line).startswith(f"{path}: a key here is ")
        assert with_network(line).endswith(f"right would be: {right}")


class TestVersion:
    def test_missing(self):
        assert fault_of(GOOD.replace("scenario_version: 1\n", "")) == (
            "s.yaml:1: scenario_version: the key is missing; right would be: scenario_version: 1"
        )

    @pytest.mark.parametrize("version", ["2", "0", "true", "1.0.0", '"1"', "[1]"])
    def test_unknown(self, version):
        assert with_value("scenario_version", version).startswith("this ringnet does not know this version")


class TestNumbers:
    @pytest.mark.parametrize("value", ["eight", "true", "8.0", "1e3", '"8"', "[8]", "010", "0x8"])
    def test_workers_are_a_whole_number(self, value):
        assert with_value("workers", value).startswith("a whole number is wanted")

    @pytest.mark.parametrize("value", ["0", "-1", "1048577", "99999999999999999999999"])
    def test_workers_in_range(self, value):
        assert with_value("workers", value) == (
            f"a whole number from 1 to 1,048,576 is wanted; got {value}; right would be: 8"
        )

    @pytest.mark.parametrize("value", ["-1", "0.5", "9223372036854775808"])
    def test_seed(self, value):
        assert with_value("seed", value).startswith("a whole number")

    @pytest.mark.parametrize("value", ["0", "-4", "true", "many"])
    def test_elements(self, value):
        assert with_value("payload.elements", value).endswith("right would be: 16")


class TestQuantities:
    @pytest.mark.parametrize(
        ("path", "value", "right"),
        [
            ("message", "6.5", "something like 64 MiB"),
            ("message", "-1 KiB", "64 MiB"),
            ("message", "64 GB/s", "64 GB"),
            ("message", "64 mB", "64 MB"),
            ("message", "0.5 B", "0 B or 1 B"),
            ("message", "true", "64 MiB"),
            ("message", "[64 MiB]", "64 MiB"),
            ("message", "2 EiB", "something like 64 MiB"),
            ("network.bandwidth", "400G", "400 Gbit/s = 50 GB/s or 400 GB/s"),
            ("network.bandwidth", "50", "50 GB/s"),
            ("network.bandwidth", "0 GB/s", "50 GB/s"),
            ("network.bandwidth", "-5 GB/s", "50 GB/s"),
            ("network.bandwidth", "inf GB/s", "50 GB/s"),
            ("network.bandwidth", ".inf", "50 GB/s"),
            ("network.bandwidth", "nan GB/s", "50 GB/s"),
            ("network.bandwidth", "50 GB", "50 GB/s"),
            ("network.bandwidth", "free", "50 GB/s"),
            ("network.latency", "0", "0 us"),
            ("network.window", "0", "1 MiB"),
            ("network.window", "0.0 mB", "1 MiB"),
            ("network.packet", "0", "4 KiB"),
            ("network.packet", "4", "4 B"),
            ("network.header", "0", "0 B"),
            ("network.header", "some", "something like 64 B"),
            ("network.latency", "-1 us", "something like 500 ns"),
            ("network.latency", "1:30", "something like 500 ns"),
            ("network.latency", "never", "500 ns"),
            ("worker.start", "later", "5 us"),
            ("worker.start", "true", "5 us or never"),
            ("worker.send_overhead", "1", "1 us"),
            ("worker.recv_overhead", "1 KiB", "something like 5 us"),
            ("worker.reduce_rate", "0 GB/s", "50 GB/s"),
            ("worker.exceptions.5.reduce_rate", "fast", "50 GB/s"),
            ("network.links_of.5.bandwidth", "5", "5 GB/s"),
        ],
    )
    def test_refused_with_the_right_form(self, path, value, right):
        fault = with_value(path, value)
        assert right in fault.partition("right would be: ")[2]
        assert value.strip("[]") in fault or value.startswith("[")

    @pytest.mark.parametrize("key", ["burst", "on", "stop"])
    def test_a_zero_that_will_not_do_is_never_called_right(self, key):
        traffic = {"from": "0", "to": "1", "burst": "1 MiB", "rate": "1 GB/s", "on": "1 ms", "off": "1 ms"}
        one = ", ".join(f"{name}: {value}" for name, value in (traffic | {key: "0"}).items())
        with pytest.raises(InputError) as caught:
            loads(GOOD, [f"background=[{{{one}}}]"])
        right = {"burst": "something like 1 MiB"}.get(key, "something like 5 us")
        assert f"background[0].{key}" in str(caught.value)
        assert f"needs a unit; got 0; right would be: {right}" in str(caught.value)

    @pytest.mark.parametrize(
        ("ends", "right"),
        [("from: 0, to: 1 KiB, factor: 2", "from: 1 KiB"), ("from: 0 mB, to: 1 KiB, factor: 2", "64 MiB")],
    )
    def test_nor_is_a_range_told_to_start_by_zero(self, ends, right):
        with pytest.raises(InputError, match=f"right would be: (something like )?{right}"):
            loads(GOOD, [f"sweep={{over: {{message: {{{ends}}}}}}}"])

    def test_a_buffer_beyond_all_memory(self):
        assert with_value("message", "2000 PiB") == (
            "larger than any buffer; got 2000 PiB; right would be: at most 1024 PiB"
        )

    def test_zero_is_fine_where_it_makes_sense(self):
        scenario = loads(GOOD, ["message=0 B", "network.latency=0 s", "worker.send_overhead=0 s"])
        assert (scenario.message_bytes, scenario.network.latency_s) == (0, 0)


class TestNames:
    @pytest.mark.parametrize(
        ("path", "value", "nearest"),
        [
            ("collective", "allreduce", "all-reduce"),
            ("algorithm", "rng", "ring"),
            ("dtype", "float23", "float32"),
            ("reduce", "weigthed-mean", "weighted-mean"),
            ("network.topology", "swich", "switch"),
            ("network.switching", "cut-trough", "cut-through"),
            ("network.sharing", "fif", "fifo"),
            ("worker.sends", "eagre", "eager"),
            ("engine", "event", "events"),
            ("payload", "ful", "full"),
        ],
    )
    def test_the_nearest_name(self, path, value, nearest):
        assert with_value(path, value).startswith("there is no such ")
        assert with_value(path, value).endswith(f"did you mean {nearest}?")

    def test_names_that_are_no_text(self):
        assert "there is no such collective; got 3; right would be: all-gather, " in with_value("collective", "3")
        assert "there is no such payload; right would be: full, none" in with_value("payload", "[full]")

    def test_tables_and_plots(self):
        assert "report.tables[1]: there is no such table; got link" in with_key("report: {tables: [summary, link]}")
        assert "did you mean space-time?" in with_key("report: {plots: [spacetime]}")

    @pytest.mark.parametrize("name", ["5", "''", '"a\\nb"', "[a]", "x" * 201])
    def test_the_name_of_a_scenario_is_one_line(self, name):
        assert "text is wanted" in with_value("name", name)


class TestKeysTogether:
    def test_message_is_whole_elements(self):
        assert fault_of(GOOD, "message=10 B") == (
            "--set: message: not a whole number of float32 elements, 4 bytes each; got 10 B; "
            "right would be: 8 B or 12 B"
        )

    def test_a_link_that_is_not_there(self):
        assert with_network("links: {3->5: {latency: 1 us}}") == (
            "links.3->5: the ring network of 8 workers has no such link; right would be: 0->1, 1->2, 2->3, ...; "
            "did you mean 3->4?"
        )
        assert "the ring network of 1 worker has no such link" in fault_of(
            GOOD, "workers=1", "network.links={0->1: {latency: 1 us}}"
        )

    def test_a_worker_that_is_not_there(self):
        fault = "there is no worker 8 among 8 workers"
        assert fault in with_network("links_of: {8: {latency: 1 us}}")
        assert fault in with_key("worker: {exceptions: {8: {start: never}}}")

    def test_a_node_that_is_not_there(self):
        assert with_network("links_of: {first: {latency: 1 us}}") == (
            "links_of.first: the ring network of 8 workers has no such node; right would be: 0 to 7"
        )
        assert with_network("topology: switch\n  links_of: {swich: {latency: 1 us}}").endswith("did you mean switch?")

    def test_a_link_between_two_workers_with_exceptions(self):
        both = "links_of: {3: {bandwidth: 1 GB/s}, 4: {bandwidth: 2 GB/s}}"
        assert with_network(both) == (
            "links_of.4: links_of.3 says otherwise of link 3->4; right would be: links: {3->4: ...} beside it"
        )
        loads(f"{GOOD}  {both}\n  links: {{3->4: {{bandwidth: 1 GB/s}}}}\n")
        loads(f"{GOOD}  {both.replace('2 GB/s', '1 GB/s')}\n")

    def test_a_mean_of_integers(self):
        assert "s.yaml:7: reduce: a mean of integers" in fault_of(GOOD + "reduce: mean\ndtype: int32\n")

    @pytest.mark.parametrize(
        ("lines", "fault"),
        [
            ("reduce: weighted-mean", "reduce: a weighted mean needs weights"),
            ("{reduce: mean, weights: [1, 3]}", "weights: 2 weights for 8 workers"),
            (
                "{reduce: mean, weights: [1, 1, 1, 1, 1, 1, 1, -1]}",
                "weights[7]: a finite number from zero up",
            ),
            (
                "{reduce: mean, weights: [1, 1, 1, 1, 1, 1, 1, .inf]}",
                "weights[7]: a finite number from zero up",
            ),
            ("{reduce: mean, weights: [1, 1, 1, 1, 1, 1, 1, true]}", "weights[7]: a number is wanted"),
            ("{reduce: mean, weights: [1, 1, 1, 1, 1, 1, 1, 1 GB]}", "weights[7]: a number is wanted"),
            ("{reduce: mean, weights: [0, 0, 0, 0, 0, 0, 0, 0]}", "weights: all weights are zero"),
            ("{reduce: mean, weights: 3}", "weights: a list is wanted"),
        ],
    )
    def test_weights(self, lines, fault):
        keys = lines.strip("{}").replace(", weights", "\nweights")
        assert fault in fault_of(f"{GOOD}{keys}\n")

    def test_states_of_a_large_run(self):
        fault = fault_of(GOOD.replace("1 KiB", "1 MiB") + "report: {tables: [states]}\n")
        assert "report.tables[0]: states of 2,097,152 elements, over all workers, are not for reading" in fault


class TestKeysThatAreNeverRead:
    @pytest.mark.parametrize(
        ("lines", "path", "reason"),
        [
            ("payload: none\nseed: 1", "seed", "no payload is carried"),
            ("payload: none\ndata: ramp", "data", "no payload is carried"),
            ("data: ramp\nseed: 1", "seed", "ramp data has no seed"),
            ("reduce: sum\nweights: [1]", "weights", "sum has no weights"),
            ("collective: all-gather\nreduce: sum", "reduce", "all-gather combines nothing"),
            ("collective: all-gather\nreduce: weighted-mean", "reduce", "all-gather combines nothing"),
            (
                "collective: all-gather\nworker: {reduce_rate: 1 GB/s}",
                "worker.reduce_rate",
                "combines nothing",
            ),
            (
                "collective: all-gather\nworker: {exceptions: {1: {reduce_rate: 1 GB/s}}}",
                "worker.exceptions.1.reduce_rate",
                "combines nothing",
            ),
        ],
    )
    def test_is_a_mistake(self, lines, path, reason):
        fault = fault_of(f"{GOOD}{lines}\n")
        assert f"s.yaml:8: {path}: the key is never read: " in fault
        assert reason in fault

    def test_switching_on_a_ring(self):
        assert with_network("switching: cut-through").startswith(
            "switching: the key is never read: every route of a ring is a single link; got cut-through"
        )
        loads(f"{GOOD}  switching: cut-through\n  topology: switch\n")


class TestFilesOfData:
    @pytest.fixture
    def folder(self, tmp_path):
        inner = tmp_path / "inner"
        inner.mkdir()
        np.save(inner / "good.npy", np.ones((2, 6), np.float32))
        np.save(inner / "short.npy", np.ones(5, np.float32))
        np.save(inner / "double.npy", np.ones(6))
        np.save(inner / "one.npy", np.ones(6, np.float32))
        np.save(inner / "text.npy", np.array(["a", "b"]))
        np.save(inner / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
        np.save(inner / "scalar.npy", np.float32(1))
        np.save(tmp_path / "outside.npy", np.ones((2, 6), np.float32))
        (inner / "link.npy").symlink_to(tmp_path / "outside.npy")
        (inner / "no.npy").write_text("hello")
        (inner / "cut.npy").write_bytes((inner / "good.npy").read_bytes()[:-8])
        return inner

    BASE = "scenario_version: 1\nnetwork: {bandwidth: 1 GB/s, latency: 1 us}\n"

    def faults(self, folder, data, *more):
        return faults_of(f"{self.BASE}data: {data}\n" + "".join(f"{line}\n" for line in more), folder=folder)

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            ("gone.npy", "gone.npy: cannot be read as .npy: No such file"),
            ("no.npy", "no.npy: cannot be read as .npy"),
            ("cut.npy", "cut.npy: cannot be read as .npy: the file is cut short"),
            ("objects.npy", "objects.npy: cannot be read as .npy: it holds Python objects"),
            ("text.npy", "text.npy: cannot be read as .npy: it holds <U1"),
            ("scalar.npy", "scalar.npy: an array of all workers needs a leading worker axis"),
            ("[one.npy, short.npy]", "short.npy does not fit the first; got float32 (5,)"),
            ("[one.npy, double.npy]", "double.npy does not fit the first; got float64 (6,)"),
            ('"a\\0b"', r"this is no name of a file: embedded null byte; got a\x00b"),
        ],
    )
    def test_cannot_be_read(self, folder, data, words):
        (fault,) = self.faults(folder, data)
        assert fault.startswith("s.yaml:3: data: ")
        assert words in fault
        assert str(folder) not in fault

    @pytest.mark.parametrize("name", ["../outside.npy", "link.npy", "/etc/passwd", "a/../../outside.npy"])
    def test_outside_of_the_folder(self, folder, name):
        assert self.faults(folder, name) == [
            f"s.yaml:3: data: the file lies outside the scenario's folder; got {name}; "
            "right would be: a file in the scenario's folder, or --allow-outside (allow_outside=True)"
        ]

    @pytest.mark.parametrize("name", ["../outside.npy", "link.npy"])
    def test_outside_when_told_so(self, folder, name):
        assert loads(f"{self.BASE}data: {name}\n", folder=folder, allow_outside=True).workers == 2

    def test_every_file_that_is_wrong(self, folder):
        assert len(self.faults(folder, "[gone.npy, no.npy, one.npy]")) == 2

    def test_other_workers_than_the_files(self, folder):
        assert self.faults(folder, "good.npy", "workers: 8") == [
            "s.yaml:4: workers: the data is that of 2 workers, not of 8; got 8; right would be: 2, or leave the key out"
        ]

    def test_another_dtype_than_the_files(self, folder):
        (fault,) = self.faults(folder, "good.npy", "dtype: float64")
        assert "good.npy: cannot be read as .npy: it holds float32, not the float64" in fault

    def test_a_size_beside_files(self, folder):
        assert self.faults(folder, "good.npy", "message: 24 B", "seed: 1") == [
            "s.yaml:4: message: the key is never read: the files say how large it is; got 24 B",
            "s.yaml:5: seed: the key is never read: the data comes from files; got 1",
        ]

    def test_weights_by_the_workers_of_the_files(self, folder):
        (fault,) = self.faults(folder, "good.npy", "reduce: mean", "weights: [1, 2, 3]")
        assert "3 weights for 2 workers" in fault

    def test_unreadable_files_hide_no_other_mistake(self, folder):
        faults = self.faults(folder, "gone.npy", "dtype: flaot32", "reduce: min", "weights: [1]")
        assert [fault.split(": ")[1] for fault in faults] == ["data", "dtype", "weights"]

    @pytest.mark.parametrize("data", ["3", "{a: b}", "[]", "[1, 2]", "true", "''"])
    def test_what_names_no_file(self, folder, data):
        assert "s.yaml:3: data" in self.faults(folder, data)[0]


def test_the_file_stands_in_every_fault(tmp_path):
    file = tmp_path / "ring.yaml"
    file.write_text(GOOD.replace("8", "x"))
    with pytest.raises(InputError, match=r"ring\.yaml:2: workers: a whole number is wanted; got x"):
        load(file)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "jobs.1.message=1 MiB",
            "jobs[1].message: there is no such item: the list has 1, numbered from 0; got 1; ",
        ),
        ("sweep.over={jobs.4.start: [1 us, 2 us]}", "jobs[4].start: there is no such item: the list has 1"),
        ("jobs.0.workers.2=3", "jobs[0].workers[2]: there is no such item: the list has 2"),
    ],
)
def test_an_item_that_a_list_does_not_have(given, said):
    text = "{scenario_version: 1, workers: 2, message: 8 B, jobs: [{workers: [1, 2], message: 8 B}], network: "
    with pytest.raises(InputError) as caught:
        loads(text + "{topology: switch, places: 3, bandwidth: 1 GB/s, latency: 1 us}}", [given])
    assert f"--set: {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "instead", "right"),
    [
        ("network: {jitter: 1 us}", "may be drawn", "distribution: lognormal"),
        ("loss: 1 %", "lose packets", "probability: 0.1 %"),
        ("network: {mtu: 4096}", "cuts transfers into packets", "network.packet: 4 KiB"),
        ("alpha: 5 us", "fixed time of a transfer", "network.latency: 5 us"),
        ("beta: 0.02", "one over", "network.bandwidth: 50 GB/s"),
        ("ranks: 8", "workers is how many there are", "workers: 8"),
    ],
)
def test_a_key_of_another_tool_is_told_with_what_serves_in_its_place(line, instead, right):
    with pytest.raises(InputError) as caught:
        loads(f"scenario_version: 1\n{line}\n", file="s.yaml")
    (fault,) = [one for one in caught.value.faults if one.message.startswith("there is no such key: ")]
    assert fault.line == 2
    assert instead in fault.message
    assert right in fault.right
    assert fault.nearest == ""


def calls_to_tell(n_keys):
    """How many Python functions are called to tell of so many unknown keys: counted, since a time would jitter."""
    text, calls = GOOD + "".join(f"\nunknown_{number}: 1" for number in range(n_keys)), 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        with pytest.raises(InputError) as caught:
            loads(text)
    finally:
        sys.setprofile(None)
    assert len(caught.value.faults) == n_keys
    return calls


@pytest.mark.parametrize("before", ["", "<?xml version='1.0'?>\n", "<?xml?><!-- <system> -->\n <!-- > -->", "<!-- "])
def test_xml_is_told_with_what_reads_it_whatever_stands_before_its_first_element(before):
    is_read = before != "<!-- "
    assert ("algorithm: {file: s.yaml}" in fault_of(f"{before}<algo name='a'>")) == is_read
    assert fault_of(f"{before}<system><algo/></system>").endswith("right would be: ringnet network s.yaml")
    assert fault_of("<!-- -->" * 10_000 + "<alg").endswith("right would be: ringnet network s.yaml")


def test_thousands_of_unknown_keys_take_work_in_proportion_to_them():
    assert calls_to_tell(5000) < 2.5 * calls_to_tell(2500)


@pytest.mark.parametrize(
    ("line", "wrong", "meant"),
    [
        ("netwrok: {bandwidth: 1 GB/s}", "netwrok", "network"),
        ("network: {latency: 1 us, bandwith: 1 GB/s}", "network.bandwith", "bandwidth"),
    ],
)
def test_a_required_key_that_is_misspelt_is_told_once(line, wrong, meant):
    with pytest.raises(InputError) as caught:
        loads(f"scenario_version: 1\nworkers: 4\nmessage: 1 KiB\n{line}\n")
    (fault,) = caught.value.faults
    assert (fault.path, fault.nearest) == (wrong, meant)
