"""Templates: nothing inline, every form has the token, and hostile values are text on every page."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from devstack.stack import ROOT
from runtime.backfills.list_backfills import ListedBackfill
from runtime.publishing.rollback_plan import PlannedRollback
from runtime.run.listed_run import ListedRun
from runtime.schedules.list_schedules import ListedSchedule
from sluice.approval.decisions import ApprovalRecord, Decision, RefusedDecision
from sluice.approval.waivers import WaivableCheck, WaivedCheck, Waiver
from sluice.checks.verdicts import BadRowsQuery, CheckResult
from sluice.contracts.arrivals import ArrivalEntry, Batch, BatchRef, ZoneStatus
from sluice.contracts.backfill import BackfillState, BackfillStatus, PartitionNote
from sluice.contracts.existing_rows import Restore
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.contracts.rollback import PlanRollbackResult
from sluice.contracts.run import RunResult, RunStatus, StageEvent
from sluice.contracts.schedules import MissedStarts, StartScheduledInput
from sluice.contracts.starting import PipelineText
from sluice.contracts.table_changes import TableChange
from sluice.contracts.table_diffs import (
    ChangedCell,
    ChangedRow,
    ColumnChanges,
    DiffSide,
    DiffTablesResult,
    PartitionChanges,
    RowDifferences,
    TableDiffResult,
    TableKey,
)
from sluice.pipeline.model import Pipeline
from sluice.publishing.freshness import Freshness
from sluice.roles import Role
from web.access import Visitor
from web.actions import action_refusal
from web.approval.signing import SigningView
from web.approval.waiting import awaited_decision
from web.arrivals.zone_view import BatchView
from web.attention import Attention
from web.audit.history import CheckLines, HeatCell, HeatMap
from web.audit.verdicts import LOOKS, WORDS, count_verdict_looks, view_verdicts
from web.backfills.views import BackfillView
from web.lake.history import Publication, RowsPlot
from web.lake.views import ColumnNulls
from web.page import NAVIGATION
from web.pipeline.views import PipelineView
from web.publishing.views import RollbackOptions, RollbackView
from web.quarantine.quarantine_view import QuarantineView
from web.run.again_view import AgainView
from web.run.board import RunningRun
from web.run.changes import table_numbers
from web.run.last_day import last_day
from web.run.run_view import RunView
from web.run.shown_filter import ShownFilter
from web.run.starting import LatestStart
from web.run.timeline import timeline
from web.templates import render

WEB = ROOT / "web"
PARTS = {"base.html", "macros.html", "decision.html"}
TEMPLATES = sorted((WEB / "templates").glob("*.html"))
STYLE = (WEB / "static" / "page.css").read_text()
X = """<script>alert(1)</script>"><img src=x onerror='alert(2)'>{{ 7 * 7 }}"""
NOW = datetime.now(timezone.utc)
SOON = (NOW + timedelta(hours=3)).isoformat()
FINGERPRINT = "ab" * 32

# The pages, rendered with hostile values wherever a value is from outside.


def hostile_result(**fields: Any) -> RunResult:
    checks = [
        CheckResult(table=X, index=0, check="unique", columns=[X], verdict="fail", observed=X, expected=X,
                    sample=[{X: X}], failed_rows=1, bad_rows_query=BadRowsQuery(sql=X, dialect="spark")),
        CheckResult(table=X, index=1, check=X, columns=[], name=X, verdict="error", message=X, expected=X),
        CheckResult(table=X, index=2, check="sql", columns=[], name=X, verdict="warn", observed=X),
        CheckResult(table=X, index=3, check="sql", columns=[], name=X, verdict="pass", observed=X, expected=X),
    ]  # fmt: skip
    to_waive = WaivableCheck(table=X, index=0, check=X, fingerprint=FINGERPRINT)
    waiver = Waiver(table=X, check=X, reason=X, until=X, fingerprint=FINGERPRINT)
    approval = ApprovalRecord(
        required=2, why=X, to_waive=[to_waive], refused=[RefusedDecision(by=X, why=X)],
        decisions=[Decision(approve=True, by=X, reason=X, audited_hash=X, at=X, signature=X, waivers=[waiver])],
    )  # fmt: skip
    waived = WaivedCheck(**dict(to_waive), by=[X], reason=X, until=X, run_id=X)
    return RunResult(
        run_id="r", workflow_id="w", pipeline="p", reason=X, branch=X, audited_hash=X, guarantee=X, main_before=X,
        main_after=X, report=X, checks=checks, approval=approval, waived=[waived], bad_rows={X: 1},
        broken_checks={X: {X: 1}}, timings={X: 1.0}, **fields,
        tables={X: TableChange(operation="append", added_rows=1, hint=X, created=True),
                f"{X}__quarantine": TableChange(operation=X, added_rows=1, deleted_rows=1)},
    )  # fmt: skip


def listed(outcome: str | None = None, *, is_running: bool = False) -> ListedRun:
    return ListedRun("w", "r", "p", X, outcome, NOW, None if is_running else NOW, [X], X)


STATUS = RunStatus(
    stage="waiting for approval", events=[StageEvent(stage="writing", at=SOON, note=X)], result=hostile_result(),
    deadline=SOON,
)  # fmt: skip


def run_view(*, is_running: bool, person: str = "ana", outcome: str = "quarantined") -> RunView:
    result = STATUS.result if is_running else hostile_result(outcome=outcome)
    return RunView(
        run=listed(is_running=is_running),
        state=X,
        result=result,
        tables=table_numbers(result),
        verdicts=view_verdicts(result, None),
        timeline=timeline(STATUS.events, NOW) if is_running else [],
        details={X: X},
        commands={X: X},
        awaited=awaited_decision(STATUS, person) if is_running else None,
        progress=X,
        starter=X,
        silent=is_running,
        why_stuck=X if is_running else "",
    )


QUARANTINE = QuarantineSummary(
    branch=X, run_id="r", workflow_id="w", pipeline=X, cause=X, reason=X, expires=SOON, installation=X, problem=X,
    created=X, head=X, tables={X: 1},
)  # fmt: skip
QUARANTINED = QuarantineView(
    QUARANTINE, LatestStart("w", "r", is_running=True), not_released=X, not_kept=X, not_discarded=X, commands={X: X},
    typed=X,
)  # fmt: skip
PLAN = PlanRollbackResult(
    restore=Restore(runs=[X, "r"], main_head=X, tables={X: X, "t.new": X}), remaining=[X], pipeline="p",
    workflow_id="w", readers=[X], changes={X: TableChange(operation="restore", deleted_rows=2)},
)  # fmt: skip
PIPELINE = Pipeline.model_validate({"name": "p", "write": {"job": "rollback"}, "tables": {"t.x": {}}})
ROLLBACK = RollbackView(
    PlannedRollback(PLAN, PIPELINE, audits=[X], unaudited=[X], not_audited=X), guarantee=X, shown=X,
    latest=LatestStart("w", "r", is_running=True),
)  # fmt: skip
ROLLBACK_PAGE = {"workflow_id": "w", "run_id": "r", "options": RollbackOptions(with_later=True), "notice": X}
TEXT = PipelineText(name=X, text=X, folder=X)
BATCH = Batch(ref=BatchRef(id=X, location=X, files=1, bytes=1), state="kept out", reason=f"{X} --over-younger")
BATCH_VIEW = BatchView(BATCH, X, X)
ZONE = ZoneStatus(
    name=X, pipeline=TEXT, batches=[BATCH], paused=X, problem=X, counts={X: 1}, latest_arrival=1.0, next_look=X
)
SCHEDULE = ListedSchedule(
    given=StartScheduledInput(installation=X, name=X, pipeline=TEXT, zone=X, properties={"cron": X}),
    last=NOW, state=X, ended=None, next=NOW, missed=MissedStarts(late=1),
    missed_since_last=MissedStarts(late=1), paused=None,
)  # fmt: skip
PARTITIONS = BackfillState(partitions=[X, "b"], letters="fp", notes={X: PartitionNote(outcome="failed", reason=X)})
BACKFILL = BackfillView(
    listed=ListedBackfill(X, X, NOW, None, BackfillStatus(name=X, starter=X, pipeline=X, progress=PARTITIONS)),
    state=X, counts=[(X, 1)], partitions=[(X, "failed", X), ("b", "published", "")], more=2,
)  # fmt: skip
STUCK_BACKFILL = BackfillView(ListedBackfill(X, X, NOW, None, None, why=X), X, [], [], 0)
PUBLISHED = [replace(listed("published"), pipeline=X)]
ATTENTION = Attention([QUARANTINE], [ZONE, ZONE.model_copy(update={"problem": ""})], [SCHEDULE], [X], PUBLISHED)
CARD = {
    "run": listed(is_running=True), "status": STATUS, "tables": table_numbers(STATUS.result), "starter": X,
    "verdicts": count_verdict_looks(STATUS.result.checks), "awaited": awaited_decision(STATUS, "ana"), "signing": None,
}  # fmt: skip
SIGNED_CARD = {**CARD, "run": replace(listed(is_running=True), run_id="s"), "signing": SigningView(False, (X, X))}
HOME = {
    "waiting": [CARD, SIGNED_CARD], "under_way": [RunningRun(listed(is_running=True), None, X)], "now": NOW,
    "attention": ATTENTION, "day": last_day([listed(), *[listed("published")] * 20], NOW), "outcomes": ("published",),
    "shown_of_day": 1000,
}  # fmt: skip
EMPTY_HOME = {
    **HOME, "waiting": [], "under_way": [], "attention": Attention([], [], [], [], []), "day": last_day([], NOW),
    "shown_of_day": None,
}  # fmt: skip
RUNS = {
    "stages": {"r": X}, "wanted": ShownFilter(X, X, X, X, X), "states": [X], "following": X, "is_first": False,
}  # fmt: skip
CELLS = [*(HeatCell(look, X, "/runs/w/r") for look in LOOKS.values()), HeatCell("notrun", X, "/runs/w/r")]
CHECKS = [(each.title, CELLS) for each in STATUS.result.checks]
RUN = {
    "web_ui": f"http://127.0.0.1/{X}",
    "notice": X,
    "lines": CheckLines({X: HeatMap([], CHECKS)}),
    "again": None,
    "signing": None,
}
AGAIN = AgainView(X, LatestStart("w", "r", is_running=True))
ZONE_PAGE: dict[str, Any] = dict.fromkeys(("counts", "no_match", "file", "wanted", "notice"), X)
ZONE_PAGE |= {"zone": ZONE, "kept_out": [BATCH_VIEW]}
DIFF_ROWS = RowDifferences(
    added=2, removed=1, changed=1, columns=[ColumnChanges(column=X, cells=1)],
    partitions=[PartitionChanges(partition=X, added=1)], added_rows=[{X: X}], removed_rows=[{X: None}],
    changed_rows=[ChangedRow(key={X: X}, cells={X: ChangedCell(before=X, after=X)})],
)  # fmt: skip
DIFF = DiffTablesResult(
    before=DiffSide(branch=X, hash="ab", description=X),
    after=DiffSide(branch=X, hash="cd", description=X),
    tables=[
        TableDiffResult(table=X, state="changed", key=TableKey(columns=[X]), notes=[X], rows=DIFF_ROWS),
        TableDiffResult(table=f"{X}2", state="not compared", problem=X),
    ],
    left_out=[X],
)
DIFF_PAGE = {
    "workflow_id": "w", "run_id": "r", "states": X, "moved": X, "schema": {X: [X], f"{X}2": []}, "table": X, "key": X,
    "rows": 20, "more_rows": 100,
}  # fmt: skip
PUBLICATION = Publication(listed("published"), table_numbers(STATUS.result)[0], "ab12", X)
HEAT = HeatMap([("/runs/w/r", X, "published")], [(X, CELLS[:1])])
LATE, FRESH = Freshness(NOW, True, X), Freshness(NOW, False, X)
TABLE = {
    "name": X, "published": [PUBLICATION], "plot": RowsPlot([(1.0, 2.0, X), (3.0, 4.0, X)], "1,2 3,4", 7),
    "checks": HEAT, "problem": "", "columns": [ColumnNulls(X, X, (0, 3), None)], "ref": X, "words": WORDS, "now": NOW,
    "freshness": LATE,
}  # fmt: skip
TABLES = {"now": NOW, "problems": []}
LISTED_PIPELINE = PipelineView(X, [X, "t.x"], [listed(), listed(X), listed(is_running=True)], SCHEDULE, ZONE)
DEPLOYED = PipelineView(X, [], [], replace(SCHEDULE, paused=X), None)
FILE = ArrivalEntry(path=X, size=1, arrived_at=1.0, status="refused", detail=X)
PAGES: list[tuple[str, dict[str, Any]]] = [
    ("home.html", HOME),
    ("home.html", EMPTY_HOME),
    ("home.html", {**EMPTY_HOME, "attention": Attention(problems=[X])}),
    ("runs.html", {**RUNS, "runs": [(listed(), ""), (listed(X), X)]}),
    ("runs.html", {**RUNS, "runs": [], "following": "", "is_first": True}),
    ("run.html", {**RUN, "view": run_view(is_running=True)}),
    ("run.html", {**RUN, "view": run_view(is_running=True, person=X)}),
    ("run.html", {**RUN, "view": run_view(is_running=True), "signing": SigningView(False, (X, X))}),
    ("run.html", {**RUN, "view": run_view(is_running=True), "signing": SigningView(True, (X, X))}),
    ("run.html", {**RUN, "view": run_view(is_running=False)}),
    ("run.html", {**RUN, "view": run_view(is_running=False), "lines": CheckLines(problem=X)}),
    ("run.html", {**RUN, "view": run_view(is_running=False, outcome="published")}),
    ("run.html", {**RUN, "view": run_view(is_running=False, outcome="failed"), "again": AGAIN}),
    ("quarantine.html", {"entries": [QUARANTINED], "notice": X}),
    ("quarantine.html", {"entries": [replace(QUARANTINED, not_released="", latest=None, typed="")], "notice": ""}),
    ("quarantine.html", {"entries": [], "notice": ""}),
    ("rollback.html", {**ROLLBACK_PAGE, "view": ROLLBACK, "refused": ""}),
    ("rollback.html", {**ROLLBACK_PAGE, "view": ROLLBACK, "refused": X}),
    ("rollback.html", {**ROLLBACK_PAGE, "view": None, "refused": X}),
    ("arrivals.html", {"zones": [(ZONE, X, X, X)], "silent": {X: X}}),
    ("arrivals.html", {"zones": [], "silent": {}}),
    ("zone.html", {**ZONE_PAGE, "files": [(FILE, X, X, X)]}),
    ("zone.html", {**ZONE_PAGE, "files": [], "kept_out": [], "counts": X}),
    ("backfills.html", {"backfills": [BACKFILL, STUCK_BACKFILL]}),
    ("backfills.html", {"backfills": []}),
    ("schedules.html", {"schedules": [(SCHEDULE, X, X), (replace(SCHEDULE, paused=X), X, X)]}),
    ("schedules.html", {"schedules": []}),
    (
        "pipelines.html",
        {"pipelines": [LISTED_PIPELINE, DEPLOYED, replace(DEPLOYED, schedule=None)], "problems": [X], "latest": 500},
    ),
    ("pipelines.html", {"pipelines": [], "problems": [], "latest": None}),
    ("diff.html", {**DIFF_PAGE, "result": DIFF}),
    ("diff.html", {**DIFF_PAGE, "result": DIFF.model_copy(update={"tables": []})}),
    ("tables.html", {"tables": [(X, listed("published"), each) for each in (LATE, FRESH, None)], **TABLES}),
    ("tables.html", {"tables": [(X, None, None)], **TABLES, "problems": [X]}),
    ("tables.html", {"tables": [], **TABLES}),
    ("table.html", TABLE),
    (
        "table.html",
        {
            **TABLE,
            "published": [],
            "plot": None,
            "checks": HeatMap([], []),
            "problem": X,
            "columns": None,
            "freshness": None,
        },
    ),
    ("error.html", {"heading": X, "text": X}),
    ("sign_in.html", {"target": X, "wrong": True}),
]
FORM_TOKEN = "the-form-token"


class Markup(HTMLParser):
    """The elements of a page, each with its attributes and the elements around it."""

    _VOID = ("meta", "link", "input", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[tuple[str, dict[str, str]]]]] = []
        self.errors: list[str] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given, list(self._open)))
        if tag not in self._VOID:
            self._open.append((tag, given))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}, list(self._open)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop()[0] != tag:
            self.errors.append(f"</{tag}> closes nothing, line {self.getpos()[0]}")


def page(template: str, values: dict[str, Any], role: Role = Role.OPERATOR) -> tuple[str, Markup]:
    visitor = Visitor(X, role)
    shared = {
        "visitor": visitor,
        "form_token": FORM_TOKEN,
        "navigation": NAVIGATION,
        "forbidden": partial(action_refusal, visitor),
    }
    here = "" if template in ("error.html", "sign_in.html") else "Home"
    text = bytes(render(template, 200, here=here, **shared, **values).body).decode()
    return text, Markup(text)


CASES = pytest.mark.parametrize(("template", "values"), PAGES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(PAGES)])


def test_every_template_is_rendered() -> None:
    assert {name for name, _ in PAGES} | PARTS == {path.name for path in TEMPLATES}


@CASES
def test_hostile_values_are_text(template: str, values: dict[str, Any]) -> None:
    text, markup = page(template, values)
    assert not markup.errors
    scripts = [attributes for tag, attributes, _ in markup.elements if tag == "script"]
    own = ["page", "copying", "countdown", *(["signing"] if template == "run.html" else [])]
    assert scripts == [{"src": f"/static/{name}.js", "defer": ""} for name in own]
    assert "img" not in {tag for tag, _, _ in markup.elements}
    assert "{{ 7 * 7 }}" in text
    for tag, attributes, _ in markup.elements:
        wrong = {name for name in attributes if name.startswith("on") or name in ("style", "srcdoc", "formaction")}
        assert not wrong, (tag, attributes)
        for name in ("href", "src", "action"):
            assert re.match(r"/(?!/)|#|http://127\.0\.0\.1/|$", attributes.get(name, "")), (tag, attributes)


@CASES
def test_forms_have_the_token_and_tables_scroll_in_a_named_region(template: str, values: dict[str, Any]) -> None:
    _, markup = page(template, values)
    ids = [attributes["id"] for _, attributes, _ in markup.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    forms = [attributes for tag, attributes, _ in markup.elements if tag == "form" and attributes["method"] == "post"]
    tokens = [a for _, a, around in markup.elements if a.get("name") == "form_token" and around[-1][0] == "form"]
    assert {each["value"] for each in tokens} <= {FORM_TOKEN}
    assert len(tokens) == len(forms) - (template == "sign_in.html"), "the sign-in is for people without a session"
    for tag, attributes, around in markup.elements:
        if tag == "table":
            (region,) = [each for _, each in around if "scroll" in each.get("class", "").split()]
            assert region["role"] == "region" and region["tabindex"] == "0"
            assert region.get("aria-label") or region["aria-labelledby"] in ids
        if tag in ("input", "textarea", "select") and attributes.get("type") != "hidden":
            assert "label" in [name for name, _ in around], f"{attributes} has no label"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_nothing_inline(template: Path) -> None:
    text = template.read_text()
    assert not re.findall(r"\|\s*safe|autoescape|\bstyle=|<style|\son\w+=|javascript:", text, re.I)
    assert not re.findall(
        r'<script(?! src="/static/(?:page|copying|countdown|signing)\.js" defer></script>)', text, re.I
    )
    assert not re.findall(r"\s[\w-]+=\{[{%]", text), "an attribute without quotes"
    assert not re.findall(r"https?://", text), "the page loads nothing, and links nothing, from another site"


def rules() -> Iterator[tuple[str, str]]:
    """Yield the selector and the declarations of each rule of the style sheet."""
    for selector, declarations in re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", STYLE, flags=re.S)):
        yield selector.strip(), declarations


def test_every_colour_of_the_style_sheet_has_a_name() -> None:
    functions = r"\b(?:rgb|hsl|hwb|lab|lch|oklch|oklab|color)a?\("
    named = rf"#[0-9a-f]{{3,8}}\b|{functions}|\b(?:black|white|red|green|blue|gr[ae]y)\b(?!-)"
    for selector, declarations in rules():
        assert selector == ":root" or not re.findall(named, declarations, re.I), selector
    defined = set(re.findall(r"(--[\w-]+):", STYLE))
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) == defined, "no name is missing, and none is unused"
    light, dark = [set(re.findall(r"(--[\w-]+): #", text)) for selector, text in rules() if selector == ":root"]
    assert dark <= light


def test_every_icon_that_a_page_uses_exists() -> None:
    symbols = set(re.findall(r'<symbol id="(\w+)"', (WEB / "static" / "icons.svg").read_text()))
    used = {name for template, values in PAGES for name in re.findall(r"icons\.svg#(\w+)", page(template, values)[0])}
    assert used <= symbols
