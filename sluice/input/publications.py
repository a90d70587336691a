"""Records of a run's files in commits: on main, which published them, and on branches that may publish them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sluice.contracts.selected_input import ManifestRef
from sluice.publishing.commit_properties import (
    INPUT,
    INPUT_TABLES,
    MANIFEST,
    MANIFEST_DIGEST,
    PIPELINE,
    ROLLED_BACK,
    RUN_ID,
    SCOPE,
    WORKFLOW_ID,
)


@dataclass(frozen=True)
class InputRecord:
    """Record of a run's input in a commit."""

    run_id: str
    workflow_id: str
    pipeline: str
    digest: str
    tables: tuple[str, ...] = ()
    manifest: ManifestRef | None = None
    rolled_back: tuple[str, ...] = ()
    """Runs that this run rolled back, newest first."""
    scope: str = ""
    """Content of the input's scope."""


def read_input_record(properties: Mapping[str, str]) -> InputRecord | None:
    """Return the record of a run's input in a commit, or None if the commit names no run."""
    run_id = properties.get(RUN_ID, "")
    if not run_id:
        return None
    location, digest = properties.get(MANIFEST, ""), properties.get(MANIFEST_DIGEST, "")
    return InputRecord(
        run_id=run_id,
        workflow_id=properties.get(WORKFLOW_ID, ""),
        pipeline=properties.get(PIPELINE, ""),
        digest=properties.get(INPUT, ""),
        tables=_names(properties.get(INPUT_TABLES, "")),
        manifest=ManifestRef(location=location, digest=digest) if location else None,
        rolled_back=tuple(run for run in properties.get(ROLLED_BACK, "").split(",") if run),
        scope=properties.get(SCOPE, ""),
    )


def are_others(loaded: Collection[str], tables: Collection[str]) -> bool:
    """Return True if the tables of a load are known, and none of them is one of these tables."""
    return bool(loaded) and bool(tables) and {*loaded}.isdisjoint(tables)


def effects_of_rollback(
    targets: Sequence[str], rollbacks: Mapping[str, Sequence[str]], *, in_effect: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield each run that a roll-back affects, in order, with True if the run is brought back into effect.

    The roll-back of a roll-back brings back the runs that the earlier one took out.

    Args:
        targets: runs that are rolled back, newest first.
        rollbacks: by the id of an earlier roll-back, the runs that it rolled back.
        in_effect: True if the targets are brought back.
    """
    for target in targets:
        yield target, in_effect
        earlier = {run: runs for run, runs in rollbacks.items() if run != target}
        yield from effects_of_rollback(rollbacks.get(target, ()), earlier, in_effect=not in_effect)


def _names(text: str) -> tuple[str, ...]:
    try:
        names = json.loads(text) if text else []
    except ValueError:
        return ()
    return tuple(str(name) for name in names) if isinstance(names, list) else ()
