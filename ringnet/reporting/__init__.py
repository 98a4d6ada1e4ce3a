"""What a run says, on disk and in pictures: tables, plots, lines of text; it takes results, never a Scenario.

=============  ==========================================================================================
columns        every column of every table: its kind, its meaning, its unit in its name
results        `Results`: all tables of one run or sweep in memory; `diff_results`: two of them side by side
tables         one table to a CSV file and back, each column of the type that its kind asks for
atomic         folders and files that are written whole or not at all; the reduced arrays as ``.npy``
storage        a folder of results: tables, plots and ``run.json``, written, read, drawn again, as a page
sweeps         what a sweep varies, and its points as lines over one key
text           sweeps and jobs in words, for a terminal, and as HTML for a notebook
held           who holds how much of each chunk, from the table of transfers alone
look           how a figure shall look, as a user asks for it
perfetto       a run as a trace for ui.perfetto.dev
plots          every plot, drawn from the tables alone
page           one page of results for a browser, with its script and style
=============  ==========================================================================================

Nothing is imported here: pandas and matplotlib cost a second, and `ringnet --help` does not need them.
"""
