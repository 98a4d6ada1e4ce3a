"""Many scenarios: on all cores of this machine, or on a cluster by a switch; a killed sweep goes on.

==============  =========================================================================================
points          `run_points`: all points of a sweep, those that are kept and the rest
outcome         what one point comes to, and how it is kept on disk
local, cluster  where points are computed; on this machine as many at once as fit into memory
cost            roughly how long points take
parts           studies of algorithms, in parts that are kept as points are
repeat          repeated runs, in blocks that are kept, until there are enough of them
compare         algorithms over sizes and numbers of workers; compared_runs: on a network that draws its numbers
nccl            NCCL beside a comparison, and the best of it as a file for NCCL's tuner
numerics        what rounding does to sums
steps           a sweep over training steps
blame, whatif   what a run gains from what is made better, and from changes of its scenario
==============  =========================================================================================

Nothing is imported here: pandas and joblib take half a second, and `ringnet check` does not need them.
"""
