"""Print verdicts: as a table if each fits in one line, otherwise as a list in which failures come first."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from cli.layout import fits, print_line, print_rows
from sluice.approval.waivers import WaivedCheck
from sluice.audit.observed import describe_observed
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import RunResult
from sluice.presentation.waivers import count_audit, shown_verdict, waiver_of
from sluice.sizes import format_count, format_size

WAIVED_STYLE = "bold magenta"
_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "error": "red"}
_INDENT = " " * 10
_LISTED_PASSES = 20
"""Maximum number of passed checks that are listed. If there are more, only their number is printed."""


def print_checks(console: Console, result: RunResult, *, with_files: bool) -> None:
    """Print all verdicts of a run."""
    title = f"audit: {count_audit(result)}"
    rows = [
        (
            Text(shown_verdict(check, result.waived), style=_style(check, result.waived)),
            check.table,
            check.title,
            check.message or describe_observed(check),
            check.expected,
            _answered(check) if with_files else check.answered_by or "not answered",
        )
        for check in result.checks
    ]
    columns = ("verdict", "table", "check", "observed", "expected", "answered by")
    if fits(console, columns, rows):
        print_rows(console, columns, rows, title=title)
        return
    print_line(console, Text(), Text(title, style="italic"))
    print_verdicts(console, result.checks, result.waived)


def print_verdicts(console: Console, checks: Sequence[CheckResult], waived: Sequence[WaivedCheck] = ()) -> None:
    """Print verdicts: failures and errors in full, then warnings, then passed checks or their number."""
    for check in (*_of(checks, "error"), *_of(checks, "fail"), *_of(checks, "warn")):
        print_verdict(console, check, waived)
    passes = _of(checks, "pass")
    if len(passes) > _LISTED_PASSES:
        print_line(console, _label("pass", _COLOURS["pass"]), f"{format_count(len(passes), 'check')}; --json lists all")
        return
    for check in passes:
        print_verdict(console, check)


def print_verdict(console: Console, check: CheckResult, waived: Sequence[WaivedCheck] = ()) -> None:
    """Print one verdict with its evidence."""
    print_line(console, _label(shown_verdict(check, waived), _style(check, waived)), _evidence(check))


def describe_verdict(check: CheckResult) -> str:
    """Return the check with its observed and expected values."""
    evidence = check.message or f"observed {describe_observed(check)}, expected {check.expected}"
    return f"{check.table} {check.title}: {evidence}"


def _label(verdict: str, style: str) -> Text:
    return Text.assemble(_INDENT, (f"{verdict:5}", style), " ")


def _evidence(check: CheckResult) -> Text:
    text = Text(describe_verdict(check))
    return text.append(f" ({check.answered_by})" if check.answered_by else "", style="dim")


def _style(check: CheckResult, waived: Sequence[WaivedCheck] = ()) -> str:
    return WAIVED_STYLE if waiver_of(check, waived) else _COLOURS[check.verdict]


def _of(checks: Sequence[CheckResult], verdict: str) -> list[CheckResult]:
    return [check for check in checks if check.verdict == verdict]


def _answered(check: CheckResult) -> str:
    """Return the engine that answered a check, and the number of files and bytes that it read."""
    read = f", {check.files} file{'s' * (check.files != 1)}, {format_size(check.bytes)}" if check.files else ""
    return f"{check.answered_by or 'not answered'}{read}"
