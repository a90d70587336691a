"""Find tables of targets that are behind main, and start their registrations."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from temporalio import activity

from activities.registration.start_registrations import StartRegistrationsActivity
from lakehouse.catalog import BranchCatalog
from lakehouse.targets.mirror import MirrorWriter
from lakehouse.targets.open_mirror import open_mirror
from sluice.contracts.registration import CheckedRegistrations, CheckRegistrationsInput, WaitingRun
from sluice.errors import SluiceError, Transient
from sluice.publishing.commit_properties import REGISTERED, REGISTERS
from sluice.redaction import redacted
from sluice.registration.target_kinds import TableTarget

_MAX_SHOWN = 100
_MAX_REASON = 300


@dataclass
class _Drift:
    checked: int = 0
    behind: list[tuple[str, str]] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckRegistrationsActivity:
    """The activity `check_registrations`. Needs the catalog, the mirror writer, and the starter of registrations."""

    catalog: BranchCatalog
    mirrors: MirrorWriter
    registrations: StartRegistrationsActivity

    @activity.defn(name="check_registrations")
    async def check_registrations(self, input: CheckRegistrationsInput) -> CheckedRegistrations:
        """Compare with main each table that a target should have. An unavailable target does not stop the others."""
        drift = await asyncio.to_thread(self._find_drift, input)
        for name, table in drift.behind:
            await self.registrations.start_table(name, table, WaitingRun())
        shown = [f"{name} {table}" for name, table in drift.behind]
        problems = dict(list(drift.problems.items())[:_MAX_SHOWN])
        return CheckedRegistrations(
            checked=drift.checked, behind=len(shown), started=shown[:_MAX_SHOWN], problems=problems
        )

    def _find_drift(self, input: CheckRegistrationsInput) -> _Drift:
        drift = _Drift()
        for name, tables in self._wanted(input).items():
            target = self.registrations.targets.targets.get(name)
            if isinstance(target, TableTarget):
                try:
                    self._compare(name, target, sorted(tables), drift)
                except Exception as error:
                    drift.problems[name] = _reason(error)
        return drift

    def _compare(self, name: str, target: TableTarget, tables: list[str], drift: _Drift) -> None:
        mirror, head = open_mirror(target), self.catalog.head(self.catalog.main)
        for table in tables:
            if self.catalog.table_version(self.catalog.main, table, head) is None:
                continue  # dropped from main: tables are never dropped from targets
            drift.checked += 1
            try:
                if self.mirrors.is_behind(target, mirror, table):
                    drift.behind.append((name, table))
            except Transient:
                raise
            except SluiceError as error:  # a retry would not help
                drift.problems[f"{name} {table}"] = _reason(error)

    def _wanted(self, input: CheckRegistrationsInput) -> dict[str, set[str]]:
        """Return by target the tables that it should have: its own choice, and those that pipelines registered."""
        main = self.catalog.main
        all_tables = self.catalog.list_tables(main, self.catalog.head(main))
        targets = self.registrations.targets.targets
        wanted = {name: {each for each in all_tables if target.wants_table(each)} for name, target in targets.items()}
        for names, tables in self._registered(datetime.now(timezone.utc) - timedelta(seconds=input.history)):
            for name in names:
                wanted.setdefault(name, set()).update(tables)
        return wanted

    def _registered(self, after: datetime) -> Iterator[tuple[list[str], list[str]]]:
        for commit in self.catalog.list_published({REGISTERS: "true"}, after):
            registered = json.loads(commit.properties.get(REGISTERED, "{}"))
            yield registered.get("targets", []), registered.get("tables", [])


def _reason(error: Exception) -> str:
    return redacted(str(error) if isinstance(error, SluiceError) else type(error).__name__)[:_MAX_REASON]
