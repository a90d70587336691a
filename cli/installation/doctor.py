"""The command `doctor`: check an installation, and report what is missing and how to get it."""

import asyncio
import json
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.text import Text

from cli.exit_codes import UNREACHABLE, WRONG_USE
from cli.layout import make_console, print_line
from cli.options import AsJson
from runtime.installation.examination import examine
from sluice.contracts.examination import Finding, FindingState
from sluice.environment_files import read_environment
from sluice.errors import SluiceError
from sluice.settings import read_settings
from web.examination import examine_page

_COLOURS: dict[FindingState, str] = {"ok": "green", "off": "dim", "warning": "yellow", "failed": "red"}
_SERVICES = ("Temporal", "worker")
"""Parts without which the rest cannot be checked."""


def doctor(
    as_json: AsJson = False,
) -> None:
    """Check the whole installation, and report what is missing and how to get it."""
    console = make_console(to_stderr=as_json)
    try:
        environment = read_environment()
        findings = asyncio.run(examine(environment))
        if findings[0].state == "ok":  # the settings can be read
            findings += examine_page(read_settings(environment))
    except SluiceError as error:
        findings = [Finding(part="settings", state="failed", detail=str(error))]
    if as_json:
        fields = [finding.model_dump(mode="json") for finding in findings]
        print(json.dumps({"findings": fields, "exit_code": _exit_code(findings)}))
    else:
        _print(console, findings)
    raise typer.Exit(_exit_code(findings))


def _print(console: Console, findings: Sequence[Finding]) -> None:
    for finding in findings:
        label = Text.assemble((f"{finding.state:8}", _COLOURS[finding.state]), f"{finding.part}: ")
        print_line(console, label, finding.detail)
        if finding.remedy:
            print_line(console, Text(" " * 8, style="dim"), finding.remedy)
    failed = sum(finding.state == "failed" for finding in findings)
    warnings = sum(finding.state == "warning" for finding in findings)
    console.print(f"{failed} failed, {warnings} with a warning, of {len(findings)}", highlight=False)


def _exit_code(findings: Sequence[Finding]) -> int:
    failed = [finding.part for finding in findings if finding.state == "failed"]
    if not failed:
        return 0
    return UNREACHABLE if set(failed) & set(_SERVICES) else WRONG_USE
