"""Texts of any length in places that have one line."""


def joined_lines(text: str) -> str:
    """Return the lines of a text as one line, with semicolons between them. Empty lines are left out."""
    return "; ".join(filter(None, map(str.strip, text.splitlines())))


def shortened_line(text: str, limit: int) -> str:
    """Return a text in one line of at most `limit` characters. A text that is cut ends with `…`."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
