"""Pure: a run in, values for programs and reports out."""
