"""A pipeline with waivable checks, and decisions that waive them."""

from datetime import datetime, timezone
from typing import Any

from sluice.approval.decisions import Decision
from sluice.approval.waivable import check_fingerprint
from sluice.approval.waivers import WaivableCheck, WaivedCheck, Waiver
from sluice.checks.verdicts import CheckResult, Verdict
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
UNTIL = "2026-12-01T23:59:59+00:00"
PIPELINE = """\
name: orders
write: {source: {path: in.csv}}
tables:
  t.x:
    checks:
      - unique: {column: id, waivable: true}
      - not_null: {column: id, waivable: true}
      - row_count: {min: 1}
"""


def parsed(old: str = "", new: str = "") -> Pipeline:
    assert old in PIPELINE
    return parse_pipeline(PIPELINE.replace(old, new, 1), "p.yml")


CHECKS = parsed().tables["t.x"].checks
UNIQUE, NOT_NULL = (
    WaivableCheck(table="t.x", index=index, check=title, fingerprint=check_fingerprint(CHECKS[index], "p"))
    for index, title in enumerate(("unique(id)", "not_null(id)"))
)
WAIVER = Waiver(table="t.x", check="unique(id)", fingerprint=UNIQUE.fingerprint, reason="late feed", until=UNTIL)
OTHER = Waiver(table="t.x", check="not_null(id)", fingerprint=NOT_NULL.fingerprint, reason="late feed", until=UNTIL)
WAIVED = WaivedCheck(**dict(UNIQUE), by=["ana"], reason="late feed", until=UNTIL, run_id="r1", workflow_id="w1")


def verdict(index: int, given: Verdict = "fail", table: str = "t.x") -> CheckResult:
    name = ("unique", "not_null", "row_count")[index]
    return CheckResult(table=table, index=index, check=name, columns=["id"], verdict=given, observed=2, expected="0")


def yes(*waivers: Waiver, **fields: Any) -> Decision:
    return Decision(**{"approve": True, "by": "ana", "waivers": list(waivers), **fields})
