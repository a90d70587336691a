"""Plan a rehearsal: good rows, and batches of faults in which the verdict of each check stays attributable.

Faults share a batch if they change different cells, and if each check passes with all faults of the batch except its
own. So a check that fails in the batch fails because of its own fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generation.faults import Planter
from generation.judging import Judge, Judgement, Row, RowEngine
from generation.labels import Fault, check_labels
from generation.requests import Request, make_maker, refuse_bad
from sluice.checks.base import Level

_LEVELS: Sequence[Level] = ("pass", "warn", "fail")
_Cells = Mapping[tuple[int, str], Any]


@dataclass(frozen=True)
class PlantedFault:
    """A fault that was planted for one check."""

    index: int
    what: str
    """Description of the change in the good rows, for a person."""
    expected: Level
    """The level that the check gives it, before the severity is applied."""
    rows: Sequence[Row]
    """The good rows with only this fault."""
    cells: _Cells | None
    """The changed values, by row position and column; None if the fault changes the number of rows."""
    breaks: frozenset[int]
    """The checks that give these rows a worse level than the good ones."""


@dataclass(frozen=True)
class FaultBatch:
    """Rows for one run, with the faults that they contain."""

    rows: Sequence[Row]
    faults: Sequence[PlantedFault]


@dataclass(frozen=True)
class RehearsalPlan:
    """Plan of a rehearsal: good rows, batches of faults, and checks without a fault."""

    labels: Sequence[str]
    good: Sequence[Row]
    batches: Sequence[FaultBatch]
    left_out: Mapping[int, str]
    """The checks for which no fault can be planted, each with the reason."""


def plan_rehearsal(request: Request, engine: RowEngine) -> RehearsalPlan:
    """Plan the rows of a rehearsal, in few batches.

    Raises:
        InvalidPipeline: the checks accept no generated rows.
    """
    maker = make_maker(request, engine)
    judge, good, labels = maker.judge, maker.make(), check_labels(request.checks)
    refuse_bad(judge, good, labels)
    planning = _Planning(judge, good)
    planter, left_out = Planter(maker), dict[int, str]()
    taken: set[int] = set()
    faults: list[PlantedFault] = []
    for index, label in enumerate(labels):
        planned = planning.plant(planter, Fault(index, label), taken)
        if isinstance(planned, str):
            left_out[index] = planned
        else:
            faults.append(planned)
            taken |= {at for at, _ in planned.cells or ()} if not _is_of_all_rows(planned, good) else set()
    return RehearsalPlan(labels, good, planning.batches(faults), left_out)


def _is_of_all_rows(fault: PlantedFault, good: Sequence[Row]) -> bool:
    return len({at for at, _ in fault.cells or ()}) > len(good) // 2


class _Planning:
    """Planner that plants faults in good rows and groups them into batches."""

    def __init__(self, judge: Judge, good: Sequence[Row]) -> None:
        self._judge, self._good = judge, good
        self._of_good = judge.judge(good)

    def plant(self, planter: Planter, fault: Fault, taken: set[int]) -> PlantedFault | str:
        """Return a fault, in rows without another one if possible, or the reason why it cannot be planted."""
        if reason := self._of_good[fault.index].reason:
            return reason
        planted = planter.plant(fault, self._good, taken)
        if planted.problem and taken:
            planted = planter.plant(fault, self._good)
        if planted.problem:
            return planted.problem
        judgements = self._judge.judge(planted.rows)
        breaks = self._worse(judgements)
        evaluation = judgements[fault.index].evaluation
        if fault.index not in breaks or evaluation is None:
            return "no change of the generated rows breaks it"
        cells = _changed_cells(self._good, planted.rows)
        return PlantedFault(fault.index, planted.what, evaluation.level, planted.rows, cells, breaks)

    def batches(self, faults: Sequence[PlantedFault]) -> list[FaultBatch]:
        """Group the faults into few batches, in which the verdict on each fault stays attributable."""
        groups: list[list[PlantedFault]] = []
        for fault in faults:
            group = next((each for each in groups if _may_join(fault, each)), None)
            if group is None:
                groups.append([fault])
            else:
                group.append(fault)
        return [batch for group in groups for batch in self._batches_of(group)]

    def _batches_of(self, group: Sequence[PlantedFault]) -> list[FaultBatch]:
        """Return a group as one batch, and a separate batch for each fault that is not attributable in it."""
        apart = self._not_attributable(group)
        rest = [each for each in group if each not in apart]
        alone = [FaultBatch(each.rows, [each]) for each in apart]
        return [*self._batches_of(rest), *alone] if apart else [FaultBatch(self._with(group), group)] if group else []

    def _not_attributable(self, group: Sequence[PlantedFault]) -> list[PlantedFault]:
        """Return the faults whose check misses its level with all faults, or gets worse by the other faults alone."""
        if len(group) < 2:
            return []
        of_all = self._judge.judge(self._with(group))
        apart = []
        for fault in group:
            of_others = self._judge.judge(self._with([each for each in group if each is not fault]))
            if _level(of_all[fault.index]) != fault.expected or fault.index in self._worse(of_others):
                apart.append(fault)
        return apart

    def _with(self, group: Sequence[PlantedFault]) -> Sequence[Row]:
        """Return the good rows with these faults."""
        if len(group) == 1:
            return group[0].rows
        rows = [dict(row) for row in self._good]
        for fault in group:
            for (at, name), value in (fault.cells or {}).items():
                rows[at][name] = value
        return rows

    def _worse(self, judgements: Sequence[Judgement]) -> frozenset[int]:
        """Return the checks that give other rows a worse level than the good ones."""
        return frozenset(
            index
            for index, (good, other) in enumerate(zip(self._of_good, judgements, strict=True))
            if _LEVELS.index(_level(other)) > _LEVELS.index(_level(good))
        )


def _level(judgement: Judgement) -> Level:
    return "pass" if judgement.evaluation is None else judgement.evaluation.level


def _changed_cells(good: Sequence[Row], made: Sequence[Row]) -> _Cells | None:
    if len(good) != len(made):
        return None
    return {
        (at, name): value
        for at, (old, new) in enumerate(zip(good, made, strict=True))
        for name, value in new.items()
        if value is not old[name] and value != old[name]
    }


def _may_join(fault: PlantedFault, group: Sequence[PlantedFault]) -> bool:
    """Return True if a fault and a group change different cells and do not break each other's checks."""
    return fault.cells is not None and all(
        each.cells is not None
        and fault.cells.keys().isdisjoint(each.cells)
        and each.index not in fault.breaks
        and fault.index not in each.breaks
        for each in group
    )
