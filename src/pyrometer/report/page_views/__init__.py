"""The views of the HTML page as data: one pure step from what was observed.

A view is a list of blocks, and ``page_assets`` knows how to show each kind of block. Figures are those of
the other reports, from the same values; texts out of a run are made to print here, once.
"""
