"""What a run means: what is concluded from its trace, and what is told of it.

=============  ==========================================================================================
metrics        what is concluded from a trace: time, what it is made of, bytes
upgrades       links and workers made better: what is alike, what each becomes, what the path says of it
blame          who holds a run back, by simulating again with whom to suspect made better
bounds         what no run can beat; closed_form, formulas: what a formula says
critical_path  the path that ended last, walked back; path_records: over what; derivatives: what it says
sharers        what channels of a worker share; worker_time, utilisation: what workers and links did when
routes         which pairs of workers took which links, and what met on them
spread         many runs: figures of their times, each with the interval that it is known to
frames         a trace as tables: links, workers, queues, states
replay         the schedule without time: what every worker must hold, what rounding does
verification   whether the sum is right, and how that is known
result         one run put together: `RunResult`, with the row of the summary
steps          a step of training in numbers; training: a training, step by step
answer         what is told of a run, in words
winners        which algorithm to use, for which sizes
nccl           what NCCL believes of a machine: its constants, its cost model, its choice
calibration    from measured times to a machine's latency and bandwidth, and back
=============  ==========================================================================================
"""
