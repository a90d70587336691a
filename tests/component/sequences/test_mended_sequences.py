"""With one mend switched off, a machine finds a sequence that violates the model. With all mends on, it finds none.

A machine that finds nothing proves nothing about a mend: it may never draw the commands that need it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from sluice.input.held_files import LoadsOfTable
from sluice.pipeline.loading_rules import Rule
from sluice.pipeline.scope import NO_SCOPE
from tests.component.sequences import test_partition_sequences as partitions
from tests.component.sequences import test_requeue_sequences as requeues
from tests.component.sequences import test_sequences as runs
from tests.component.sequences import test_writers_sequences as writers
from tests.component.sequences import test_zone_sequences as zones
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import sequences

Machine = type[RuleBasedStateMachine]
MAKERS: Mapping[str, Callable[[MemorySystem, Path], Machine]] = {
    "runs": runs.in_memory,
    "partitions": partitions.partitions_in_memory,
    "zone": zones.zones_in_memory,
    "writers": writers.writers_in_memory,
    "requeues": requeues.requeues_in_memory,
}
MOST_TRIED = 500
"""Maximum number of sequences a machine may try until it finds a failing one."""


@dataclass(frozen=True)
class Mend:
    """One mend, the way to switch it off, and the machine that notices."""

    name: str
    machine: str
    off: Mapping[str, Any]
    """The replacements that switch the mend off, by attribute."""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the machine's module: the values that sequences are drawn from."""


MENDS = (
    Mend(
        "an older partition is not merged over a younger one",
        "partitions",
        {"lakehouse.input.later_loads.LaterLoads.check_youngest": lambda *_: None},
        {"KEYS": ("path",), "MODES": ("merge",)},
    ),
    Mend(
        "a run replaces no rows of another partition",
        "partitions",
        {"sluice.publishing.written_tables._check_other_partitions": lambda *_, **__: None},
        {"KEYS": ("path",), "MODES": ("overwrite_partitions",)},
    ),
    Mend(
        "a backfill that would leave the rows of its last partition alone is refused",
        "partitions",
        {
            "cli.backfills.start.require_allowed": lambda *_: Rule(),
            "activities.run.prepare_run.require_allowed": lambda *_: Rule(),
        },
        {"KEYS": ("path",), "MODES": ("overwrite",)},
    ),
    Mend(
        "one content of a path is published that is overwritten under its run",
        "zone",
        {
            "lakehouse.arrivals.held_files.HeldFiles.batch_with_path": lambda *_: "",
            "lakehouse.input.loaded_files.LoadedFiles.find_other_content": lambda *_, **__: [],
        },
        {"OVERWRITTEN": ("alert",), "MODES": ("append",)},
    ),
    Mend(
        "a copy of a loaded file counts as loaded under its own path",
        "zone",
        {"lakehouse.arrivals.copy_memory.CopyMemory.identities": lambda *_: {}},
        {"OVERWRITTEN": ("alert",), "MODES": ("append",)},
    ),
    Mend(
        "a partition belongs to what a run is",
        "partitions",
        {"sluice.pipeline.file.load_scope": lambda *_: NO_SCOPE},
        {"KEYS": ("transform",), "MODES": ("append",)},
    ),
    Mend(
        "a month is not loaded after its year without files, nor the year after the month",
        "partitions",
        {"lakehouse.input.loaded_files.LoadedFiles.find_overlapping": lambda *_: []},
        {"KEYS": ("args",), "MODES": ("append",)},
    ),
    Mend(
        "content is loaded again that other content of its path replaced",
        "partitions",
        {"lakehouse.input.loaded_files.LoadsOfTable": lambda loads, **_: LoadsOfTable(loads, order_matters=False)},
        {"KEYS": ("path",), "MODES": ("merge",)},
    ),
    Mend(
        "a running backfill that is started again asks main for its finished partitions",
        "partitions",
        {"sluice.backfills.progress._ASKED_AGAIN": ("kept out", "failed", "cancelled")},
        {"KEYS": ("path",), "MODES": ("append",)},
    ),
    Mend(
        "old content under a new name is not left out without a word",
        "zone",
        {
            "lakehouse.input.loaded_files.overtaken_files": lambda _: [],
            "lakehouse.arrivals.file_loads.overtaken_files": lambda _: [],
            "activities.run.select_input.overtaken_files": lambda _: [],
        },
        {"OVERWRITTEN": ("load",), "MODES": ("merge",)},
    ),
    Mend(
        "a link that leads out of a landing zone is not followed",
        "zone",
        {"lakehouse.source_files.arriving.LinkGuard.problem": lambda *_: ""},
        {"MODES": ("append",)},
    ),
    Mend(
        "loads into a table that was dropped do not count",
        "runs",
        {"lakehouse.input.loaded_files.loads_on_main": lambda _catalog, _io, loads, _at: loads},
    ),
    Mend(
        "what one pipeline published meanwhile is not published again by a run of a zone",
        "zone",
        {"lakehouse.input.loaded_files.LoadedFiles.find_overlap": lambda *_: []},
        {"MODES": ("append",)},
    ),
    Mend(
        "an overwrite is loaded again whose rows another pipeline replaced",
        "writers",
        {"lakehouse.input.loaded_files.LoadedFiles._lacks_rows": lambda *_: False},
        {"MODES": ("overwrite",)},
    ),
    Mend(
        "a quarantine whose files another run loaded is not released",
        "writers",
        {
            "activities.quarantine.plan_release.input_overlap": lambda *_: "",
            "activities.quarantine.resume_branch.input_overlap": lambda *_: "",
            "lakehouse.input.loaded_files.LoadedFiles.find_overlap": lambda *_: [],
        },
        {"MODES": ("append",)},
    ),
    Mend(
        "rows are not requeued over those of a younger run",
        "requeues",
        {"lakehouse.input.later_loads.find_later_runs": lambda *_: []},
        {"MODES": ("merge",)},
    ),
    Mend(
        "rows are not requeued after their file was loaded again with other content",
        "requeues",
        {"lakehouse.input.later_loads.check_requeued_files": lambda *_: None},
        {"MODES": ("append",)},
    ),
    Mend(
        "rows that a requeue quarantined again are as old as before",
        "requeues",
        {"lakehouse.publishing.traced_runs.requeued_runs": lambda _: set()},
        {"MODES": ("merge",)},
    ),
)


@pytest.mark.matrix
@pytest.mark.usefixtures("immediate_listings")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.name)
def test_a_machine_finds_its_sequence_without_the_mend(
    mend: Mend, memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, drawn in mend.drawn.items():
        monkeypatch.setattr(f"{MAKERS[mend.machine].__module__}.{name}", drawn)
    machine = MAKERS[mend.machine]
    limits = settings(sequences(MOST_TRIED, same=True), phases=[Phase.generate], report_multiple_bugs=False)
    with monkeypatch.context() as without, pytest.raises(AssertionError):
        for name, off in mend.off.items():
            without.setattr(name, off)
        run_state_machine_as_test(machine(memory, tmp_path / "off"), settings=limits)
    few = settings(limits, max_examples=5)
    run_state_machine_as_test(machine(memory, tmp_path / "on"), settings=few)
