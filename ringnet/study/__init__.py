"""Many scenarios: on all cores of this machine, or on a cluster by a switch; a killed sweep goes on.

=============  ==========================================================================================
points         `run_points`: every point of a sweep, those that are kept already left out
running        `run`: a scenario from Python, as data frames and on disk
kept           `default_cache_dir`: where finished points are kept
cost, fitting  roughly how long points take, and how many fit into memory at once
compare        algorithms over sizes and numbers of workers; numerics: what rounding does to sums
=============  ==========================================================================================

Nothing is imported here: pandas and joblib take half a second, and `ringnet check` does not need them.
"""
