"""Pyrometer inside other people's programs: the flag for their command line, the plugin for their tests."""
