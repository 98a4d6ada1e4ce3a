"""One HTML page of a run, a sweep or a study: opens from disk, asks nobody for anything, and answers to the pointer.

===========  ============================================================================================
document     the page around it: what is said in words, links to the files, the scenario, data and script
packing      tables as bytes that a browser unpacks, in the smallest types; numbers that no run writes are refused
run          what is shown of a single run: its tables, its network laid out, very many transfers as shares of time
curves       what is shown of a sweep and of a comparison: lines over a key, a map of who is fastest
static       style and script of the browser, in chapters that are put together in the order of `document.SCRIPT`
===========  ============================================================================================

No text of a scenario or of a table is ever markup: words are escaped, and tables travel as base64.
"""
