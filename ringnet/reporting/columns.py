"""Every column of every table that ringnet writes: its kind and its one meaning."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from ringnet.analysis.spread import FIGURE_WORDS, FIGURES
from ringnet.engines.trace import PATH_PARTS

Kind: TypeAlias = Literal["text", "integer", "number", "truth", "value"]


class Column(NamedTuple):
    """Kind and meaning of a column; an empty cell always means "does not apply, or is not known"."""

    kind: Kind
    meaning: str


_integer, _number = partial(Column, "integer"), partial(Column, "number")
_text, _truth = partial(Column, "text"), partial(Column, "truth")

#: What a run was asked to do, in the order of ``summary.csv``.
INPUTS: dict[str, Column] = {
    "name": _text("name of the scenario"),
    "collective": _text("what the workers have in the end: all-reduce, reduce-scatter, all-gather, ..."),
    "algorithm": _text("who sends what to whom"),
    "n_workers": _integer("number of workers, N"),
    "message_bytes": _integer("the whole buffer of one worker, S"),
    "dtype": _text("type of the elements"),
    "reduce": _text("how two contributions become one"),
    "topology": _text("shape of the network"),
    "switching": _text("cut-through or store-and-forward"),
    "sharing": _text("how transfers share a link: fifo or fair"),
    "sends": _text("eager: a sender goes on at once; rendezvous: both sides meet"),
    "engine": _text("which engine ran"),
    "payload": _text("what was carried: every element, the first k of each chunk, or none"),
    "seed": _integer("seed of the random data, and of what is drawn"),
}

#: What came out, in the order of ``summary.csv``.
ANSWERS: dict[str, Column] = {
    "n_transfers": _integer("chunks sent by one worker to another, in all"),
    "makespan_s": _number("end of the last worker less start of the first"),
    "algbw_Bps": _number("message_bytes / makespan_s"),
    "busbw_Bps": _number("algbw times 2(N-1)/N for all-reduce, 1 for broadcast and reduce, (N-1)/N for the others"),
    "closed_form_s": _number("the formula's time, where network and workers are uniform"),
    "schedule_bound_s": _number("no run of this schedule on this network takes less"),
    "collective_bound_s": _number("no algorithm on this network takes less"),
    "bound_share": _number("collective_bound_s / makespan_s"),
    "bound_cut": _text("the cut of the network that collective_bound_s is the time of"),
    "latency_share": _number("share of the makespan, on the path that ended last: latency of links"),
    "bandwidth_share": _number("the same: bytes going through links"),
    "queueing_share": _number("the same: waiting for a link that was taken, or sharing one"),
    "own_queueing_share": _number(
        "of queueing_share what was behind the same worker's own transfers, which is bandwidth by another name; 0 "
        "where the path goes on with what was sent before, as bandwidth_share has it; empty where that is not known, "
        "as own_queueing_s of workers"
    ),
    "waiting_share": _number("the same: until the first worker on the path has started"),
    "overhead_share": _number("the same: launch, and send and receive overheads"),
    "reducing_share": _number("the same: combining chunks"),
    "late_worker": _integer("the worker whose late start that waiting is for; empty if none"),
    "late_by_s": _number("how much later than the first worker it started"),
    "late_gain_s": _number(
        "by how much the time falls, simulated again, if it, and all who start with it, start with the first; empty if "
        "not tried"
    ),
    "bytes_sent_per_worker": _integer("the most that any worker sent"),
    "expected_bytes_per_worker": _number(
        "what busbw counts for each worker: what a ring sends, if all chunks were alike"
    ),
    "slowest_link": _text(
        "the link whose change gains most, the busiest where several must change together; empty if none gains"
    ),
    "slowest_link_utilisation": _number("its busy time / makespan_s"),
    "n_slowest_links": _integer("links that change together, itself included"),
    "slowest_link_change": _text(
        "what it becomes: as good as its best like, which is a link whose name differs in numbers only; or, where that "
        "gains nothing, twice as fast, with all of its class; where nothing gains, what was tried last"
    ),
    "slowest_link_gain_s": _number(
        "by how much makespan_s falls then, simulated again; 0 if nothing gains; empty if that was not tried, or all "
        "links are alike"
    ),
    "slowest_link_by": _text(
        "how that is known: by simulation; by trials, where it gains most of those that were simulated, and more would "
        "take too long; by the path that ended last, where any would; by likeness, where none is worse than another; "
        "load where nobody can say without simulations; empty where numbers are drawn"
    ),
    "longest_queue": _integer("most transfers that waited for one link at one time"),
    "waiting_s_max": _number("the most of waiting_s, in workers.csv, of any worker"),
    "verified_elements": _integer("elements compared, times workers"),
    "max_abs_error": _number("largest difference from the exact result"),
    "max_error_share": _number("the largest error as a share of what rounding allows"),
    "workers_agree": _truth("all workers hold the same bits"),
    "sum_ok": _truth("every element passed both checks; empty where nothing was carried"),
    "error": _text("why this point has no result"),
}

#: What a summary has only where links are measured ones; no key of the scenario.
OF_MEASURED_LINKS: dict[str, Column] = {
    "is_beyond": _truth("N or the size of the message is outside what the links were measured at"),
    "equivalent": _text(
        "why the links are only such that a ring takes what was measured, and no bound or slowest link follows"
    ),
}

#: What a summary has only where an algorithm takes its shape from the network.
OF_SHAPES: dict[str, Column] = {
    "shape": _text("parameters of the algorithm that were read off the network, and what each is there"),
}

#: What a summary has only where something is drawn.
OF_CHANCE: dict[str, Column] = {
    "drawn": _text("what is drawn, for what each, and which run of which seed this is"),
    "n_runs": _integer("runs, each with draws of its own; the other columns are those of the one in the middle"),
    **{
        f"{name}{end}_s": _number(f"{FIGURE_WORDS[name]} of the times of all runs{words}")
        for name in FIGURES
        for end, words in (
            ("", ""),
            ("_low", ": the lower end of its 95 % interval; empty where so few runs do not tell it"),
            ("_high", ": the upper end of its 95 % interval; empty where so few runs do not tell it"),
        )
    },
}

#: What tables of studies have only where runs are repeated; then ``makespan_s`` is the mean of all runs.
OF_REPEATS: dict[str, Column] = {
    "n_runs": _integer("runs that makespan_s is the mean of, each with draws of its own"),
    "makespan_low_s": _number("the lower end of the 95 % interval of that mean"),
    "makespan_high_s": _number("the upper end"),
    "gain_low_s": _number("the lower end of the 95 % interval of gain_s, run by run under the same luck"),
    "gain_high_s": _number("the upper end"),
}

#: What the table of a comparison has only where runs are repeated, in this order.
OF_REPEATED_COMPARISONS: dict[str, Column] = {
    **{name: OF_REPEATS[name] for name in ("n_runs", "makespan_low_s", "makespan_high_s")},
    "behind_s": _number("by how much the mean is more than that of the fastest"),
    "behind_low_s": _number("the lower end of the 95 % interval of behind_s, run by run under the same luck"),
    "behind_high_s": _number("the upper end"),
}

#: What a summary has only where the processors of a few workers stand out.
OF_THE_BUSIEST: dict[str, Column] = {
    "busiest_worker": _integer("the worker with most overheads and reducing, where few have far more than the others"),
    "n_busiest_workers": _integer("workers with so much more, itself included"),
    "busiest_worker_share": _number("its overhead_s + reducing_s / makespan_s"),
    "busiest_worker_gain_s": _number(
        "by how much the time falls, simulated again, if these workers have the overheads and the reduce rate of the "
        "best; empty if they have, or if that was not tried"
    ),
}

#: What a summary has only where the run waited for several workers that start at one time.
OF_THE_LATE: dict[str, Column] = {
    "n_late_workers": _integer("workers that start when late_worker does, itself included")
}

#: What a summary has only where a window holds transfers back.
OF_THE_WINDOW: dict[str, Column] = {
    "window_gain_s": _number("by how much the time falls, simulated again, without the window; empty if not tried"),
}

#: What a summary has only where thousands of flows share links fairly, and the last digits of their times are chaos.
OF_CHAOS: dict[str, Column] = {
    "moved_share": _number(
        "by how much of it the makespan moves when latencies change by 1e-12 of themselves: it is not known better"
    ),
}

#: What a summary has only of a training; times and traffic are those of one step's all-reduce.
OF_TRAINING: dict[str, Column] = {
    "training_steps": _integer("steps of the training"),
    "skipped_steps": _integer("steps without an update, since a gradient was not finite"),
    "loss": _number("mean loss over the examples of the last step, before it"),
    "all_reduce_s": _number("time of all steps' all-reduces together"),
    "state_agrees": _truth("after every step all workers held the same bits: parameters, optimizer, moving average"),
    "whole_batch_share": _number(
        "largest difference of a combined gradient from one process that sees the whole batch, as a share of its bound"
    ),
    "gradient_digits": _number("decimal digits that combined gradients share with the whole batch's, at the fewest"),
    "exact_steps": _integer(
        "steps up to which the bound on parameters tells something: how far rounding, from the first step on, can take "
        "them from one exact process"
    ),
    "exact_share": _number("largest difference of a parameter from one exact process, as a share of that bound"),
}
#: What a summary has only where something goes wrong.
OF_TROUBLE: dict[str, Column] = {
    "trouble": _text("what went wrong until the end, the first few things"),
    "trouble_s": _number("makespan_s less that of the same run without trouble, simulated again"),
    "lost_packets": _integer("packets that all links have lost, those that were sent again among them"),
    "resent_bytes": _integer("bytes that were sent again, over all links together"),
    "on_failure": _text("what the collective did about workers that died"),
    "survivors": _integer("workers whose data is in the result, where others have died"),
}
#: What the table of links has only where some lose packets.
OF_LINKS_IN_TROUBLE: dict[str, Column] = {
    "lost_packets": _integer("packets that it lost"),
    "resent_bytes": _integer("of bytes, what was sent again for packets that this or another link had lost"),
}
#: What the table of links has only where several hold the run back together.
OF_LINKS_TOGETHER: dict[str, Column] = {
    "is_slowest": _truth("it is one of the n_slowest_links that gain if all of them change"),
}
#: What the table of workers has only where some are in trouble.
OF_WORKERS_IN_TROUBLE: dict[str, Column] = {
    "paused_s": _number("time its processor stood still, in trouble, before its end; no part of the other columns"),
}

#: Columns that a summary has only in some runs; no keys of the scenario.
OF_SOME_RUNS: dict[str, Column] = {
    **OF_MEASURED_LINKS,
    **OF_SHAPES,
    **OF_CHANCE,
    **OF_THE_BUSIEST,
    **OF_THE_LATE,
    **OF_THE_WINDOW,
    **OF_CHAOS,
    **OF_TRAINING,
    **OF_TROUBLE,
}

#: Columns of the summary that every job has.
_OF_JOBS = (
    "collective", "algorithm", "n_workers", "message_bytes", "makespan_s", "algbw_Bps", "busbw_Bps",
    "schedule_bound_s", "collective_bound_s", "bound_share", "latency_share", "bandwidth_share", "queueing_share",
    "waiting_share", "overhead_share", "reducing_share", "verified_elements", "max_abs_error", "workers_agree",
    "sum_ok",
)  # fmt: skip

TABLES: dict[str, dict[str, Column]] = {
    "summary": {**INPUTS, **ANSWERS},
    "links": {
        "link": _text("name: from->to"),
        "from": _text("where it starts"),
        "to": _text("where it ends"),
        "bandwidth_Bps": _number("bandwidth"),
        "latency_s": _number("latency"),
        "bytes": _integer("bytes that crossed it"),
        "transfers": _integer("transfers that crossed it"),
        "busy_s": _number("bytes served / bandwidth"),
        "occupied_s": _number("busy, or held by a slower link upstream"),
        "utilisation": _number("busy_s / makespan"),
        "longest_queue": _integer("most transfers that waited for it at one time"),
        "queued_s": _number(
            "time that all transfers together waited for it; under fair sharing, what they took longer, because it "
            "was shared, than alone on their routes"
        ),
        "mean_wait_s": _number("queued_s / transfers"),
    },
    "workers": {
        "worker": _integer("number of the worker, from 0"),
        "start_s": _number("when it came to the collective"),
        "end_s": _number("when it left its last step"),
        "sent_bytes": _integer("bytes it sent"),
        "received_bytes": _integer("bytes it received"),
        "moving_s": _number(
            "time something of its own moved while its processor did not work: its first link served what it sends, or "
            "what it receives was on its way; empty, as the next three, where transfer rows are not kept"
        ),
        "late_partner_s": _number("time it waited for a partner that had sent nothing yet"),
        "busy_link_s": _number("time something of its own stood at a busy link and nothing of its own moved"),
        "waiting_s": _number("late_partner_s + busy_link_s"),
        "overhead_s": _number("time of its launch and of its send and receive overheads"),
        "reducing_s": _number("time it combined chunks"),
        "idle_end_s": _number(
            "from its end to that of the last worker; with moving_s, waiting_s, overhead_s and reducing_s all the time "
            "from its start on"
        ),
        "path_latency_s": _number("of the path that ended last at this worker: latency of links"),
        "path_bandwidth_s": _number("the same: bytes going through links"),
        "path_queueing_s": _number("the same: waiting for a link that was taken, or sharing one"),
        "own_queueing_s": _number(
            "of path_queueing_s what was behind the same worker's own transfers: under fair sharing, what these alone, "
            "begun when they were, would have lost to each other; empty where that is not known: where what is lost is "
            "sent again"
        ),
        "path_waiting_s": _number("the same: until the first worker on the path has started"),
        "path_overhead_s": _number("the same: launch, and send and receive overheads"),
        "path_reducing_s": _number("the same: combining chunks"),
    },
    "transfers": {
        "phase": _text("reduce-scatter or all-gather"),
        "step": _integer("step within the phase, from 0"),
        "channel": _integer("channels run beside each other"),
        "op": _text("reduce or copy: what the receiver does"),
        "src": _integer("worker that sends; from n_workers on a switch that reduces"),
        "dst": _integer("worker that receives; from n_workers on a switch that reduces"),
        "chunk": _integer("which part of the buffer"),
        "bytes": _integer("size of the chunk"),
        "posted_s": _number("handed to the network by the sender"),
        "started_s": _number("the first link began to serve it"),
        "sent_s": _number("its tail left the first link"),
        "arrived_s": _number("its tail reached the receiver"),
        "applied_s": _number("the receiver had reduced or copied it"),
    },
    "queues": {
        "link": _text("one of the links with most queueing, by that"),
        "time_s": _number("from when on; a row whenever it changes, or of many changes one per span of time"),
        "waiting": _number(
            "transfers that wait for the link, or their mean over the span; under fair sharing, the flows on it "
            "beyond the first"
        ),
    },
    "utilisation": {
        "link": _text("one of the links in use, those that were busy longest first; of many the first hundred"),
        "from_s": _number("where this bin begins: where the one before it ends"),
        "to_s": _number("where it ends; all bins but the last are of one length"),
        "bytes": _number("bytes that crossed the link in the bin; what was under way longer is spread evenly"),
        "utilisation": _number("time that it was busy in the bin / the length of the bin"),
    },
    "routes": {
        "job": _text("name of the job: the scenario's own, and after it the others"),
        "src": _integer("worker that sends; from n_workers on a switch that reduces"),
        "dst": _integer("worker that receives; from n_workers on a switch that reduces"),
        "links": _text("the links that all it sends takes, in order"),
        "transfers": _integer("transfers that went there"),
        "bytes": _integer("their bytes, without headers of packets"),
        "busiest_link": _text("of these links the one that was busy longest"),
        "busiest_link_share": _number("bytes / bytes that crossed that link, whoever sent them"),
        "equal_routes": _integer("routes of equal cost of which ecmp drew this one; empty where none are drawn"),
        "collides_on": _text(
            "of these links the first that other pairs take, too, while one of equal cost carries nothing"
        ),
        "collides_with": _integer("other pairs that take that link"),
        "idle_instead": _text("the link of equal cost that carries nothing"),
    },
    "path": {
        "from_s": _number("where this piece of the path that ended last begins: where the one before it ends"),
        "to_s": _number("where it ends"),
        "part": _text("latency, bandwidth, queueing, waiting (for a late start), overhead or reducing"),
        "worker": _integer("whose overhead, reduction or late start it is"),
        "link": _text("whose latency or bandwidth it is, or which link it waited for"),
        "phase": _text("phase of the transfer that it is a piece of"),
        "step": _integer("step of that transfer within its phase"),
        "chunk": _integer("the chunk that it carries, or the first of several"),
        "src": _integer("worker that sends it; from n_workers on a switch that reduces"),
        "dst": _integer("worker that receives it; from n_workers on a switch that reduces"),
        "queue": _text(
            "where the next transfer on the path waited for this one to leave the link: own if both are of one "
            "worker, others if not; of a piece of queueing: others, whose path is not known, or with whom it shared"
        ),
        "queued_s": _number("how long it waited there"),
        "behind_worker": _integer(
            "whose transfer was in front of it: the one that the link served before; under fair sharing the one of "
            "another worker that was on the link with it for the longest time"
        ),
        "behind_transfer": _text(
            "that transfer: phase, step, sender, receiver and chunk; of another job, or of other traffic, its name"
        ),
    },
    "trouble": {
        "from_s": _number("when it began"),
        "to_s": _number("when it was over; empty if never"),
        "what": _text(
            "down, slower, losing packets, paused, dead, or failing over to another path; of what was done about a "
            "death: detected, agreed, left out or replaced, rebuilt, loaded, started again"
        ),
        "link": _text("whose trouble it is"),
        "worker": _integer("the same"),
    },
    "jobs": {
        "point": _integer("row of the summary that it belongs to, from 0"),
        "job": _text("name of the job; the scenario's own first"),
        "start_s": _number("when its first worker started"),
        "end_s": _number("when its last worker ended"),
        **{name: column for name, column in {**INPUTS, **ANSWERS}.items() if name in _OF_JOBS},
    },
    "training": {
        "step": _integer("number of the step, from 0"),
        "examples": _integer("examples of all workers in this step"),
        "idle_workers": _integer("workers without an example in this step"),
        "loss": _number("mean loss over these examples, at the parameters before the step"),
        "makespan_s": _number("time of its all-reduce"),
        "end_s": _number("end of its all-reduce, if steps took no other time"),
        "max_abs_gradient": _number("largest element of the combined gradient"),
        "whole_batch_error": _number("largest difference of the combined gradient from the whole batch's"),
        "whole_batch_share": _number("the largest difference as a share of its bound; empty where none is known"),
        "gradient_digits": _number("decimal digits that both have in common, over all elements"),
        "exact_error": _number(
            "largest difference of a parameter from one exact process that took the same steps; empty from where on "
            "no bound is known, or it is over a tenth of how far parameters have come"
        ),
        "exact_share": _number("that difference as a share of how far rounding, from the first step on, can take it"),
        "max_abs_error": _number("largest difference of the all-reduce from the exact sum of what was sent"),
        "sum_ok": _truth("the all-reduce passed both checks"),
        "state_agrees": _truth("all workers hold the same bits after the step"),
        "skipped": _text("why the step was skipped; empty where it was not"),
    },
    "divergence": {
        "way": _text("how the step was taken instead"),
        "step": _integer("number of the step, from 0"),
        "loss": _number("mean loss at this way's own parameters, before the step; empty once they are not finite"),
        "parted": _number(
            "largest difference of its parameters, or moving average, from the right way's after the step"
        ),
    },
    "step_states": {
        "step": _integer("number of the step, from 0"),
        "worker": _integer("number of the worker"),
        "examples": _integer("examples that it worked on"),
        "what": _text(
            "gradient: of its own examples; sent, received: in the all-reduce; combined: the mean over all examples; "
            "then what it holds after the step"
        ),
        "layer": _text("name of the array of parameters"),
        "element": _integer("place in that array"),
        "value": _number("the number"),
    },
    "compare": {
        "n_workers": INPUTS["n_workers"],
        "message_bytes": INPUTS["message_bytes"],
        "algorithm": _text("who sends what to whom, with the parameters that it was told"),
        "makespan_s": ANSWERS["makespan_s"],
        "algbw_Bps": ANSWERS["algbw_Bps"],
        "busbw_Bps": ANSWERS["busbw_Bps"],
        "bound_share": _number("collective_bound_s / makespan_s: 1 where no algorithm on this network is faster"),
        "busiest_link": _text("the link that takes longest for the bytes that cross it"),
        "busiest_link_bytes": _integer("bytes that cross that link"),
        "rank": _integer("1 for the fastest of each N and size; those alike share one"),
        "guess": _text("why the time is no ground for a recommendation: the links are a ring's equivalent only"),
        "engine": INPUTS["engine"],
    },
    "crossovers": {
        "n_workers": INPUTS["n_workers"],
        "slower_above": _text("the algorithm to use up to this size"),
        "faster_above": _text("the one to use from there on"),
        "at_bytes": _integer("message size where both take the same time, interpolated"),
        "between_low_bytes": _integer("the largest size compared at which the first is ahead"),
        "between_high_bytes": _integer("the smallest size compared at which the second is"),
    },
    "numerics": {
        "n_workers": INPUTS["n_workers"],
        "dtype": INPUTS["dtype"],
        "accumulation": _text("type of every partial result, on the way and at the workers"),
        "algorithm": _text("who sends what to whom, with the parameters that it was told"),
        "n_elements": _integer("elements of each worker that were added"),
        "max_abs_error": _number("largest difference from the float64 result of the same numbers"),
        "rms_error": _number("the same, root mean square over the elements"),
        "relative_rms_error": _number("rms_error / root mean square of the result"),
        "workers_agree": ANSWERS["workers_agree"],
        "result": _integer("equal numbers within one N, dtype and accumulation are the same bits"),
        "changes_with_size": _truth("the first half of the message, reduced alone, comes out with other bits"),
    },
    "blame": {
        "rank": _integer("1 for the one of its kind that gains most at twice the speed"),
        "kind": _text(
            "link; links, of one class or alike in what they lack; card, all links of a network card or of a worker; "
            "worker; workers; window"
        ),
        "name": _text("which"),
        "n_links": _integer("links that change"),
        "n_workers": _integer("workers that change"),
        "makespan_s": _number("the time today"),
        "alike_gain_s": _number(
            "by how much it falls, simulated again, if they are as good as their best like, and of a window if there "
            "is none; empty if they are, or if that was not tried"
        ),
        "twice_gain_s": _number(
            "the same if they are twice as fast: bandwidth or reduce rate doubled, overheads and lateness halved"
        ),
        "no_latency_gain_s": _number("the same if their links are without latency"),
        "alike_by_path_s": _number(
            "what the path that ended last says of alike_gain_s, by the derivatives of the time, which is no less than "
            "is gained; where there are none, as under fair sharing, what the first of each kind would gain if the "
            "time went on as it does with a hundred-thousandth of the change, either way; empty otherwise"
        ),
        "twice_by_path_s": _number("the same of twice_gain_s"),
        "no_latency_by_path_s": _number("the same of no_latency_gain_s"),
        "path_changes": _truth("another path becomes the longest, so that something else is gained than this one says"),
    },
    "whatif": {
        "rank": _integer("1 for what takes least time"),
        "change": _text("what is changed in the scenario"),
        "makespan_s": _number("the time then; of the row without a change, today"),
        "gain_s": _number("by how much it falls"),
        "gain_share": _number("gain_s / the time today"),
        "cause": _text("the part of the path that changed most"),
        **{f"{part}_s": _number(f"seconds of {part} on the path that ended last") for part in PATH_PARTS},
        "error": _text("why there is no answer"),
    },
    "step": {
        "name": INPUTS["name"],
        "model": _text("the model, or the file that its layers come from"),
        "strategy": _text("ddp, zero-1 or fsdp: what is sharded, and what is sent"),
        "n_workers": INPUTS["n_workers"],
        "batch": _integer("examples of one worker in one pass"),
        "microbatches": _integer("passes whose gradients are added up before they are combined"),
        "sequence": _integer("tokens of an example"),
        "dtype": INPUTS["dtype"],
        "algorithm": INPUTS["algorithm"],
        "topology": INPUTS["topology"],
        "bucket_cap_bytes": _integer("a bucket of gradients closes when it holds as much"),
        "first_bucket_bytes": _integer("the same of the first one"),
        "prefetch": _integer("blocks of parameters that are gathered ahead"),
        "n_parameters": _integer("elements of all parameters"),
        "gradient_bytes": _integer("bytes of all gradients"),
        "n_collectives": _integer("collectives of a step"),
        "n_steps": _integer("steps that were timed, of which the means are told"),
        "step_s": _number("from the start of a step to the end of its last computation and collective"),
        "step_s_min": _number("the shortest step"),
        "step_s_max": _number("the longest step"),
        "compute_s": _number("what a worker computed, mean over workers"),
        "compute_s_max": _number("what the worker computed that computed longest"),
        "communication_s": _number("time in which a collective was under way"),
        "exposed_s": _number("of it, time in which a worker computed nothing, mean over workers"),
        "hidden_s": _number("of it, time in which a worker computed, mean over workers"),
        "idle_s": _number("time in which a worker neither computed nor a collective was under way, mean over workers"),
        "bound_s": _number("the step if every collective took what no algorithm takes less than"),
        "single_s": _number("what the same step takes one worker that is alone"),
        "efficiency": _number("single_s / step_s: 1 where a worker among many is as fast as alone"),
        "examples_per_s": _number("examples of all workers in a second"),
        "tokens_per_s": _number("tokens of all workers in a second"),
        "payload": INPUTS["payload"],
        "verified_elements": _integer(
            "elements that were verified in its collectives, times the workers that must hold them"
        ),
        "sum_ok": _truth("every collective passed both checks; empty where no numbers were carried"),
        "parameters_agree": _truth("after the update all workers that hold a parameter hold the same bits"),
        "parameters_ok": _truth("they are those of one process that takes the step, within rounding"),
        "error": ANSWERS["error"],
    },
    "buckets": {
        "group": _text("whose collective: the name of the scenario, or that of another group"),
        "number": _integer("its place in the stream of the group, from 0"),
        "what": _text("which bucket of gradients, or which block's parameters or gradients"),
        "collective": INPUTS["collective"],
        "bytes": _integer("the whole buffer of one worker"),
        "ready_s": _number("what it sends was ready on every worker"),
        "start_s": _number("it started: it was ready, and the one before had ended"),
        "end_s": _number("it had ended on every worker"),
        "exposed_s": _number("time in which it was under way and a worker computed nothing, mean over workers"),
    },
    "timeline": {
        "group": _text("whose: the name of the scenario, or that of another group"),
        "worker": _integer("who computed; empty for a collective of the whole group"),
        "kind": _text("forward, backward or update; or the collective"),
        "what": _text("the layer, or what was sent"),
        "start_s": _number("when it started"),
        "end_s": _number("when it had ended"),
    },
    "runs": {
        "run": _integer("number of the run, from 0: which part of each stream of random numbers it has"),
        "makespan_s": ANSWERS["makespan_s"],
        "algbw_Bps": ANSWERS["algbw_Bps"],
        "busbw_Bps": ANSWERS["busbw_Bps"],
    },
    "states": {
        "phase": _text("reduce-scatter or all-gather; start for the rows before the first step"),
        "step": _integer("step within the phase; empty for the start"),
        "worker": _integer("number of the worker"),
    },
}

#: Columns that are never empty, by their tables, each with the column that alone excuses it: why there is no result, or
#: whose time a piece of the path is that no transfer took.
NEVER_EMPTY: dict[str, dict[str, str | None]] = {
    "summary": {"n_workers": "error", "message_bytes": "error"},
    "links": {"link": None, "bytes": None},
    "path": {"src": "worker", "dst": "worker"},
    "compare": {"n_workers": None, "algorithm": None},
    "numerics": {"n_workers": None, "dtype": None, "algorithm": None},
    "whatif": {"makespan_s": "error"},
}
#: Tables of a run or a sweep; the others are those of studies.
_OF_STUDIES = {"compare", "crossovers", "numerics", "blame", "whatif", "step", "buckets", "timeline"}
#: Columns that some tables have only in some runs.
_IN_SOME_RUNS = {
    "summary": OF_SOME_RUNS,
    "links": OF_LINKS_IN_TROUBLE | OF_LINKS_TOGETHER,
    "workers": OF_WORKERS_IN_TROUBLE,
    "compare": OF_REPEATED_COMPARISONS,
    "whatif": OF_REPEATS,
    "step": OF_CHANCE,
    "runs": {"point": _integer("of a sweep: the row of the summary, from 0")},
}
RUN_TABLES = tuple(name for name in TABLES if name not in _OF_STUDIES)


def kind_of(table: str, column: str) -> Kind:
    """Kind of a column; a swept key is text as it was written, an element of a state is a value.

    >>> kind_of("summary", "makespan_s"), kind_of("summary", "network.bandwidth"), kind_of("states", "e0")
    ('number', 'text', 'value')
    """
    known: Mapping[str, Column] = TABLES[table] | _IN_SOME_RUNS.get(table, {})
    if column in known:
        return known[column].kind
    if table == "links" and column.startswith("bytes of "):  # one for each job
        return "integer"
    if table == "queues":  # the same
        return "number"
    return "value" if table == "states" else "text"
