"""The checker of the fault tests can fail: it detects rows that are duplicated, lost, or removed by no run's order."""

import uuid
from pathlib import Path

from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.checker import Checker
from tests.harness.iceberg_checker import IcebergChecker
from tests.harness.iceberg_lake import IcebergLake, WriterJob
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.memory_lake import MemoryLake


def test_doubled_lost_and_removed_rows_are_seen(stack: dict[str, str], tmp_path: Path) -> None:
    settings = read_settings(stack)
    catalog = open_catalog(settings)
    checker = Checker(settings.catalog.nessie_uri, settings.catalog.nessie_writer_token_file, column="id")
    table = f"c{uuid.uuid4().hex[:12]}.rows"
    lake = MemoryLake(catalog, tmp_path)
    catalog.initialize_main()
    catalog.commit_tables("main", catalog.head("main"), "namespace", create_namespaces_for=[table])
    since = checker.head()
    lake.append("main", table, [1, 2])
    lake.append("main", table, [2, 3])
    published = {"run": ["1", "2", "3", "4"]}
    problems = checker.problems(since, published, [table])
    assert "2 is on main 2 times" in problems
    assert "4 of a published run is not on main" in problems
    assert not any("left" in problem for problem in problems)

    lake.replace_rows("main", table, [{"id": 2}, {"id": 3}])
    problems = checker.problems(since, published, [table])
    assert any(problem.startswith(f"1 left {table} by ") for problem in problems), problems
    assert not any(problem.startswith("3 left") for problem in problems)


def test_on_a_rest_server_what_the_log_does_not_say_is_seen_too(
    iceberg_rest: IcebergRestServer, tmp_path: Path
) -> None:
    catalog = open_iceberg("lake", "rest", iceberg_rest.uri, iceberg_rest.warehouse.as_uri(), {})
    lake = IcebergLake(catalog, iceberg_rest.open(), "rows")
    table = lake.name("rows")
    checker = IcebergChecker(iceberg_rest.uri, column="id")
    since = lake.catalog.head("main")
    assert checker.head() == since
    job = WriterJob(lake, tmp_path)
    job.append("rows", 2, 3)
    head = job.record()
    assert job.branch.name in checker.branches()
    assert lake.publish(job.branch, head).merged
    published = {"run": ["1", "2", "3", "4"]}
    problems = checker.problems(since, published, [table])
    assert "2 is on main 2 times" in problems
    assert "4 of a published run is not on main" in problems
    assert any("lacks sluice.run-id" in problem for problem in problems), problems
    assert not any("left" in problem or "the log says" in problem for problem in problems), problems

    lake.table("rows").delete("id = 1")
    assert any(f"main of {table} is at" in problem for problem in checker.problems(since, published, [table]))
    lake.catalog.head("main")
    problems = checker.problems(since, published, [table])
    assert any(problem.startswith(f"1 left {table} by ") for problem in problems), problems
    assert any("is not a merge: Changed by another program" in problem for problem in problems), problems
    assert not any("the log says" in problem for problem in problems), problems
