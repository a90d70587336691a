"""A worker that gets a signal at a named point, or that lacks one of its safeguards.

The variable CRASH names the point and the signal, `NessieCatalog.publish:after 9 FLAG`; WITHOUT names a safeguard.
The worker is the real one: only the named methods are wrapped. It gets the signal once: only while the file FLAG does
not exist yet.
"""

import asyncio
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import worker
from activities.lineage.emit_lineage import EmitLineageActivity
from activities.notifications.notify import NotifyActivities
from engine.runner import Spark
from lakehouse.audit.report_store import ReportStore
from lakehouse.audit.results_table import AuditResultsTable
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.publication import Publisher
from lakehouse.input.manifests import InputManifests
from lakehouse.nessie.catalog import NessieCatalog
from sluice.contracts import references
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.publishing.commit_properties import RUN_ID

_CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (
        NessieCatalog,
        IcebergCatalog,
        Publisher,
        InputManifests,
        ReportStore,
        AuditResultsTable,
        Spark,
        NotifyActivities,
        EmitLineageActivity,
    )
}


def _signal_once(number: int, flag: Path) -> None:
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), number)
    if number != signal.SIGSTOP:  # SIGSTOP has stopped the process by now; the sleep would begin when it is resumed
        time.sleep(0.5)


def crash(point: str, number: int, flag: Path) -> None:
    """Send this process a signal before, after, or in the middle of a method."""
    name, when = point.split(":")
    kind, method = name.split(".")
    owner = _CLASSES[kind]
    plain: Callable[..., Any] = getattr(owner, method)

    @functools.wraps(plain)  # Temporal identifies an activity by an attribute of its function
    def wrapped(*args: Any, **more: Any) -> Any:
        if when == "before":
            _signal_once(number, flag)
        answer = plain(*args, **more)
        if when == "after":
            _signal_once(number, flag)
        return answer

    async def run(self: Spark, job: Any, heartbeat: Callable[[Any], None]) -> Any:
        def watched(progress: Any) -> None:
            heartbeat(progress)
            if progress.stage is not None or progress.doing.startswith(("reading", "writing")):
                _signal_once(number, flag)

        if when == "before":
            await asyncio.to_thread(_signal_once, number, flag)
        ended = await plain(self, job, watched if when == "during" else heartbeat)
        if when == "after":
            await asyncio.to_thread(_signal_once, number, flag)
        return ended

    setattr(owner, method, run if name == "Spark.run" else wrapped)


def leave_out(safeguard: str) -> None:
    """Switch one safeguard off."""
    if safeguard not in SAFEGUARDS:
        raise SystemExit(f"{safeguard!r} is none of {', '.join(SAFEGUARDS)}")
    if safeguard == "fencing":
        vars(references)["attempt_branch"] = lambda label, run_id, _: f"wap/{label}/{run_id}/a1"
    for catalog in (NessieCatalog, IcebergCatalog):
        SAFEGUARDS[safeguard](catalog)


def _without_fencing(catalog: Any) -> None:
    catalog.delete_branch = lambda *_: None


def _without_pinned_hash(catalog: Any) -> None:
    publish = catalog.publish

    def whatever_is_there(self: Any, branch: BranchRef, head: str, *more: Any) -> Publication:
        published: Publication = publish(self, branch, self.head(branch.name), *more)
        return published

    catalog.publish = whatever_is_there


def _without_confirmation(catalog: Any) -> None:
    find_published = catalog.find_published

    def find_no_run(self: Any, properties: Any, *more: Any) -> Any:
        return None if RUN_ID in properties else find_published(self, properties, *more)

    catalog.find_publication = lambda *_: None
    catalog.find_published = find_no_run
    CommitLog.publication_of = lambda *_: None  # type: ignore[method-assign]


SAFEGUARDS: dict[str, Callable[[Any], None]] = {
    "fencing": _without_fencing,
    "pinned hash": _without_pinned_hash,
    "confirmation": _without_confirmation,
}


def main() -> int:
    """Run the worker with the faults that the environment names; return its exit code."""
    if "CRASH" in os.environ:
        point, number, flag = os.environ["CRASH"].rsplit(" ", 2)
        crash(point, int(number), Path(flag))
    if "WITHOUT" in os.environ:
        leave_out(os.environ["WITHOUT"])
    return worker.main()
