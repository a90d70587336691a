"""The messages about waivers, in each report and in Slack."""

import io
from typing import Any

from rich.console import Console

from cli.run.report import print_report, print_status
from sluice.approval.decisions import ApprovalRecord
from sluice.approval.waivers import REASON_LIMIT
from sluice.checks.verdicts import count_verdicts
from sluice.contracts.run import Notification, RunResult, RunStatus
from sluice.presentation.decisions import describe_decisions, describe_state
from sluice.presentation.markdown import markdown_report
from sluice.presentation.web_ui import details
from tests.harness.slack import blocks, headline
from tests.harness.waivers import UNIQUE, UNTIL, WAIVED, WAIVER, verdict, yes


def test_waived_verdicts_are_counted_apart() -> None:
    checks = [verdict(0), verdict(1), verdict(2, "pass")]
    assert count_verdicts(checks) == "1 pass, 2 fail"
    assert count_verdicts(checks, 1) == "1 pass, 2 fail (1 waived)"
    assert count_verdicts(checks, 2) == "1 pass, 2 fail (waived)"


HOSTILE = "<!channel> *bold* | `code` [link](http://x) @here"


def published(**waiver: Any) -> RunResult:
    waived = WAIVED.model_copy(update=waiver)
    fields = {"run_id": "r1", "workflow_id": "w1", "pipeline": "p", "outcome": "published"}
    return RunResult(**fields, checks=[verdict(0), verdict(2, "pass")], waived=[waived])


def printed(result: RunResult) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_report(result, "link", console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_waiver_is_loud_in_each_report() -> None:
    line = "unique(id) of t.x failed, waived by ana until 2026-12-01 23:59 UTC: late feed"
    result = published()
    terminal = printed(result)
    assert f"WAIVED  {line}" in terminal and "fail WAIVED" in terminal and "1 pass, 1 fail (waived)" in terminal
    markdown = markdown_report(result, "link")
    assert f"- **WAIVED** {line}" in markdown and "| **fail WAIVED** | t.x |" in markdown and "(waived)" in markdown
    web_ui = details(RunStatus(stage="ended", events=[], result=result))
    assert f"- **WAIVED** {line}" in web_ui and "**fail WAIVED**" in web_ui
    message = Notification(result=result)
    assert headline(message) == ":white_check_mark: p: published, 1 failed check WAIVED"
    assert f"WAIVED {line}" in str(blocks(message, "link")) and "1 fail (waived)" in str(blocks(message, "link"))
    later = published(run_id="r0", workflow_id="w0")
    assert "late feed (granted for w0)" in printed(later) and "granted" not in terminal


def test_a_hostile_reason_controls_no_report() -> None:
    result = published(reason=HOSTILE)
    (section,) = (each for each in blocks(Notification(result=result), "l")[1:] if HOSTILE in each["text"]["text"])
    assert section["text"]["type"] == "plain_text", "no markup and no mention is read in it"
    markdown = markdown_report(result, "link")
    assert "&lt;!channel>" in markdown and r"\`code\`" in markdown and r"\[link\]" in markdown and "@" not in markdown
    assert "\\x1b" in printed(published(reason="a\x1b[2J")) and "\x1b[2J" not in printed(published(reason="a\x1b[2J"))


def test_many_long_reasons_fit_into_a_message_of_slack() -> None:
    result = published()
    many = [WAIVED.model_copy(update={"reason": "x" * REASON_LIMIT, "index": index}) for index in range(20)]
    sections = blocks(Notification(result=result.model_copy(update={"waived": many})), "l")
    assert all(len(each["text"]["text"]) <= 3000 for each in sections) and "and 12 more" in sections[1]["text"]["text"]


def test_details_in_the_web_ui_stay_short() -> None:
    many = [WAIVED.model_copy(update={"reason": "x" * REASON_LIMIT, "index": index}) for index in range(20)]
    shown = details(RunStatus(stage="ended", events=[], result=published().model_copy(update={"waived": many})))
    assert len(shown) < 2000 and "- and 15 more" in shown


def test_a_run_that_waits_says_what_to_waive_and_how() -> None:
    record = ApprovalRecord(required=1, to_waive=[UNIQUE], decisions=[])
    result = RunResult(run_id="r1", workflow_id="w1", pipeline="p", checks=[verdict(0)], approval=record)
    status = RunStatus(stage="waiting for approval", events=[], result=result, deadline=UNTIL)
    assert describe_state(status) == "waiting for approval (0 of 1, a failed check waits for a waiver)"
    command = "python run_workflow.py approve w1 --waive 'unique(id)' --reason ... --until DATE"
    console = Console(file=io.StringIO(), width=160)
    print_status(status, "", console)
    assert isinstance(console.file, io.StringIO)
    assert command in console.file.getvalue() and "unique(id) of t.x failed" in console.file.getvalue()
    message = Notification(result=result, waiting_until=UNTIL)
    assert headline(message) == ":raised_hand: p waits for a waiver: its audit failed"
    assert f"`{command}`" in str([each["text"]["text"] for each in blocks(message, "l")])[:4000].replace("\\'", "'")
    assert "unique(id) of t.x failed" in details(status)
    decided = record.model_copy(update={"decisions": [yes(WAIVER, at=UNTIL, reason="late feed")]})
    assert describe_decisions(decided).endswith(": late feed (waives unique(id) of t.x until 2026-12-01 23:59 UTC)")
