"""The port for scan engines, which read rows to answer the checks that metadata leaves undecided.

`sluice/audit/engine_choice.py` chooses an engine: a check goes to the first engine that does not refuse it.
To add an engine: write a class with the members of `ScanEngine`, and name it in `in_process_engines` of
`engine/scan_engines.py` and in `AnsweredBy` of `sluice/checks/verdicts.py`.
The implementations are `engine/duckdb_scan.py` and `engine/spark_scan.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from engine.process.heartbeat import Heartbeat
from sluice.audit.scan_groups import ScanGroup
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check
from sluice.checks.verdicts import AnsweredBy
from sluice.contracts.audit import AuditInput
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.sql.dialect import Dialect


@dataclass(frozen=True)
class ScanContext:
    """The audit that needs a scan, and the try of the activity that runs the scan."""

    audit: AuditInput
    folder: Path
    """Folder for the engine's scratch files, specs and logs."""
    heartbeat: Heartbeat
    try_number: int = 1
    """Number of this try of the activity, from 1."""
    last_attempt: bool = True
    """True if every check must get an answer now, even if the answer is an error."""
    runs_apart: bool = False
    """True if a job must not share a Spark Connect server with other jobs."""


class ScanEngine(Protocol):
    """An engine that answers checks from the rows of tables."""

    @property
    def name(self) -> AnsweredBy:
        """Name of the engine, as verdicts show it."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine's queries."""

    def refusals(self, table: AuditedTable, checks: Mapping[int, Check]) -> Mapping[int, str]:
        """Return the checks that the engine must not answer, each with the reason."""

    async def scan(self, groups: Sequence[ScanGroup], context: ScanContext) -> Mapping[str, ScanAnswer]:
        """Return the answers to the checks of scan groups, by `check_key`. Checks without an answer are missing.

        Raises:
            SluiceError: the scan failed as a whole. The class of the error says whether a retry may help.
        """


class SamplingEngine(ScanEngine, Protocol):
    """An engine in the worker's own process, which can also read a few rows immediately."""

    def sample(self, group: ScanGroup, scratch: Path) -> Sequence[dict[str, Any]]:
        """Return a few bad rows for a group's only check, or an empty list if the engine cannot read them."""
