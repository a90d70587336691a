"""The port of scan engines: what answers the checks that metadata leaves undecided, by reading rows.

How an engine is chosen: `sluice/audit/engine_choice.py`. A check goes to the first engine that does not refuse it.
How an engine is added: write a class with the members of `ScanEngine`, and name it in `in_process_engines` of
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
    """The audit that a scan is for, and the activity attempt that runs it."""

    audit: AuditInput
    folder: Path
    """Where the engine keeps its scratch files, specs and logs."""
    heartbeat: Heartbeat
    try_number: int = 1
    """Which try of its activity this is, from 1."""
    last_attempt: bool = True
    """Whether every check must get an answer now, if need be an error."""
    runs_apart: bool = False
    """Whether a job must not share a Spark Connect server with others."""


class ScanEngine(Protocol):
    """An engine that answers checks from the rows of tables."""

    @property
    def name(self) -> AnsweredBy:
        """The name that verdicts show."""

    @property
    def dialect(self) -> Dialect:
        """The SQL that the queries are written in."""

    def refusals(self, table: AuditedTable, checks: Mapping[int, Check]) -> Mapping[int, str]:
        """Return the checks that the engine must not answer, each with the reason."""

    async def scan(self, groups: Sequence[ScanGroup], context: ScanContext) -> Mapping[str, ScanAnswer]:
        """Answer the checks of scan groups, by `check_key`. A check without an answer is handed back.

        Raises:
            SluiceError: the scan failed as a whole; its class says whether a retry may help.
        """


class SamplingEngine(ScanEngine, Protocol):
    """An engine in the worker's own process, which can also read a few rows at once."""

    def sample(self, group: ScanGroup, scratch: Path) -> Sequence[dict[str, Any]]:
        """Return a few bad rows of the one check of a group; none if the engine cannot read them."""
