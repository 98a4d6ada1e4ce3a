"""A scenario to start from, for ``ringnet init``."""

from __future__ import annotations

#: Every section once, in comments what else may stand there. It loads as it is.
TEMPLATE = """\
# A ring all-reduce. Change a number, and run it again:
#   ringnet check FILE     what would run, and every mistake
#   ringnet run FILE       time, bandwidth, bottleneck, and whether the sum is right
#   ringnet run FILE --set workers=16 --set network.latency='5 us'
# Every quantity needs its unit. MiB is 2^20 bytes, GB is 10^9 bytes, and 400 Gbit/s is 50 GB/s.
scenario_version: 1
name: my first ring

collective: all-reduce      # or reduce-scatter, all-gather
algorithm: ring             # or {name: channel-ring, n_channels: 4}, {file: schedule.xml}, {python: 'my.py:f'}
workers: 8
message: 64 MiB             # the whole buffer of one worker, for every collective
dtype: float32              # float64 float32 float16 bfloat16 int8 uint8 int32 int64
reduce: sum                 # or mean (with weights: [1, 3, ...] the weighted mean), max, min, prod

data: random                # or ramp, gradients.npy (leading axis: workers), [w0.npy, w1.npy, ...]
seed: 1                     # of random data
payload: full               # or {elements: 16} of each chunk, or none; the time is the same

network:
  topology: ring            # a private link to the next worker; or switch: a link up and a link down each
  bandwidth: 50 GB/s        # of each link and direction
  latency: 500 ns           # in place of both: link: nvlink4, or from `ringnet calibrate` {file: profile.yaml}
  # switching: store-and-forward      # on a switch; the rule is cut-through
  # sharing: fifo                     # or fair; auto is fair where a link has several senders
  # links_of: {3: {bandwidth: 5 GB/s}}            # all links into and out of worker 3
  # links: {3->4: {bandwidth: 5 GB/s, latency: 20 us}}

worker:
  sends: eager              # or rendezvous: a transfer starts when both sides are in the step
  send_overhead: 0 s
  recv_overhead: 0 s
  reduce_rate: 100 GB/s     # left out, reducing is free
  # exceptions: {5: {reduce_rate: 10 GB/s, start: 20 us}}    # start: never is a dead worker

# trouble:                  # what goes wrong, and what the collective does then
#   - {link: 0->*, down: {at: 1 ms, for: 2 s}}
#   - {worker: 1, dies: 2 ms}
# on_failure: {policy: shrink, detect: 1 s, agree: 10 ms}     # or wait, abort, spare

# Many runs from one file; a swept key need not stand above.
# sweep:
#   over:
#     workers: [2, 4, 8, 16]
#     message: {from: 1 KiB, to: 1 GiB, factor: 4}

# compare:                  # what `ringnet compare` and `ringnet numerics` look at; sizes: a sweep over message
#   algorithms: [ring, halving-doubling]    # or all
#   workers: [4, 8, 16]

# report:
#   tables: [summary, links, workers, transfers]
#   plots: [space-time, link-traffic]
#   figure: {width: 3.5 in, dpi: 300, font: DejaVu Serif, format: [pdf, svg]}
#   transfers: all          # rows are kept up to 200000 transfers otherwise
"""


def template() -> str:
    """Return the text of a commented scenario.

    Examples
    --------
    >>> from ringnet.scenario import loads
    >>> loads(template()).workers
    8
    """
    return TEMPLATE
