"""Changes from the command line, and many runs from one file."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import InputError
from ringnet.scenario import Scenario, loads
from ringnet.units import parse_quantity

GOOD = """\
scenario_version: 1
workers: 8
message: 1 KiB
seed: 1
network: {bandwidth: 50 GB/s, latency: 5 us}
"""


def scenario(*overrides: str, sweep: str = "", base: str = GOOD) -> Scenario:
    return loads(f"{base}sweep: {sweep}\n" if sweep else base, overrides, file="s.yaml")


def faults(*overrides: str, sweep: str = "", base: str = GOOD) -> list[str]:
    with pytest.raises(InputError) as caught:
        scenario(*overrides, sweep=sweep, base=base)
    return [str(fault) for fault in caught.value.faults]


def swept(sweep: str, *overrides: str, base: str = GOOD) -> list[tuple[str, ...]]:
    """The values of every point, as written."""
    return [tuple(point.swept.values()) for point in scenario(*overrides, sweep=sweep, base=base).points()]


class TestOverrides:
    def test_values_are_yaml(self):
        found = scenario(
            "workers=3", "network.latency=1 us", "payload={elements: 4}", "reduce=mean", "weights=[1, 2, 3]"
        )
        assert (found.workers, found.network.latency_s, found.carry, found.weights) == (
            3,
            1e-6,
            4,
            (1.0, 2.0, 3.0),
        )

    def test_a_path_makes_what_is_not_there(self):
        assert scenario("worker.exceptions.5.start=20 us").worker.exceptions["5"].start_s == 20e-6

    def test_a_path_replaces_a_word_by_keys(self):
        assert scenario("payload.elements=4", base=GOOD + "payload: full\n").carry == 4

    def test_a_number_counts_in_a_list(self):
        base = GOOD.replace("8", "2") + "reduce: mean\nweights: [1, 3]\n"
        assert scenario("weights.1=5", base=base).weights == (1, 5)

    def test_the_value_may_hold_an_equals_sign(self):
        assert scenario("name=a=b").name == "a=b"

    @pytest.mark.parametrize("nothing", ["", "null", "~"])
    def test_nothing_takes_the_key_out(self, nothing):
        assert scenario(f"seed={nothing}").seed == 0
        assert faults(f"workers={nothing}") == ["--set: workers: the key is missing; right would be: workers: 8"]

    def test_links_are_named_as_they_are(self):
        assert scenario("network.links.3->4.latency=9 us").network.links["3->4"].latency_s == 9e-6

    @pytest.mark.parametrize("text", ["worker", "", "=4", "network..latency=1 us", ".=1"])
    def test_no_override(self, text):
        (fault,) = faults(text)
        assert fault.startswith("--set: an override is a path, an equals sign and a value")
        assert "right would be: --set network.bandwidth='5 GB/s'" in fault

    def test_value_that_is_no_yaml(self):
        assert faults("data=[a.npy") == [
            "--set: data: the text is not readable as YAML: "
            + ("expected ',' or ']', but got '<stream end>'; got [a.npy")
        ]
        assert "--set: data: YAML tags are not read" in faults("data=!!python/name:os.system x")[0]

    def test_an_unknown_key_is_told_of_the_command_line(self):
        assert faults("netwrk.latency=1 us") == ["--set: netwrk: there is no such key; did you mean network?"]
        assert faults("network.latncy=1 us") == [
            "--set: network.latncy: there is no such key; got 1 us; did you mean latency?"
        ]

    def test_twice(self):
        assert faults("workers=4", "workers=5") == ["--set: workers: the key is set twice; got workers=5"]

    def test_faults_of_file_and_command_line_together(self):
        base = GOOD.replace("1 KiB", "1.5")
        assert [fault.split(";")[0] for fault in faults("workers=x", "seed", base=base)] == [
            "s.yaml:3: message: a size needs a unit",
            "--set: an override is a path, an equals sign and a value",
            "--set: workers: a whole number is wanted",
        ]


class TestOrphans:
    """A key that an override or a sweep orphaned gets a note; one that was never read is a mistake."""

    def test_by_an_override(self):
        found = scenario("payload=none")
        assert found.notes == ("seed: left out, the key is never read: no payload is carried",)
        assert "seed" not in found.document()

    def test_a_link_that_is_gone_with_its_workers(self):
        base = GOOD.replace("us}", "us, links: {3->4: {latency: 9 us}}}")
        found = scenario("workers=2", base=base)
        assert found.notes == ("network.links.3->4: left out, the ring network of 2 workers has no such link",)
        assert found.network.links == {}

    def test_exceptions_that_lose_all_they_say(self):
        base = GOOD + "worker: {exceptions: {1: {reduce_rate: 1 GB/s}}}\n"
        found = scenario("collective=all-gather", base=base)
        assert found.worker.exceptions == {}
        assert found.notes[0].startswith("worker.exceptions.1.reduce_rate: left out")

    def test_what_was_set_itself_is_a_mistake(self):
        assert "--set: seed: the key is never read" in faults("seed=3", "payload=none")[0]
        assert "--set: weights: the key is never read" in faults("weights=[1, 2]")[0]

    def test_what_the_file_itself_orphans_is_a_mistake(self):
        assert "s.yaml:4: seed: the key is never read" in faults("workers=2", base=GOOD + "payload: none\n")[0]

    def test_by_some_points_of_a_sweep(self):
        found = scenario(sweep="{over: {payload: [none, full]}}")
        assert found.notes == ("seed: left out, the key is never read: no payload is carried",)
        assert [point.scenario.seed for point in found.points()] == [0, 1]

    def test_by_a_sweep_of_the_same_key(self):
        assert scenario(sweep="{over: {workers: [2]}}").notes == ("workers: left out, the sweep gives it",)

    def test_states_that_became_too_many(self):
        found = scenario("workers=500", base=GOOD.replace("8", "4") + "report: {tables: [summary, states]}\n")
        assert found.report.tables == ("summary",)
        assert "states of 128,000 elements" in found.notes[0]


class TestGrid:
    def test_the_first_key_is_the_slowest(self):
        assert swept("{over: {workers: [2, 4], message: [8 B, 1 KiB]}}") == [
            ("2", "8 B"),
            ("2", "1 KiB"),
            ("4", "8 B"),
            ("4", "1 KiB"),
        ]

    def test_zipped(self):
        assert swept("{zip: {workers: [2, 4], message: [8 B, 1 KiB]}}") == [("2", "8 B"), ("4", "1 KiB")]

    def test_zipped_inside_a_grid(self):
        sweep = "{over: {dtype: [int8, int32]}, zip: {workers: [2, 4], message: [8 B, 1 KiB]}}"
        assert [values[:2] for values in swept(sweep)] == [
            ("int8", "2"),
            ("int8", "4"),
            ("int32", "2"),
            ("int32", "4"),
        ]

    def test_any_scalar(self):
        sweep = "{over: {network.links.0->1.latency: [1 us, 2 us], worker.exceptions.3.start: [0 s, never]}}"
        found = scenario(sweep=sweep).points()
        assert [point.scenario.network.links["0->1"].latency_s for point in found] == [1e-6, 1e-6, 2e-6, 2e-6]
        assert found[1].scenario.worker.exceptions["3"].start_s == math.inf
        assert list(found[0].swept) == ["network.links.0->1.latency", "worker.exceptions.3.start"]

    def test_payload_takes_mappings(self):
        found = scenario(sweep="{over: {payload: [full, {elements: 2}]}}")
        assert [point.scenario.carry for point in found.points()] == [None, 2]

    def test_a_number_counts_in_a_list(self):
        base = GOOD.replace("8", "2") + "reduce: mean\nweights: [1, 3]\n"
        found = scenario(sweep="{over: {weights.1: [3, 5]}}", base=base)
        assert [point.scenario.weights for point in found.points()] == [(1, 3), (1, 5)]

    def test_a_swept_key_need_not_stand_above(self):
        found = scenario(sweep="{over: {workers: [3, 5]}}", base=GOOD.replace("workers: 8\n", ""))
        assert (found.workers, found.n_points, found.swept, found.notes) == (3, 2, ("workers",), ())

    def test_points_are_single_runs(self):
        (point, _) = scenario(sweep="{over: {workers: [3, 5]}}").points()
        assert (point.scenario.sweep, point.scenario.n_points) == (None, 1)
        assert point.scenario.points()[0].scenario is point.scenario

    def test_without_a_sweep(self):
        found = scenario()
        assert (found.n_points, found.swept, found.points()[0].swept) == (1, (), {})

    def test_a_large_grid_is_not_expanded_to_be_loaded(self):
        ranges = "seed: {from: 1, to: 1000, step: 1}, network.latency: {from: 1 us, to: 1 ms, step: 1 us}"
        found = scenario(sweep=f"{{over: {{{ranges}}}}}")
        assert found.n_points == 1_000_000
        assert next(found.iter_points()).swept == {"seed": "1", "network.latency": "1 us"}

    def test_each_value_of_a_large_grid_is_checked(self):
        sweep = "{over: {seed: {from: 1, to: 6000, step: 1}, network.latency: [1 us, 2]}}"
        assert [fault.partition(";")[0] for fault in faults(sweep=sweep)] == [
            "s.yaml:6: sweep.over.network.latency[1]: a time needs a unit"
        ]


class TestRanges:
    @pytest.mark.parametrize(
        ("sweep", "values"),
        [
            ("message: {from: 1 KiB, to: 1 MiB, factor: 4}", "1 KiB|4 KiB|16 KiB|64 KiB|256 KiB|1 MiB"),
            ("message: {from: 1 KiB, to: 2 MB, factor: 10}", "1 KiB|10 KiB|100 KiB|1000 KiB"),
            ("message: {from: 4 B, to: 64 B, count: 5}", "4 B|8 B|16 B|32 B|64 B"),
            ("message: {from: 4 B, to: 12 B, count: 9}", "4 B|8 B|12 B"),
            ("message: {from: 0 B, to: 12 B, step: 4 B}", "0 B|4 B|8 B|12 B"),
            ("workers: {from: 2, to: 9, step: 3}", "2|5|8"),
            ("workers: {from: 2, to: 20, factor: 2}", "2|4|8|16"),
            ("workers: {from: 1, to: 8, count: 4}", "1|2|4|8"),
            ("workers: {from: 5, to: 5, factor: 2}", "5"),
            ("network.latency: {from: 1 us, to: 100 us, count: 3}", "1 us|10 us|100 us"),
            ("network.latency: {from: 1 us, to: 1 ms, factor: 10}", "1 us|10 us|100 us|1 ms"),
            ("network.latency: {from: 0 s, to: 3 us, step: 1.5 us}", "0 s|1.5 us|3 us"),
            ("network.bandwidth: {from: 1 GB/s, to: 100 GB/s, factor: 10}", "1 GB/s|10 GB/s|100 GB/s"),
        ],
    )
    def test_values(self, sweep, values):
        assert [value for (value,) in swept(f"{{over: {{{sweep}}}}}")] == values.split("|")

    @pytest.mark.parametrize(
        ("sweep", "fault"),
        [
            ("message: {from: 1 KiB, to: 1 MiB}", "message: a range has one of factor, count and step"),
            ("message: {from: 1 KiB, to: 1 MiB, factor: 2, count: 3}", "message: a range has one of"),
            ("message: {from: 1 KiB, to: 1, factor: 2}", "message: a range runs upwards"),
            ("message: {from: x, to: 1 KiB, factor: 2}", "message.from: this should be a size; got x"),
            ("message: {from: 1 KiB, to: 1 MiB, step: 3.5}", "message.step: a size needs a unit; got 3.5"),
            ("message: {from: 1 MiB, to: 1 KiB, factor: 2}", "message: a range runs upwards"),
            (
                "message: {from: 0 B, to: 1 KiB, factor: 2}",
                "message: a range by factor or count starts above zero",
            ),
            ("message: {from: 1 KiB, to: 1 MiB, factor: 1}", "message: the factor of a range is above one"),
            ("message: {from: 1 KiB, to: 1 MiB, step: 0 B}", "message: the step of a range is above zero"),
            ("message: {from: 1 KiB, to: 1 PiB, step: 4 B}", "message: a range has at most 10,000 values"),
            (
                "message: {from: 1 KiB, to: 1 MiB, count: 1}",
                "message.count: a whole number from 2 to 10,000",
            ),
            (
                "message: {from: 1 KiB, to: 1 MiB, till: 1 MiB, count: 3}",
                "message.till: there is no such key",
            ),
            ("message: {to: 1 MiB, count: 3}", "message.from: the key is missing"),
            ("worker.start: {from: 0 s, to: never, step: 1 s}", "worker.start.to: a range has finite ends"),
            ("dtype: {from: int8, to: int32, factor: 2}", "dtype: only a number has ranges"),
            ("seed: {from: true, to: 2, factor: 2}", "seed.from: a whole number is wanted; got true"),
        ],
    )
    def test_refused(self, sweep, fault):
        assert f"s.yaml:6: sweep.over.{fault}" in faults(sweep=f"{{over: {{{sweep}}}}}")[0]


class TestFaults:
    @pytest.mark.parametrize(
        ("sweep", "fault"),
        [
            ("{}", "sweep: nothing stands here"),
            ("{over: {}}", "sweep.over: nothing stands here"),
            ("{over: {workers: []}}", "sweep.over.workers: nothing stands here"),
            ("{over: {workers: 4}}", "sweep.over.workers: a list is wanted"),
            ("{ovr: {workers: [4]}}", "sweep.ovr: there is no such key; did you mean over?"),
            ("{over: {name: [a, b]}}", "sweep.over.name: name cannot be swept"),
            ("{over: {sweep.over.workers: [[2]]}}", "sweep.over.sweep.over.workers: sweep cannot be swept"),
            (
                "{over: {scenario_version: [1]}}",
                "sweep.over.scenario_version: scenario_version cannot be swept",
            ),
            (
                "{over: {wrkers: [4, 5]}}",
                "sweep.over.wrkers[0]: there is no such key; got 4; did you mean workers?",
            ),
            ("{over: {workers: [4, x]}}", "sweep.over.workers[1]: a whole number is wanted; got x"),
            ("{over: {workers: [4]}, zip: {workers: [5]}}", "sweep: workers is swept twice"),
            ("{over: {payload: [none], payload.elements: [5]}}", "sweep: payload.elements is swept twice"),
            (
                "{zip: {workers: [4, 5], seed: [1]}}",
                "sweep.zip: zipped keys need equally many values; got workers: 2",
            ),
            (
                "{over: {network.links.5->7.latency: [1 us]}}",
                "sweep.over.network.links.5->7.latency[0]: the ring",
            ),
        ],
    )
    def test_is_told_where_it_stands(self, sweep, fault):
        assert f"s.yaml:6: {fault}" in faults(sweep=sweep)[0]

    def test_every_value_that_is_wrong(self):
        found = faults(sweep="{over: {workers: [0, 2, x], network.latency: [1, 1 us]}}")
        assert [fault.split(": ")[1] for fault in found] == [
            "sweep.over.workers[0]",
            "sweep.over.network.latency[0]",
            "sweep.over.workers[2]",
        ]

    def test_a_value_that_is_nothing(self):
        base = GOOD.replace("workers: 8\n", "")
        assert faults(sweep="{over: {workers: [2, ~]}}", base=base) == [
            "s.yaml:5: sweep.over.workers[1]: the key has no value"
        ]

    def test_values_that_do_not_go_together(self):
        found = faults(sweep="{over: {dtype: [float32, float64], message: [12 B, 16 B]}}")
        assert found == [
            "s.yaml:6: sweep.over.message[0]: not a whole number of float64 elements, 8 bytes each; "
            "got 12 B; right would be: 8 B or 16 B"
        ]

    def test_weights_for_one_point_only(self):
        base = GOOD + "reduce: mean\nweights: [1, 2]\n"
        (fault,) = faults(sweep="{over: {workers: [2, 3]}}", base=base)
        assert "s.yaml:7: weights: 2 weights for 3 workers" in fault

    def test_a_sweep_that_cannot_be_read_hides_no_other_mistake(self):
        found = faults(sweep="{over: {workers: 4}}", base=GOOD.replace("workers: 8\n", "").replace("1 KiB", "1"))
        assert [fault.split(": ")[1] for fault in found] == ["message", "sweep.over.workers"]


class TestOverridesOfSweeps:
    def test_a_key_that_is_set_is_swept_no_more(self):
        found = scenario("workers=6", sweep="{over: {workers: [2, 4], seed: [1, 2]}}")
        assert [(point.scenario.workers, *point.swept.values()) for point in found.points()] == [
            (6, "1"),
            (6, "2"),
        ]
        assert "sweep.over.workers: not swept, since --set gives workers" in found.notes

    def test_the_last_swept_key(self):
        assert scenario("payload.elements=3", sweep="{over: {payload: [none, full]}}").n_points == 1

    def test_values_of_a_sweep(self):
        assert swept("{over: {workers: [2, 4]}}", "sweep.over.workers=[3]") == [("3",)]
        assert swept("{over: {message: {from: 8 B, to: 64 B, factor: 2}}}", "sweep.over.message.factor=8") == [
            ("8 B",),
            ("64 B",),
        ]

    def test_a_new_sweep(self):
        found = scenario("sweep.over.network.latency=[1 us, 2 us]")
        assert [point.scenario.network.latency_s for point in found.points()] == [1e-6, 2e-6]

    def test_no_sweep(self):
        assert scenario("sweep=null", sweep="{over: {workers: [2, 4]}}").n_points == 1

    def test_faults_are_told_of_the_command_line(self):
        assert faults("sweep.over.workers=[2, x]") == [
            "--set: sweep.over.workers[1]: a whole number is wanted; got x; right would be: 8"
        ]


AXES = {
    "workers": st.integers(1, 9),
    "message": st.integers(0, 999).map(lambda elements: f"{4 * elements} B"),
    "seed": st.integers(0, 99),
    "network.latency": st.integers(0, 99).map("{} us".format),
    "worker.start": st.integers(0, 99).map("{} ns".format),
}


@st.composite
def axes(draw):
    keys = draw(st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=3, unique=True))
    return {key: draw(st.lists(AXES[key], min_size=1, max_size=4)) for key in keys}


def value_of(point: Scenario, key: str) -> object:
    return {
        "workers": point.workers,
        "message": point.message_bytes,
        "seed": point.seed,
        "network.latency": point.network.latency_s,
        "worker.start": point.worker.start_s,
    }[key]


def meant(key: str, text: str) -> object:
    kinds = {"message": "bytes", "network.latency": "seconds", "worker.start": "seconds"}
    return parse_quantity(text, kinds[key]) if key in kinds else int(text)


@given(axes())
def test_a_grid_holds_every_combination_and_each_point_is_what_its_values_say(over):
    found = loads(GOOD, [f"sweep.over.{key}={values}" for key, values in over.items()])
    points = found.points()
    assert len(points) == found.n_points == math.prod(map(len, over.values()))
    expected = [()]
    for values in over.values():
        expected = [(*row, str(value)) for row in expected for value in values]
    assert [tuple(point.swept.values()) for point in points] == expected
    for point in points:
        assert all(value_of(point.scenario, key) == meant(key, text) for key, text in point.swept.items())


@given(axes())
def test_a_point_is_the_run_that_its_values_make_by_hand(over):
    points = loads(GOOD, [f"sweep.over.{key}={values}" for key, values in over.items()]).points()
    for point in points[:5]:
        by_hand = loads(GOOD, [f"{key}={text}" for key, text in point.swept.items()])
        assert by_hand.document() == point.scenario.document()
        assert by_hand.key() == point.scenario.key()


@given(axes())
def test_a_sweep_written_out_gives_the_same_runs(over):
    found = loads(GOOD, [f"sweep.over.{key}={values}" for key, values in over.items()])
    again = loads(str(found.document()))
    assert again.notes == ()
    assert again.document() == found.document()
    assert [one.scenario.key() for one in again.points()] == [one.scenario.key() for one in found.points()]


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.floats(1.1, 64) | st.integers(2, 64))
def test_a_range_by_factor_stays_inside_its_ends(first, more, factor):
    text = f"{{from: {8 * first} B, to: {8 * (first + more)} B, factor: {factor!r}}}"
    values = [
        point.scenario.message_bytes for point in loads(GOOD, ["dtype=int8", f"sweep.over.message={text}"]).points()
    ]
    assert values[0] == 8 * first
    assert values == sorted(set(values))
    assert values[-1] <= 8 * (first + more) + 4


@given(st.integers(1, 2**30), st.integers(1, 2**30), st.integers(2, 40))
def test_a_range_by_count_holds_both_ends(first, more, count):
    text = f"{{from: {8 * first} B, to: {8 * (first + more)} B, count: {count}}}"
    values = [point.scenario.message_bytes for point in loads(GOOD, [f"sweep.over.message={text}"]).points()]
    assert (values[0], values[-1]) == (8 * first, 8 * (first + more))
    assert len(values) <= count
    assert values == sorted(set(values))


@pytest.mark.parametrize(
    ("section", "word", "key", "value"),
    [
        ("worker", "rendezvous", "send_overhead", "1 us"),
        ("worker", "[rendezvous]", "send_overhead", "1 us"),
        ("network", "nonsense", "window", "64 KiB"),
        ("report", "3", "transfers", "0"),
    ],
)
def test_a_section_of_a_wrong_type_is_told_beside_what_would_replace_it(section, word, key, value):
    base = "\n".join(line for line in GOOD.splitlines() if not line.startswith(section)) + f"\n{section}: {word}\n"
    alone = [fault for fault in faults(base=base) if f" {section}: " in fault]
    assert len(alone) == 1
    assert alone[0] in faults(f"{section}.{key}={value}", base=base)
    if section != "report":
        assert alone[0] in faults(sweep=f"{{over: {{{section}.{key}: [{value}]}}}}", base=base)
