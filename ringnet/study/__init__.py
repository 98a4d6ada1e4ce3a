"""Many scenarios: on all cores of this machine, or on a cluster by a switch; a killed sweep goes on.

==============  =========================================================================================
points          `run_points`: all points of a sweep, those that are kept and the rest
outcome         what one point comes to, and how it is kept on disk
local, cluster  where points are computed; on this machine as many at once as fit into memory
cost            roughly how long points take
parts           studies of algorithms, in parts that are kept as points are:
compare         algorithms over sizes and numbers of workers; tuner: the best of them for NCCL
numerics        what rounding does to sums
blame, whatif   what a run gains from what is made better, and from changes of its scenario
==============  =========================================================================================

Nothing is imported here: pandas and joblib take half a second, and `ringnet check` does not need them.
"""
