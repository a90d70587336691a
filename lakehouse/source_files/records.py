"""Find a record in a source file by its text."""

from lakehouse.source_files.csv_content import whole_lines
from lakehouse.source_files.identify import describe
from lakehouse.source_files.text import decoded
from sluice.errors import InvalidInput


def find_line(path: str, encoding: str, record: str) -> int | None:
    """Return the number of the line, from 1, at which a record first begins in a file; None if it does not occur."""
    plain = record.replace("\r\n", "\n").rstrip("\n")
    if not plain:
        return None
    wanted = f"\n{plain}\n"
    lines = 0
    try:
        for text in whole_lines(decoded(path, describe(path).read(), encoding)):
            position = f"\n{text}\n".find(wanted)
            if position >= 0:
                return lines + text.count("\n", 0, position) + 1
            lines += text.count("\n")
    except InvalidInput:  # another problem of the file, reported elsewhere
        return None
    return None
