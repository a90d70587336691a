"""A lake with a published run, and the OpenLineage events that describe it."""

from pathlib import Path
from typing import Any

from activities.lineage.emit_lineage import EmitLineageActivity
from lakehouse.open_catalog import catalog_address
from sluice.checks.verdicts import CheckResult
from sluice.contracts.lineage import EmitLineageInput, LineageEventType
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.selected_input import ManifestRef, SelectedInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import ChangedTable, TableVersionRef, WriteResult
from sluice.lineage.description import describe_event
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.lineage import LineageReceiver, problems
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

RUN_ID = "01a206c9-4d1d-779e-bab1-11165e9ad64e"
RUN = RunRef(run_id=RUN_ID, workflow_id="p-123", pipeline="p", label="p", attempt=1)
AT = "2026-01-31T12:00:00+00:00"
KEY = "lineage-key-5up3r"
PIPELINE: dict[str, Any] = {
    "name": "p",
    "description": "Loads permits",
    "write": {
        "source": {"path": "/data/in/*.csv"},
        "transform": "SELECT s.* FROM source s JOIN t.other o ON o.id = s.id",
    },
    "tables": {
        "t.x": {
            "checks": [
                {"check": "not_null", "column": "id"},
                {"check": "row_count", "min": 9, "severity": "warn"},
                {"check": "max_in_range", "column": "id", "max": 5},
                {"check": "unique_combination_of_columns", "columns": ["id", "day"]},
            ]
        }
    },
}
CHECKS = [
    CheckResult(table="t.x", index=0, check="not_null", columns=["id"], verdict="pass", observed=0, expected="no null"),
    CheckResult(table="t.x", index=1, check="row_count", columns=[], verdict="warn", observed=2, expected="at least 9"),
    CheckResult(
        table="t.x", index=2, check="max_in_range", columns=["id"], verdict="fail", observed=98765, failed_rows=1
    ),
    CheckResult(
        table="t.x",
        index=3,
        check="unique_combination_of_columns",
        columns=["id", "day"],
        verdict="error",
        message="no memory",
    ),
]


class Lake:
    """A lake with a table that a run published, and a table that it read."""

    def __init__(self, folder: Path) -> None:
        self.catalog = MemoryCatalog()
        lake = MemoryLake(self.catalog, folder)
        self.catalog.initialize_main()
        lake.append("main", "t.other", [1], RUN)
        base = self.catalog.head("main")
        self.branch = BranchRef(name=RUN.branch, base=base, catalog_id=self.catalog.identity())
        lake.append("main", "t.x", [1, 2], RUN)
        version = self.catalog.table_version("main", "t.x")
        assert version
        self.version = version
        self.written = WriteResult(
            head="h",
            tables={"t.x": TableChange(operation="append", added_rows=2, added_bytes=900, added_files=1)},
            versions={"t.x": ChangedTable(after=TableVersionRef(**vars(version)))},
        )

    def input(self, event: LineageEventType, request: dict[str, Any] | None = None, **result: Any) -> EmitLineageInput:
        """Return an event as the workflow describes it."""
        loaded = SelectedInput(manifest=ManifestRef(location="m", digest="d"), files=3, bytes=120)
        known = {"input": loaded, "attempts": 1, **result}
        return describe_event(
            event,
            AT,
            RunRequest(
                pipeline=Pipeline.model_validate(PIPELINE), input=RunInput(digest="d"), starter="ana", **(request or {})
            ),
            RUN,
            RunResult(run_id=RUN_ID, workflow_id="p-123", pipeline="p", **known),
            scheduled_at=AT,
            read_tables=["t.x", "t.missing", "nessie.t.other"],
            branch=self.branch,
            written=self.written,
        )

    def sender(self, **settings: Any) -> EmitLineageActivity:
        given = Settings.of(**settings)
        name, address = given.catalog.catalog_name, catalog_address(given)
        return EmitLineageActivity(given.lineage, self.catalog, {}, name, address)


def sent(receiver: LineageReceiver, lake: Lake, input: EmitLineageInput) -> dict[str, Any]:
    run_activity(lake.sender(openlineage_url=receiver.url).emit_lineage, input)
    event = receiver.events[-1]
    assert problems(event) == []
    return event
