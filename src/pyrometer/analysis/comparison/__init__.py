"""Two runs, or two groups of runs, compared: values only, the words are in ``report``."""
