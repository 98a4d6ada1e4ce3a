"""What a script or a notebook calls: everything that the commands do, as functions that take and return objects.

==========  =====================================================================================================
runs        `simulate`, `run`, `simulate_step`: a scenario, a path, a mapping or a schedule to its result
result      `Result`: what a run means, with its pictures, its folder, its page, and whom to blame
questions   `compare`, `numerics`, `blame`, `whatif`, `draw`
study       `Study`, what they return: a table, notes, a picture
machines    `calibrate`, `predict`: logs to a profile, a profile to times
given       what may stand for a scenario
progress    how far long work is, where a notebook shows it
==========  =====================================================================================================
"""
