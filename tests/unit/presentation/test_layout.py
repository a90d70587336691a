"""Output on consoles of any width: words are not split, events are whole lines, and wide tables become records."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cli.layout import (
    Column,
    make_console,
    one_line,
    print_command,
    print_detail,
    print_entries,
    print_line,
    print_rows,
)
from cli.pipeline.checks import list_checks
from devstack.stack import ROOT
from sluice.presentation.known_checks import known_checks

COLUMNS = ("verdict", "table", "check", "expected")
ROWS: list[tuple[str, ...]] = [
    ("pass", "sales.orders", "row_count", "at least 1"),
    ("fail", "sales.order_lines_of_the_archive", "accepted_values(state)", "one of new, paid, sent, returned"),
]


def printed(width: int, rows: list[tuple[str, ...]], *, terminal: bool = True) -> list[str]:
    output = io.StringIO()
    print_rows(Console(file=output, width=width, force_terminal=terminal, color_system=None), COLUMNS, rows)
    return output.getvalue().splitlines()


def words(lines: list[str]) -> set[str]:
    return {word for line in lines for word in line.split()}


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_word_is_folded(width: int) -> None:
    lines = printed(width, ROWS)
    assert max(map(len, lines)) <= width
    assert words(lines) >= {word for row in ROWS for cell in row for word in cell.split()}


@pytest.mark.parametrize("terminal", [True, False])
def test_a_detail_wraps_beside_its_name_and_what_is_copied_stays_one_line(terminal: bool) -> None:
    output = io.StringIO()
    console = Console(file=output, width=40, force_terminal=terminal, color_system=None)
    print_detail(console, "guarantee", "readers see the whole load or nothing of it")
    print_detail(console, "Web UI", f"http://127.0.0.1:8233/{'x' * 40}")
    print_command(console, "to release", f"python run_workflow.py quarantine release {'y' * 36}")
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    wrapped = ["   guarantee  readers see the whole load", "              or nothing of it"]
    whole = ["   guarantee  readers see the whole load or nothing of it"]
    assert lines[:-2] == (wrapped if terminal else whole)
    assert lines[-2:] == [
        f"      Web UI  http://127.0.0.1:8233/{'x' * 40}",
        f"  to release  python run_workflow.py quarantine release {'y' * 36}",
    ]


def test_a_table_that_fits_is_one_line_for_each_row() -> None:
    lines = printed(120, ROWS)
    assert [line.split()[0] for line in lines] == ["verdict", "pass", "fail"]


def test_a_table_wraps_at_words_where_that_is_enough() -> None:
    lines = printed(90, ROWS)
    assert lines[0].split() == list(COLUMNS) and len(lines) > 3


def test_a_table_that_cannot_fit_becomes_records() -> None:
    lines = printed(60, ROWS)
    assert [line.split() for line in lines[:2]] == [["verdict", "pass"], ["table", "sales.orders"]]
    assert "" in [line.strip() for line in lines]  # an empty line between two records


def test_only_a_word_wider_than_the_console_is_folded() -> None:
    lines = printed(40, [("pass", "t", "z" * 70, "1")])
    assert max(map(len, lines)) <= 40 and sum(line.count("z") for line in lines) == 70


def test_names_of_columns_are_data_too() -> None:
    """They are printed literally even if they are markup of the printing library."""
    names = ("price [/unit]", "load [kg/h]", "\x1b[2Jx")
    for width in (200, 20):
        output = io.StringIO()
        console = Console(file=output, width=width, force_terminal=True, color_system=None)
        print_rows(console, names, [("1", "2", "3")])
        text = "".join(output.getvalue().split())
        assert "\x1b" not in text and "\\x1b" in text
        assert width == 20 or ("[/unit]" in text and "[kg/h]" in text)


def test_a_record_shows_its_values_beside_the_longest_names() -> None:
    output = io.StringIO()
    console = Console(file=output, width=80, force_terminal=True, color_system=None)
    print_rows(console, ["x" * 90, "id"], [("the value", "7")])
    assert "the value" in output.getvalue() and "7" in output.getvalue()


@pytest.mark.parametrize("label", ["", "a label that is as wide as the console"])
def test_a_line_whose_label_leaves_no_room(label: str) -> None:
    output = io.StringIO()
    print_line(Console(file=output, width=40, force_terminal=True, color_system=None), Text(label), " the text")
    assert " ".join(output.getvalue().split()) == f"{label} the text".strip()


def test_no_rows_is_the_heading_alone() -> None:
    assert printed(80, []) == ["verdict  table  check  expected"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_wraps_on_a_terminal_alone(*, terminal: bool) -> None:
    output = io.StringIO()
    console = Console(file=output, width=40, force_terminal=terminal, color_system=None)
    print_line(console, Text("07:32:54  "), "writing  the branch wap/orders/1/a1 that is new")
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    if terminal:
        assert lines == ["07:32:54  writing  the branch", "          wap/orders/1/a1 that is new"]
    else:
        assert lines == ["07:32:54  writing  the branch wap/orders/1/a1 that is new"]


def test_what_controls_a_terminal_is_shown_and_not_sent() -> None:
    hostile = "\x1b]0;title\x07\x1b[2Jgone\r\x9b1A"
    lines = printed(120, [("pass", "t", hostile, "1")])
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for line in lines for character in line)
    assert "\\x1b" in lines[1]
    output = io.StringIO()
    print_line(Console(file=output, width=120, force_terminal=True, color_system=None), Text("a  "), hostile)
    assert "\x1b]0" not in output.getvalue() and "\\x1b]0;title\\x07" in output.getvalue()


def test_a_text_is_shortened_to_one_line() -> None:
    assert one_line("a job\nthat  writes", 40) == "a job; that writes"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


WIDE: list[tuple[str, ...]] = [
    ("pass", "sales.orders", "row_count", "at least 1"),
    ("fail", "sales.order_lines_of_the_archive", "accepted_values(state)", "one of new, paid,\nsent " + "x" * 300),
    ("warn", "t." + "表" * 10, "", ""),
]


def test_rows_are_one_line_each_outside_of_a_terminal() -> None:
    """Programs read them: the width of a terminal decides nothing, and nothing is cut or folded."""
    for width in (20, 80, 1000):
        lines = printed(width, WIDE, terminal=False)
        assert [re.split(" {2,}", line) for line in lines] == [
            list(COLUMNS),
            list(WIDE[0]),
            [*WIDE[1][:3], " ".join(WIDE[1][3].split())],
            ["warn", WIDE[2][1]],
        ]
        output = io.StringIO()
        console = Console(file=output, width=width, force_terminal=False)
        print_entries(console, COLUMNS, WIDE, in_first_line=1)
        assert output.getvalue().splitlines() == lines
    assert len({cell_len(line.split("row_count")[0]) for line in lines[1:2]} | {lines[2].index("accepted")}) == 1


def test_numbers_are_aligned_outside_of_a_terminal_too() -> None:
    output = io.StringIO()
    rows = [("a", "1"), ("b", "1,000"), ("c" * 120, "7")]
    print_rows(Console(file=output, force_terminal=False), ["table", Column("rows", "right")], rows)
    lines = output.getvalue().splitlines()
    assert {len(line) for line in lines[:3]} == {100 + 2 + 5} and lines[3] == f"{'c' * 120}      7"


def test_only_the_layout_decides_where_lines_end() -> None:
    """A command with a table or a console of its own would wrap otherwise than all others."""
    own = re.compile(r"rich\.(?:table|columns|panel|padding)|\bConsole\(|console\.(?:width|soft_wrap) = ")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "cli").rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if path.name != "layout.py" and own.search(line)
    ]
    assert not wrong, f"print by cli/layout.py: {wrong}"


def test_each_check_is_one_line_in_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    list_checks()
    lines = capsys.readouterr().out.splitlines()
    for check in known_checks():
        (line,) = (line for line in lines if line.split()[:1] == [check.name])
        assert check.meaning in line and line.endswith(check.proof)
    assert len(lines) == 1 + len(known_checks()) + 3


def test_a_stated_width_holds_in_a_pipe_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    list_checks()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert words(lines) >= {word for check in known_checks() for word in check.meaning.split()}
    monkeypatch.setenv("COLUMNS", "wide")
    list_checks()
    assert max(map(len, capsys.readouterr().out.splitlines())) > 80


@pytest.mark.parametrize("to_stderr", [True, False])
def test_a_console_of_a_pipe_wraps_no_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, to_stderr: bool
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = "word " * 100
    make_console(to_stderr=to_stderr).print(text)
    assert text in "".join(capsys.readouterr())


@pytest.mark.parametrize("width", [80, 100, 200])
def test_entries_take_at_most_two_lines_each_and_so_do_the_names_of_their_columns(width: int) -> None:
    output = io.StringIO()
    rows = [
        (f"data/loans/2026/loans_of_the_day_{day:02}.csv", "library.loans", "published", "x" * 50) for day in (1, 2)
    ]
    console = Console(file=output, width=width, force_terminal=True, color_system=None)
    print_entries(console, ("file", "table", "outcome", "run"), rows, in_first_line=1)
    lines = output.getvalue().splitlines()
    assert len(lines) == (3 if width > 100 else 6) and max(map(len, lines)) <= width
    names = [["file"], ["table", "outcome", "run"]]
    assert width > 100 or [line.split() for line in lines[:4]] == [*names, [rows[0][0]], list(rows[0][1:])]


def test_the_first_lines_of_entries_are_aligned_where_they_fit() -> None:
    output = io.StringIO()
    console = Console(file=output, width=40, force_terminal=True, color_system=None)
    rows = [("orders-1", "published", "word " * 10), ("o-2", "running", "word " * 10)]
    print_entries(console, ("run", "state", "what"), rows, in_first_line=2)
    lines = output.getvalue().splitlines()
    assert [line.rstrip() for line in lines if not line.startswith("    ")] == [
        "run       state", "orders-1  published", "o-2       running",
    ]  # fmt: skip


def test_no_cell_is_broken_where_the_first_line_does_not_fit() -> None:
    columns = ("run", "pipeline", "created", "kept until", "reason")
    row = ("r" * 36, "orders", "2026-11-29 03:12 UTC", "2026-12-13 03:12 UTC", "the audit failed " * 6)
    output = io.StringIO()
    console = Console(file=output, width=80, force_terminal=True, color_system=None)
    print_entries(console, columns, [row], in_first_line=4)
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    assert lines[:2] == ["run  pipeline  created  kept until", "    reason"]
    assert lines[2:4] == [f"{row[0]}  {row[1]}  {row[2]}", f"    {row[3]}"]
    assert " ".join(each.strip() for each in lines[4:]) == row[4].strip()


def test_a_line_of_the_rest_fits_beside_its_indent() -> None:
    columns = ("run", "state", "started", "duration", "what")
    row = ("01a22931-54ac-7a6c-9a0f-2d2c6e1f4b11", "published, then rolled back by shifts-6fdfff896e78")
    output = io.StringIO()
    console = Console(file=output, width=80, force_terminal=True, color_system=None)
    print_entries(console, columns, [(*row, "2026-11-29 21:24 UTC", "51 s", "care.shifts")], in_first_line=4)
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80 and "    51 s" in lines, "a duration is not broken"
