"""Tables and checks at the limits, on the real activities: 10,000 columns, 5,000 checks, 20,000 accepted values."""

from pathlib import Path
from typing import Any

import pytest

from activities.audit.audit_branch import AuditBranchActivity
from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from engine.scan_engines import in_process_engines
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditInput, AuditResult, ScanInput
from sluice.contracts.references import RunRef
from sluice.pipeline.file import parse_pipeline
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

_COLUMNS = 10_000
_PAYLOAD = 2 * 1024**2
_REF = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)


async def audited(folder: Path, lake: MemoryLake, checks: str) -> list[CheckResult]:
    """Audit the rows that a branch added to `t.x`; assert that each result fits into a Temporal payload."""
    text = f"name: p\nwrite: {{source: {{path: a.csv}}}}\ntables:\n  t.x:\n    checks:\n{checks}"
    tables = parse_pipeline(text, "p.yml").tables
    base, head = lake.catalog.head("main"), lake.catalog.head("wap/p")
    audit = AuditInput(run_ref=_REF, branch="wap/p", base=base, head=head, tables=tables)
    settings = Settings.of(sluice_home=folder, warehouse=(folder / "lake").as_uri())
    loaded, reports, engines = (
        AuditedTables(lake.catalog, {}),
        ReportStore(settings.storage.lake, {}),
        in_process_engines(settings.scan),
    )

    async def scan(plan: AuditResult) -> AuditResult:
        scanning = ScanFilesActivity(TableScanner(loaded, reports, settings.storage), engines).scan_files
        result: AuditResult = await run_activity(scanning, ScanInput(audit=audit, undecided=plan.files))
        return result

    plan: AuditResult = run_activity(
        AuditBranchActivity(loaded, reports, settings.storage, engines).audit_branch, audit
    )
    assert not plan.undecided
    scanned = await scan(plan) if plan.files else AuditResult(decided=[])
    assert not scanned.undecided
    for result in (plan, scanned):
        assert len(result.model_dump_json().encode()) < 0.95 * _PAYLOAD
    verdicts: list[CheckResult] = sorted([*plan.decided, *scanned.decided], key=lambda each: each.index)
    return verdicts


def filled(folder: Path, columns: int, rows: list[dict[str, int]]) -> MemoryLake:
    catalog = MemoryCatalog()
    lake = MemoryLake(catalog, folder / "tables", [f"c{number}" for number in range(columns)])
    catalog.create_branch("wap/p", catalog.initialize_main())
    lake.append_rows("wap/p", "t.x", rows)
    return lake


@pytest.mark.slow
async def test_five_thousand_checks_of_ten_thousand_columns(tmp_path: Path) -> None:
    row: dict[str, int] = {f"c{number}": number for number in range(_COLUMNS)}
    lake = filled(tmp_path, _COLUMNS, [row, {**row, "c9999": 0}])
    checked = ", ".join(f"c{number}" for number in range(_COLUMNS - 4_991, _COLUMNS))
    checks = f"      - accepted_range: {{columns: [{checked}], min: 1}}\n"
    verdicts = await audited(tmp_path, lake, checks)
    assert len(verdicts) == 4_991
    assert [each.columns for each in verdicts if each.verdict != "pass"] == [["c9999"]]


@pytest.mark.slow
async def test_a_schema_of_ten_thousand_columns_is_compared(tmp_path: Path) -> None:
    lake = filled(tmp_path, _COLUMNS, [{f"c{number}": 1 for number in range(_COLUMNS)}])
    columns = ", ".join(f"c{number}: int" for number in range(_COLUMNS))
    (verdict,) = await audited(tmp_path, lake, f"      - schema: {{columns: {{{columns}}}}}\n")
    assert verdict.verdict == "fail" and "c0 is long" in verdict.observed
    assert len(verdict.observed) < 5_000 and len(verdict.expected) < 5_000


@pytest.mark.parametrize("name", ["accepted_values", "not_accepted_values"])
async def test_twenty_thousand_accepted_values(tmp_path: Path, name: str) -> None:
    lake = filled(tmp_path, 1, [{"c0": each} for each in (2, 39_998, 7)])
    values = ", ".join(str(2 * number) for number in range(20_000))
    (verdict,) = await audited(tmp_path, lake, f"      - {name}: {{column: c0, values: [{values}]}}\n")
    bad: Any = 1 if name == "accepted_values" else 2
    assert (verdict.verdict, verdict.failed_rows) == ("fail", bad)
    assert len(verdict.expected) < 5_000


async def test_checks_that_metadata_alone_answers_may_fail(tmp_path: Path) -> None:
    """Such checks have no bad rows to sample."""
    lake = filled(tmp_path, 1, [{"c0": 1}])
    checks = ("schema: {columns: {c0: int}}", "column_type: {column: c0, type: int}", "added_files: {max: 0}")
    verdicts = await audited(tmp_path, lake, "".join(f"      - {check}\n" for check in checks))
    assert [(each.check, each.verdict, each.sample) for each in verdicts] == [
        ("schema", "fail", []),
        ("column_type", "fail", []),
        ("added_files", "fail", []),
    ]
