"""Reads the sources of a project or package, without running them."""
