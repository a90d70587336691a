"""Plant faults: change good rows until one check, and if possible no other, refuses them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TypeGuard

from generation.columns import Column
from generation.faulty_sets import spoiled_columns
from generation.faulty_values import Change, changes, where_changes
from generation.judging import Row
from generation.labels import Fault
from generation.rows import RowMaker
from sluice.checks.base import Check
from sluice.checks.counts import RowCount
from sluice.checks.rows import Filtered, RowCheck
from sluice.checks.uniqueness import Unique, UniqueCombinationOfColumns
from sluice.errors import InvalidPipeline

_MOST_ROWS = 200_000
"""Maximum number of rows generated to break a check of the number of rows."""
_AT_ONCE = 200


@dataclass(frozen=True)
class Planted:
    """Rows with a fault, or the problem that prevents it."""

    rows: list[Row]
    positions: frozenset[int] = frozenset()
    """Positions of the rows that were changed; empty if the fault is in all of them."""
    what: str = ""
    problem: str = ""


def is_of_rows(check: Check) -> TypeGuard[RowCheck]:
    """Return True if single rows can break a check, not only all rows together."""
    return isinstance(check, RowCheck) and check.row_level


class Planter:
    """Planter of faults in the rows of one table."""

    def __init__(self, maker: RowMaker) -> None:
        self.maker, self.judge, self.random = maker, maker.judge, maker.random
        self.columns: dict[str, Column] = {name: each.column for name, each in maker.demands.items()}

    def plant(self, fault: Fault, rows: Sequence[Row], taken: Collection[int] = ()) -> Planted:
        """Return rows that break a check.

        Args:
            taken: positions of rows that stay unchanged, because they have other faults.

        Raises:
            InvalidPipeline: a share is given, but no single row breaks the check.
        """
        check = self.judge.checks[fault.index]
        if is_of_rows(check):
            planted = self._plant_rows(check, fault, rows, taken)
        elif fault.share not in (None, 1.0):
            raise InvalidPipeline(f"{fault.label} is about all rows: give --fault {fault.label} without a share")
        else:
            planted = self._plant_set(check, fault, rows)
        if planted.problem or self._breaks(fault, planted.rows):
            return planted
        return replace(planted, problem="no change of the generated rows breaks it")

    def _breaks(self, fault: Fault, rows: Sequence[Row]) -> bool:
        evaluation = self.judge.judge(rows)[fault.index].evaluation
        return evaluation is None or not evaluation.passed

    def _plant_rows(self, check: RowCheck, fault: Fault, rows: Sequence[Row], taken: Collection[int]) -> Planted:
        # The share counts as it is written: the nearest binary fraction may be larger and would spoil one row more.
        count = ceil(Fraction(repr(fault.share)) * len(rows)) if fault.share else self._least(check, len(rows))
        free = [at for at in range(len(rows)) if at not in taken]
        self.random.shuffle(free)
        if isinstance(check, Unique | UniqueCombinationOfColumns):
            changed = self._repeat(check, rows, free[: max(2, count)])
        else:
            changed = self._break_rows(check, fault.index, rows, free, count)
        if len(changed) < count:
            return Planted(list(rows), problem=f"only {len(changed)} of {count} rows that break it could be generated")
        made = list(rows)
        for at, row in changed.items():
            made[at] = row
        columns = ", ".join(check.own_columns)
        return Planted(made, frozenset(changed), f"{len(changed)} of {len(made)} rows with a bad {columns}")

    def _least(self, check: RowCheck, rows: int) -> int:
        """Return the minimum number of bad rows for which the check fails, or else warns."""
        statistics = self.judge.statistics(rows)
        levels: dict[str, int] = {}
        for failed in range(1, rows + 1):
            level = check.evaluate({"failed": failed, "rows": rows}, statistics).level
            levels.setdefault(level, failed)
            if level == "fail":
                break
        return levels.get("fail") or levels.get("warn") or 1

    def _repeat(
        self, check: Unique | UniqueCombinationOfColumns, rows: Sequence[Row], at: Sequence[int]
    ) -> dict[int, Row]:
        """Give rows the key of one of them, and return them by their positions."""
        names = check.own_columns
        source = next((rows[each] for each in at if all(rows[each][name] is not None for name in names)), None)
        if source is None:
            return {}
        key = {**{name: source[name] for name in names}, **where_changes(check.where, self.columns)}
        return {each: self._changed(rows[each], key) for each in at}

    def _break_rows(
        self, check: RowCheck, index: int, rows: Sequence[Row], free: Sequence[int], count: int
    ) -> dict[int, Row]:
        """Return up to `count` rows that a check reports as bad, by their positions."""
        changed: dict[int, Row] = {}
        for start in range(0, len(free), _AT_ONCE):
            places = free[start : start + _AT_ONCE]
            changed |= self._bad_candidates(check, index, rows, places, count - len(changed))
            if len(changed) >= count or (not changed and start >= 5 * _AT_ONCE):
                break
        return changed

    def _bad_candidates(
        self, check: RowCheck, index: int, rows: Sequence[Row], places: Sequence[int], count: int
    ) -> dict[int, Row]:
        candidates: list[tuple[int, Row]] = []
        for at in places:
            where = where_changes(check.where, self.columns)
            for change in changes(check, rows[at], self.columns, self.random):
                candidates.append((at, self._changed(rows[at], change)))
                if where:
                    candidates.append((at, self._changed(rows[at], {**where, **change})))
        every = [row for _, row in candidates]
        bad = self.judge.bad_rows(every, range(len(self.judge.checks)))
        wanted = set(bad.get(index, range(len(every))))
        others = {at for other, positions in bad.items() if other != index for at in positions}
        chosen: dict[int, Row] = {}
        for alone in (True, False):
            for number, (at, row) in enumerate(candidates):
                if (
                    number in wanted
                    and at not in chosen
                    and len(chosen) < count
                    and (number not in others or not alone)
                ):
                    chosen[at] = row
        return chosen

    def _changed(self, row: Row, change: Change) -> Row:
        made = {**row, **change}
        self.maker.settle_dates(made)
        return made

    def _plant_set(self, check: Check, fault: Fault, rows: Sequence[Row]) -> Planted:
        if isinstance(check, RowCount):
            return self._plant_count(check, rows)
        column = self.columns.get(getattr(check, "column", ""))
        if column is None or not isinstance(check, Filtered):
            return Planted(list(rows), problem=self.judge.refusal(check) or "it is not about the values of rows")
        for values in spoiled_columns(check, rows, column, self.judge.now):
            made = [self._changed(row, {column.name: value}) for row, value in zip(rows, values, strict=True)]
            if self._breaks(fault, made):
                return Planted(made, what=f"other values of {column.name} in the {len(made)} rows")
        return Planted(list(rows), problem="no change of the generated rows breaks it")

    def _plant_count(self, check: RowCount, rows: Sequence[Row]) -> Planted:
        if check.where:
            return Planted(list(rows), problem="it counts the rows that meet a condition")
        if check.min is not None and check.min > 1:
            made = list(rows)[: check.min - 1]
        elif check.max is not None and check.max < _MOST_ROWS:
            known = replace(self.maker.known, rows=check.max + 1)
            made = RowMaker(self.judge, known, "more rows").make()
        else:
            return Planted(list(rows), problem="only a file without rows, or a very large one, breaks it")
        return Planted(made, what=f"{len(made)} rows")
