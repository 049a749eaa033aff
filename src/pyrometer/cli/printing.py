"""Text on stdout, whatever its encoding has characters for."""

import sys


def print_text(text: str) -> None:
    """Print a text that ends with its own line; what the encoding does not have is spelled out."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), end="")
