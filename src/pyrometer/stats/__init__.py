"""Pure numbers."""
