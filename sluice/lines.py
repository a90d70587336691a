"""Texts of several lines in places that have one line."""


def joined_lines(text: str) -> str:
    """Return the lines of a text as one line, with semicolons between them. Empty lines are left out."""
    return "; ".join(filter(None, map(str.strip, text.splitlines())))
