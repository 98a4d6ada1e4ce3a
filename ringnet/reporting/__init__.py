"""What a run says, on disk and in pictures: tables, plots, lines of text; it takes results, never a Scenario.

=============  ==========================================================================================
columns        every column of every table, with its kind and its meaning
results        `write_results`, `read_results`: a folder of tables and plots, whole or not at all
outputs        `save_outputs`: the reduced arrays as ``.npy``
comparison     `diff_results`: what was changed between two runs, and what that changed in the answer
plots          `PLOTS`, `draw_plots`: every plot, drawn from the tables alone
text, html     the answer as lines of text, and as a table for a notebook
=============  ==========================================================================================

Nothing is imported here: pandas and matplotlib cost a second, and `ringnet --help` does not need them.
"""
