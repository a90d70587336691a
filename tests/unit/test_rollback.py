"""Planning a roll-back: which tables go back to what, and which later runs stand in the way."""

import pytest

from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.publishing.rollback import PublishedCommit, plan_rollback, rollback_pipeline


def _commit(number: int, *tables: str) -> PublishedCommit:
    return PublishedCommit(f"h{number}", f"h{number - 1}", f"r{number}", f"w{number}", frozenset(tables))


HISTORY = [_commit(4, "c"), _commit(3, "b", "c"), _commit(2, "a", "b"), _commit(1, "a"), _commit(0, "x")]


def test_nothing_built_on_it() -> None:
    plan = plan_rollback(HISTORY, "r4", with_later=False)
    assert (plan.runs, plan.tables) == (["r4"], {"c": "h3"})


def test_later_runs_stand_in_the_way_by_name() -> None:
    with pytest.raises(InvalidPipeline, match=r"w3 \(b, c\), w4 \(c\).*--with-later"):
        plan_rollback(HISTORY, "r2", with_later=False)


def test_later_runs_are_taken_along_with_all_their_tables() -> None:
    plan = plan_rollback(HISTORY, "r2", with_later=True)
    assert plan.runs == ["r4", "r3", "r2"]
    assert plan.tables == {"a": "h1", "b": "h1", "c": "h2"}


def test_unrelated_later_runs_stay() -> None:
    history = [_commit(3, "a", "b"), _commit(2, "b"), _commit(1, "a")]
    assert plan_rollback(history, "r1", with_later=True).tables == {"a": "h0", "b": "h2"}


def test_a_run_that_is_not_there() -> None:
    with pytest.raises(InvalidPipeline, match="no commit of run r9"):
        plan_rollback(HISTORY, "r9", with_later=True)


def test_a_roll_back_is_audited_by_the_checks_of_whole_tables_that_remain() -> None:
    text = """\
name: two
write: {job: ingest, mode: sql, statements: [INSERT INTO n.a SELECT 1]}
tables:
  n.a: {checks: [not_null: x, unique: {column: x, scope: table}]}
  n.b: {checks: [unique: {column: y, scope: table}]}
"""
    pipeline = rollback_pipeline(parse_pipeline(text, "p.yml"), ["n.a", "n.b", "n.later"], ["n.a", "n.later"])
    assert pipeline.write.job == "rollback"
    checks = {name: [check.check for check in table.checks] for name, table in pipeline.tables.items()}
    assert checks == {"n.a": ["unique"], "n.b": [], "n.later": []}
