"""Drive pipelines that load one table, each from the files of its own folder: runs, quarantines, roll-backs."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lakehouse.iceberg.table_state import load_table
from lakehouse.quarantine.quarantined_branches import list_quarantined_branches
from runtime.short_workflow import execute_short_workflow
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.pipeline.model import Pipeline
from tests.harness.lake_driver import Ending, LakeDriver
from tests.harness.partition_model import Row
from workflows.quarantine.manage_quarantine import ManageQuarantine


@dataclass
class WritersDriver(LakeDriver):
    """A driver of several pipelines, named after their folders, that load one table partitioned by `p`."""

    modes: dict[str, str] = field(default_factory=dict)
    """The mode of each pipeline."""

    def pipeline(self, *, strict: bool = True, approval: bool = False) -> Pipeline:
        """Return the first pipeline."""
        return self.pipeline_of(next(iter(self.modes)), strict=strict)

    def pipeline_of(self, name: str, *, strict: bool = True) -> Pipeline:
        """Return a pipeline. It refuses bad rows if `strict`."""
        checks: list[dict[str, Any]] = [{"check": "not_null", "column": "id"}]
        if strict:
            checks.append({"check": "accepted_range", "column": "v", "min": 0})
        source = {"path": str(self.folder / name), "format": "csv"}
        return Pipeline.model_validate(
            {
                "name": self._label(name),
                "write": {"source": source, "mode": self.modes[name]},
                "tables": {self.table: {"partition_by": ["p"], "checks": checks}},
            }
        )

    async def repair(self, run_id: str, ids: list[int]) -> Ending:
        """Release a quarantine whose rows of these ids are repaired."""
        named = ", ".join(map(str, ids))
        repairs = [f"UPDATE {self.table} SET v = 0 WHERE id IN ({named}) AND v < 0"] if ids else []
        return await self.release(run_id, None, *repairs)

    async def keep(self, branch: str, until: str) -> None:
        """Change the time until which a quarantine is kept."""
        manage = ManageQuarantineInput(action="keep", branch=branch, by="ana", until=until)
        installation = self.settings.installation
        await execute_short_workflow(self.client, installation, ManageQuarantine.run, manage, "keep-quarantine")

    def table_rows(self) -> Counter[Row]:
        """Return the number of times that each row is on main."""
        version = self.catalog.table_version(self.catalog.main, self.table)
        rows = load_table(version, self.io).scan().to_arrow().to_pylist() if version else []
        return Counter((row["id"], row["v"], row["p"]) for row in rows)

    def branches_of_attempts(self) -> list[str]:
        """Return the branches of attempts of these pipelines."""
        labels = [self.pipeline_of(name).label for name in self.modes]
        names = [each.name for each in self.catalog.list_branches("wap/")]
        return [name for name in names if any(name.startswith(f"wap/{label}") for label in labels)]

    def quarantines(self) -> set[str]:
        """Return the quarantined branches of these pipelines."""
        names = {self._label(name) for name in self.modes}
        return {each.branch for each in list_quarantined_branches(self.catalog) if each.pipeline in names}

    def _label(self, name: str) -> str:
        return f"{self.table.replace('.', '-')}-{name}"
