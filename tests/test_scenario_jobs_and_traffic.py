"""Wrong jobs, wrong traffic, and parts that are too many: told with the key, and what would be right."""

from __future__ import annotations

import pytest

from ringnet.errors import InputError
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

HEAD = "scenario_version: 1, name: mine, workers: 8, message: 1 MiB"
TEXT = f"{{{{{HEAD}, {{}} network: {{{{topology: switch, link: 100gbe{{}}}}}}}}}}"


def faults(rest="", network=""):
    with pytest.raises(InputError) as caught:
        loads(TEXT.format(rest, network))
    return [str(fault) for fault in caught.value.faults]


def fault(*args):
    (one,) = faults(*args)
    return one


def job(more):
    return f"jobs: [{{workers: 3, message: 1 MiB, {more}}}],"


def traffic(more):
    return f"background: [{{burst: 1 MiB, {more}}}],"


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (job("name: mine"), "jobs[0].name: this name is that of the scenario; got mine"),
        (job("name: other traffic"), "jobs[0].name: this name is that of all that is no job's"),
        (
            job("name: a") + traffic("name: a, from: 0, to: 1"),
            "background[0].name: this name is that of jobs[0]",
        ),
        (traffic("name: mine, from: 0, to: 1"), "background[0].name: this name is that of the scenario"),
        (
            "jobs: [{name: a, workers: 2, message: 1 B}, {name: a, workers: 2, message: 1 B}], dtype: int8,",
            "jobs[1].name: this name is that of jobs[0]; got a; right would be: a name of its own",
        ),
        (
            "algorithm: {name: channel-ring, strides: [3]}, " + job("start: 1 us"),
            "jobs[0].algorithm: with 3 workers: a ring of this stride does not pass all 3 workers: 3",
        ),
        (
            traffic("links: [0->switch, 1->switch]"),
            "background[0].links: the route is at switch before 1->switch",
        ),
        (
            traffic("links: [0->switch, switch->0, 0->switch, switch->1]"),
            "background[0].links: the route goes over 0->switch twice",
        ),
        (
            traffic("from: 0, to: 1, rate: 1 GB/s, start: 2 ms, stop: 1 ms"),
            "background[0].stop: the traffic would end before it begins; got 1 ms",
        ),
        (
            "background: [{burst: 1 B, from: 0, to: 1, rate: 100 GB/s}],",
            "background[0].burst: at this rate some 8.4e+06 bursts go out while the message moves",
        ),
    ],
)
def test_a_mistake_of_jobs_and_traffic(rest, said):
    assert fault(rest).startswith(f"<text>:1: {said}")


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (
            ", packet: 1 B",
            "network.packet: the transfers would move in some 1.5e+07 parts, more than 10,000,000",
        ),
        (
            ", window: 8 B",
            "network.window: the transfers would move in some 1.5e+07 parts, more than 10,000,000",
        ),
    ],
)
def test_parts_beyond_what_can_be_simulated(network, said):
    assert fault("", network).startswith(f"<text>:1: {said}")
    assert "right would be: at least" in fault("", network)


def test_what_is_right_is_said_so_that_it_is():
    for key, least in (("packet", "2 B"), ("window", "12 B")):
        assert f"at least {least}" in fault("", f", {key}: 1 B")
        assert loads(TEXT.format("", f", {key}: 16 B"))


def test_traffic_of_one_name_is_one():
    both = "background: [{name: a, from: 0, to: 1, burst: 1 MiB}, {name: a, from: 2, to: 1, burst: 1 MiB}],"
    assert loads(TEXT.format(both, ""))


def test_links_of_traffic_may_lead_either_way_over_a_half_duplex_cable():
    cables = "[{from: 0, to: hub, duplex: half}, {from: 1, to: hub, duplex: half}]"
    network = f"{{topology: custom, link: 100gbe, switches: [hub], cables: {cables}}}"
    background = "background: [{links: [1<->hub, 0<->hub], burst: 1 B}]"
    assert loads(f"{{scenario_version: 1, workers: 2, message: 1 MiB, {background}, network: {network}}}")


def test_traffic_between_places_that_nothing_joins():
    text = TEXT.format(traffic("from: 0, to: 5"), "").replace("topology: switch", "topology: ring")
    with pytest.raises(InputError, match=r"background\[0\].to: a ring has a link from worker 0 to worker 1 only"):
        loads(text)


def test_a_network_of_more_links_than_a_memory_holds():
    text = TEXT.format("", ", places: 100000").replace("topology: switch", "topology: fully-connected")
    with pytest.raises(InputError, match=r"network.topology: 100,000 workers, each linked to every other, take 1e\+10"):
        loads(text)


def test_a_switch_with_the_number_of_a_place():
    text = TEXT.format("", ", switches: ['3'], cables: [{from: 0, to: '3'}]").replace("switch,", "custom,", 1)
    with pytest.raises(InputError, match=r"network.switches\[0\]: this is the number of a worker's place; got 3"):
        loads(text)


def test_an_example_of_a_list_is_as_it_stands_in_a_file():
    assert "jobs: a list is wanted; right would be: jobs: [{workers: 8, message: 64 MiB}]" in fault(
        "jobs: {workers: 2},"
    )


@pytest.mark.parametrize(
    ("more", "notes"),
    [
        (
            "stop: 1 ms, rate: 20 GB/s",
            ("traffic 1: 20 GB/s are more than 0->switch carries, 12.5 GB/s: its queue only grows until it stops",),
        ),
        ("rate: 12 GB/s", ()),
        ("rate: 20 GB/s, on: 1 ms, off: 1 ms", ()),
        ("stop: 1 s, rate: 12.5 GB/s", ()),
        (
            "rate: 9 GB/s}, {from: 2, to: 5, burst: 1 MiB, rate: 9 GB/s, stop: 1 ms",
            (
                "traffic 1 and traffic 2: 18 GB/s are more than switch->5 carries, 12.5 GB/s: "
                "its queue only grows until 1 ms",
            ),
        ),
    ],
)
def test_traffic_beyond_what_its_links_carry_is_said(more, notes):
    rest = traffic(f"from: 0, to: 5, {more}") + "payload: none,"
    assert simulate(loads(TEXT.format(rest, ""))).notes == notes


def test_a_bandwidth_that_falls_below_the_traffic_for_a_while_is_said():
    rest = traffic("from: 0, to: 5, rate: 9 GB/s") + "payload: none,"
    changes = "[{at: 20 us, bandwidth: 8 GB/s}, {at: 1 ms, bandwidth: 20 GB/s}]"
    (note,) = simulate(loads(TEXT.format(rest, f", profile: {changes}"))).notes
    assert note == (
        "traffic 1: 9 GB/s are more than 0->switch carries from 20 us on, 8 GB/s: its queue only grows until 1 ms"
    )


GROWS = "its queue only grows"


@pytest.mark.parametrize(
    ("rest", "network", "said"),
    [
        (
            traffic("from: 0, to: 5, rate: 20 GB/s"),
            "",
            "[0].rate: 20 GB/s are more than 0->switch carries, 12.5 GB/s",
        ),
        (
            traffic("from: 0, to: 5, rate: 40 GB/s, on: 1 ms, off: 1 ms"),
            "",
            "[0].rate: 19.92 GB/s are more than 0->switch carries, 12.5 GB/s",  # 38 bursts in 2 ms
        ),
        (
            "background: [{from: 0, to: 5, burst: 1 MiB, rate: 9 GB/s}, {from: 2, to: 5, burst: 1 MiB, rate: 9 GB/s}],",
            "",
            "[1].rate: with background[0], 18 GB/s are more than switch->5 carries, 12.5 GB/s",
        ),
        (
            traffic("from: 0, to: 5, rate: 9 GB/s"),
            ", profile: [{at: 20 us, bandwidth: 20 GB/s}, {at: 1 ms, bandwidth: 8 GB/s}]",
            "[0].rate: 9 GB/s are more than 0->switch carries from 1 ms on, 8 GB/s",
        ),
        (
            traffic("from: 0, to: 5, rate: 9 GB/s"),
            ", sharing: fifo, regimes: [{up_to: 1 MiB, bandwidth: 8 GB/s, latency: 1 us}]",
            "[0].rate: 9 GB/s are more than 0->switch carries, 8 GB/s",
        ),
        (
            traffic("from: 0, to: 5, rate: 12 GB/s"),
            ", packet: 1 KiB, header: 128 B",
            "[0].rate: 13.5 GB/s are more than 0->switch carries, 12.5 GB/s",
        ),
    ],
)
def test_traffic_whose_queue_grows_for_ever_is_refused(rest, network, said):
    start = f"<text>:1: background{said}: {GROWS}; got "
    assert fault(rest, network).startswith(start)
    assert fault(rest, network).endswith("right would be: a lower rate, or a stop")


def test_both_directions_of_a_half_duplex_cable_count():
    cables = "[{from: 0, to: hub, duplex: half}, {from: 1, to: hub}]"
    network = f"{{topology: custom, link: 100gbe, switches: [hub], cables: {cables}}}"
    flows = "[{from: 0, to: 1, burst: 1 KiB, rate: 7 GB/s}, {from: 1, to: 0, burst: 1 KiB, rate: 7 GB/s}]"
    text = "{{scenario_version: 1, workers: 2, message: 1 KiB, background: {}, network: {}}}"
    with pytest.raises(InputError, match=r"with background\[0\], 14 GB/s are more than 0<->hub carries"):
        loads(text.format(flows, network))
    assert loads(text.format(flows, network.replace("half", "full")))


def test_all_flows_that_are_too_much_are_told_at_once():
    one, other = (f"{{from: {place}, to: 5, burst: 1 MiB, rate: 20 GB/s}}" for place in (0, 1))
    assert [said.split(":")[2] for said in faults(f"background: [{one}, {other}],")] == [
        " background[0].rate",
        " background[1].rate",
    ]
