"""Print events and tables on consoles of any width.

On a terminal, an event wraps at words. A table that does not fit becomes a record, or two lines, for each row. A word
is folded only if it is wider than the console. If the output is not a terminal, each event and each row is one line of
any length, with two spaces or more between the cells, so that grep and awk can read it: nothing is cut or folded. If
COLUMNS is set, the output is that of a terminal of this width.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sluice.lines import joined_lines

_GAP = 2
"""Number of spaces between two columns."""
_INDENT = "    "
_WIDEST = 100
"""Maximum width to which the cells of a column are padded outside of a terminal. A longer cell moves the next ones."""
_LOG_WIDTH = 140
"""Width of pictures of progress outside of a terminal, in characters. Lines of text are not limited there."""
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def make_console(*, to_stderr: bool = False) -> Console:
    """Return a console, which wraps lines on a terminal only, or at the width that COLUMNS states."""
    console = Console(stderr=to_stderr)
    if not wraps(console):
        console.width = _LOG_WIDTH
        console.soft_wrap = True
    return console


def wraps(console: Console) -> bool:
    """Return True if lines wrap: on a terminal, and where the environment states a width as COLUMNS."""
    return console.is_terminal or os.environ.get("COLUMNS", "").isdigit()


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    justify: Literal["left", "right"] = "left"


def print_line(console: Console, label: Text, text: str | Text) -> None:
    """Print a label and a text. On a terminal the text wraps next to its label; elsewhere both are one line."""
    body = visible(text)
    if not wraps(console) or not 0 < label.cell_len <= console.width // 2:
        console.print(Text.assemble(label, body), highlight=False, soft_wrap=not wraps(console))
        return
    grid = Table.grid()
    grid.add_column(no_wrap=True, width=label.cell_len)
    grid.add_column(overflow="fold")
    grid.add_row(label, body)
    console.print(grid, highlight=False)


def print_detail(console: Console, name: str, value: str) -> None:
    """Print a named detail. An address, or another value of one word, is never broken, so that it can be copied."""
    if " " in value:
        print_line(console, _detail_label(name), value)
    else:
        print_command(console, name, value)


def print_command(console: Console, purpose: str, command: str) -> None:
    """Print a command with its purpose in one line of any length, so that it can be copied."""
    console.print(Text.assemble(_detail_label(purpose), visible(command)), highlight=False, soft_wrap=True)


def _detail_label(name: str) -> Text:
    return Text.assemble((f"{name:>12}", "dim"), "  ")


def print_entry(console: Console, label: Text, name: str, text: str) -> None:
    """Print a label, a name and a text in one line. If a terminal is too narrow, the text gets its own lines."""
    shown = visible(joined(text))
    named = Text.assemble(label, visible(name))
    if not wraps(console) or named.cell_len + _GAP + shown.cell_len <= console.width:
        print_line(console, Text(), Text.assemble(named, " " * _GAP, shown) if shown else named)
        return
    print_line(console, Text(), named)
    print_line(console, Text(_INDENT), shown)


def print_rows(
    console: Console,
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[str | Text]],
    *,
    title: str = "",
    dim: bool = False,
) -> None:
    """Print rows as a table, or as one record for each row if the table would have to fold words on a terminal.

    Args:
        title: the line above the rows.
        dim: True to print the names of the columns dim instead of bold.
    """
    named = [_shown_column(column) for column in columns]
    cells = [[visible(cell) for cell in row] for row in rows]
    style = "dim" if dim else "bold"
    if title:
        console.print(Text(visible(title).plain, style="italic"), soft_wrap=not wraps(console))
    if not wraps(console):
        _print_plain_lines(console, named, cells)
        return
    widths = _column_widths(console, named, cells)
    if widths is None:
        _print_records(console, named, cells, style)
    else:
        console.print(_table(named, cells, widths, style))


def _print_plain_lines(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> None:
    """Print the names of the columns and each row in one line. A line break in a cell becomes a space."""
    lines = [[column.name for column in columns], *([cell.plain for cell in row] for row in rows)]
    texts = [[Text(" ".join(cell.splitlines())) for cell in line] for line in lines]
    widths = [min(_WIDEST, max(cell.cell_len for cell in column)) for column in zip(*texts, strict=True)]
    for line in texts:
        for cell, column, width in zip(line, columns, widths, strict=True):
            space = " " * (width - cell.cell_len)
            cell.plain = space + cell.plain if column.justify == "right" else cell.plain + space
        row = (" " * _GAP).join(cell.plain for cell in line).rstrip()
        console.print(Text(row), highlight=False, soft_wrap=True)


def fits(console: Console, columns: Sequence[Column | str], rows: Sequence[Sequence[str | Text]]) -> bool:
    """Return True if a table has one line for each row, so that no cell wraps."""
    named = [_shown_column(column) for column in columns]
    measured = _measured(console, named, [[visible(cell) for cell in row] for row in rows])
    wanted = sum(max(cell.maximum for cell in column) for column in measured)
    one_line_each = not any("\n" in visible(cell).plain for row in rows for cell in row)
    return one_line_each and wanted + _GAP * (len(columns) - 1) <= console.width


def print_entries(
    console: Console, columns: Sequence[Column | str], rows: Sequence[Sequence[str | Text]], *, in_first_line: int
) -> None:
    """Print rows as a table, or each row in two or more lines if a cell would wrap on a terminal.

    The names of the columns come first, in the same way. The cells of the first lines are aligned if they fit.

    Args:
        in_first_line: number of cells in the first line of a row, if they fit.
    """
    if not wraps(console) or fits(console, columns, rows):
        print_rows(console, columns, rows)
        return
    names = [Text(_shown_column(column).name, style="bold") for column in columns]
    lines = [names, *([visible(cell) for cell in row] for row in rows)]
    widths = [max(cell.cell_len for cell in column) for column in list(zip(*lines, strict=True))[:in_first_line]]
    aligned = sum(widths) + _GAP * (len(widths) - 1) <= console.width
    indented = console.width - len(_INDENT)
    for cells in lines:
        first, others = cells[:in_first_line], [cell for cell in cells[in_first_line:] if cell.plain]
        if aligned:
            first = [_padded(cell, width) for cell, width in zip(first, widths, strict=True)]
        begin, *rest = _packed(first, console.width, indented)
        print_line(console, Text(), begin)
        for line in [*rest, *_packed(others, indented, indented)]:
            print_line(console, Text(_INDENT), line)


def _packed(cells: Sequence[Text], first_width: int, width: int) -> list[Text]:
    """Return cells as lines of at most a width. Only a cell that is longer itself makes a longer line.

    Args:
        first_width: width of the first line.
        width: width of the other lines.
    """
    lines: list[list[Text]] = []
    for cell in cells:
        limit = first_width if len(lines) < 2 else width
        if lines and sum(each.cell_len + _GAP for each in lines[-1]) + cell.cell_len <= limit:
            lines[-1].append(cell)
        else:
            lines.append([cell])
    return [Text(" " * _GAP).join(line) for line in lines]


def _padded(cell: Text, width: int) -> Text:
    padded = cell.copy()
    padded.pad_right(max(0, width - cell.cell_len))
    return padded


def visible(text: str | Text) -> Text:
    """Return a text with its control characters escaped (`\\x1b`), so that data cannot control a terminal."""
    if isinstance(text, str):
        return Text(text.translate(_CONTROLS))
    return text if not _CONTROLS.keys() & set(map(ord, text.plain)) else Text(text.plain.translate(_CONTROLS))


def joined(text: str) -> str:
    """Return the lines of a text as one line, with semicolons between them and one space between words."""
    return " ".join(joined_lines(text).split())


def one_line(text: str, width: int) -> str:
    """Return a text with its lines joined by semicolons, shortened to a width."""
    plain = visible(joined(text))
    plain.truncate(width, overflow="ellipsis")
    return plain.plain


def _shown_column(column: Column | str) -> Column:
    """Return a column with an escaped name, since names of columns may be data, too."""
    if isinstance(column, str):
        return Column(visible(column).plain)
    return Column(visible(column.name).plain, column.justify)


def _column_widths(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int] | None:
    """Return the widths of columns in a table that fits and folds no word, or None if there are none.

    Each column gets the width of its longest word. The columns that need more share the rest equally.
    """
    measured = _measured(console, columns, rows)
    wanted = [max(cell.maximum for cell in column) for column in measured]
    widths = [max(cell.minimum for cell in column) for column in measured]
    left = console.width - _GAP * (len(columns) - 1) - sum(widths)
    if left < 0:
        return None
    narrow = [index for index in range(len(columns)) if widths[index] < wanted[index]]
    while left and narrow:
        share = max(1, left // len(narrow))
        for index in narrow:
            more = min(share, wanted[index] - widths[index], left)
            widths[index] += more
            left -= more
        narrow = [index for index in narrow if widths[index] < wanted[index]]
    return widths


def _measured(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[list[Measurement]]:
    """Return, for each column, the minimum and maximum widths of its name and its cells."""
    return [
        [Measurement.get(console, console.options.update(width=100_000), cell) for cell in column]
        for column in zip(*([Text(column.name) for column in columns], *rows), strict=True)
    ]


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Text]], widths: Sequence[int], style: str) -> Table:
    table = Table(box=None, header_style=style, padding=(0, _GAP, 0, 0), pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(Text(column.name), justify=column.justify, width=width, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _print_records(
    console: Console, columns: Sequence[Column], rows: Sequence[Sequence[RenderableType]], style: str
) -> None:
    for index, row in enumerate(rows):
        record = Table.grid(padding=(0, _GAP, 0, 0))
        record.add_column(style=style, overflow="fold", max_width=max(1, console.width // 3))
        record.add_column(overflow="fold")
        for column, cell in zip(columns, row, strict=True):
            record.add_row(Text(column.name), cell)
        console.print(Padding(record, (0 if index == 0 else 1, 0, 0, _GAP)))
