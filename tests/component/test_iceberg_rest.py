"""Iceberg's REST reference server, and the proxy before it, behave as tests of catalogs assume."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableRequest, Table, TableIdentifier
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
)
from pyspark.sql import SparkSession

from lakehouse.iceberg_catalog.connect import open_iceberg
from tests.harness.iceberg_rest import IcebergRestServer, commit_transaction
from tests.harness.processes import wait_for
from tests.harness.proxies import ICEBERG_FAULTS, Fault, IcebergProxy, once

BRANCH = "wap/x/r1/a1"
IDS = pa.schema([("id", pa.int32())])
MARK = "wap.run-id"
ROWS = pa.table({"id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[IcebergRestServer]:
    """A server that the test may end."""
    server = IcebergRestServer(tmp_path)
    try:
        yield server
    finally:
        server.stop()


class Tables:
    """Two tables in a namespace of the test's own, each with two rows on main and one more on a branch."""

    def __init__(self, catalog: RestCatalog) -> None:
        self.catalog, self.namespace = catalog, f"n{uuid4().hex[:8]}"
        catalog.create_namespace(self.namespace)
        self.names = [f"{self.namespace}.{name}" for name in ("one", "two")]
        for name in self.names:
            table = catalog.create_table(name, schema=IDS, properties={"write.wap.enabled": "true"})
            table.append(ROWS)
            table.manage_snapshots().create_branch(snapshot_id(table), BRANCH).commit()
            table.append(ROWS.slice(0, 1), branch=BRANCH)

    def rows_on_main(self) -> list[int]:
        """Return the number of rows on main of each table."""
        return [len(self.catalog.load_table(name).scan().to_arrow()) for name in self.names]

    def publishing(self, wrong_in_second: bool = False) -> list[CommitTableRequest]:
        """Return the changes that set main of both tables to the branch. An assertion in the second may be violated."""
        main, second = (self._publishing(name) for name in self.names)
        if wrong_in_second:
            wrong = AssertRefSnapshotId(ref="main", snapshot_id=7)
            second = second.model_copy(update={"requirements": (*second.requirements, wrong)})
        return [main, second]

    def publish_one(self) -> None:
        """Move main of the first table by a commit of that table alone."""
        change = self._publishing(self.names[0])
        self.catalog.commit_table(self.catalog.load_table(self.names[0]), change.requirements, change.updates)

    def _publishing(self, name: str) -> CommitTableRequest:
        metadata = self.catalog.load_table(name).metadata
        main, branch = metadata.refs["main"].snapshot_id, metadata.refs[BRANCH].snapshot_id
        return CommitTableRequest(
            identifier=TableIdentifier(namespace=(self.namespace,), name=name.split(".")[1]),
            requirements=(
                AssertTableUUID(uuid=metadata.table_uuid),
                AssertRefSnapshotId(ref="main", snapshot_id=main),
                AssertRefSnapshotId(ref=BRANCH, snapshot_id=branch),
            ),
            updates=(
                set_ref("main", "branch", branch),
                RemoveSnapshotRefUpdate(ref_name=BRANCH),
                SetPropertiesUpdate(updates={"published-by": "r1"}),
            ),
        )


def set_ref(name: str, kind: Literal["branch", "tag"], snapshot: int) -> SetSnapshotRefUpdate:
    """Return the update that sets a branch or a tag, without retention rules."""
    return SetSnapshotRefUpdate(
        ref_name=name,
        type=kind,
        snapshot_id=snapshot,
        max_ref_age_ms=None,
        max_snapshot_age_ms=None,
        min_snapshots_to_keep=None,
    )


def snapshot_id(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot
    return snapshot.snapshot_id


@pytest.fixture
def tables(iceberg_rest: IcebergRestServer) -> Tables:
    # Later tests on this server begin a commit log, which is refused where publications have none.
    open_iceberg("lake", "rest", iceberg_rest.uri, iceberg_rest.warehouse.as_uri(), {}).initialize_main()
    return Tables(iceberg_rest.open())


def test_a_transaction_moves_both_tables_once(tables: Tables) -> None:
    changes = tables.publishing()
    assert commit_transaction(tables.catalog, changes).status_code == 204
    assert tables.rows_on_main() == [3, 3]
    repeated = commit_transaction(tables.catalog, changes)
    assert (repeated.status_code, repeated.json()["error"]["type"]) == (409, "CommitFailedException")
    assert tables.rows_on_main() == [3, 3]
    assert all(list(tables.catalog.load_table(name).metadata.refs) == ["main"] for name in tables.names)


def test_a_wrong_assertion_moves_neither_table(tables: Tables) -> None:
    refused = commit_transaction(tables.catalog, tables.publishing(wrong_in_second=True))
    assert refused.status_code == 409
    assert "expected id 7" in refused.json()["error"]["message"]
    assert tables.rows_on_main() == [2, 2]


def test_a_repeat_with_its_idempotency_key_is_acknowledged(tables: Tables) -> None:
    changes, key = tables.publishing(), {"Idempotency-Key": str(uuid4())}
    answers = [commit_transaction(tables.catalog, changes, key).status_code for _ in range(2)]
    assert answers == [204, 204]
    assert tables.rows_on_main() == [3, 3]


def test_the_server_says_that_it_has_transactions_and_listens_on_this_machine_alone(
    iceberg_rest: IcebergRestServer,
) -> None:
    assert "POST /v1/{prefix}/transactions/commit" in map(str, iceberg_rest.open()._supported_endpoints)
    assert iceberg_rest.listens_on() == ["127.0.0.1"]


def test_a_server_that_ends_between_two_tables_leaves_a_half(own_server: IcebergRestServer) -> None:
    """The guarantee `checked` exists for this case: the first table is published, the second is not."""
    tables = Tables(own_server.open())
    changes = tables.publishing()
    own_server.halt_after(1)
    with pytest.raises(requests.ConnectionError):
        commit_transaction(tables.catalog, changes)
    wait_for(lambda: not own_server.is_alive(), own_server.log.read_text)
    own_server.start_again()
    assert tables.rows_on_main() == [3, 2]
    assert commit_transaction(tables.catalog, changes).status_code == 409
    assert commit_transaction(tables.catalog, changes[1:]).status_code == 204
    assert tables.rows_on_main() == [3, 3]


def test_a_transaction_that_is_overtaken_between_two_tables_is_acknowledged_and_half_lost(
    own_server: IcebergRestServer,
) -> None:
    """The reference server answers 204 although the second table did not move: its answer proves nothing."""
    tables = Tables(own_server.open())
    answers: list[int] = []
    own_server.pause_after(1)
    changes = tables.publishing()
    publishing = threading.Thread(
        target=lambda: answers.append(commit_transaction(own_server.open(), changes).status_code)
    )
    publishing.start()
    wait_for(lambda: tables.rows_on_main() == [3, 2], own_server.log.read_text)
    tables.catalog.load_table(tables.names[1]).append(ROWS)
    own_server.resume()
    publishing.join()
    assert answers == [204]
    assert tables.rows_on_main() == [3, 4]
    assert list(tables.catalog.load_table(tables.names[1]).metadata.refs) == ["main", BRANCH]


def test_what_was_acknowledged_outlives_a_kill(own_server: IcebergRestServer) -> None:
    tables = Tables(own_server.open())
    assert commit_transaction(tables.catalog, tables.publishing()).status_code == 204
    own_server.kill()
    own_server.start_again()
    assert tables.rows_on_main() == [3, 3]


def test_spark_writes_to_and_reads_from_a_branch(
    tables: Tables, iceberg_rest: IcebergRestServer, spark: SparkSession
) -> None:
    session, table = spark.newSession(), f"rest.{tables.names[0]}"
    for key, value in iceberg_rest.spark_properties("rest").items():
        session.conf.set(key, value)
    session.conf.set("spark.wap.branch", BRANCH)
    session.conf.set(f"spark.sql.iceberg.snapshot-property.{MARK}", "r1")
    session.sql(f"INSERT INTO {table} VALUES (9)")
    session.sql(f"DELETE FROM {table} WHERE id = 2")
    assert sorted(row.id for row in session.sql(f"SELECT id FROM {table}").collect()) == [1, 1, 9]
    assert session.sql(f"SELECT * FROM {table} VERSION AS OF 'main'").count() == 2
    metadata = tables.catalog.load_table(tables.names[0]).metadata
    written = metadata.snapshot_by_id(metadata.refs[BRANCH].snapshot_id)
    assert written and written.summary and written.summary[MARK] == "r1"


def test_a_branch_that_was_made_a_tag_takes_no_more_writes(
    tables: Tables, iceberg_rest: IcebergRestServer, spark: SparkSession
) -> None:
    """The next write would create a deleted branch again. A tag of its name prevents that in every client."""
    table = tables.catalog.load_table(tables.names[0])
    head = table.metadata.refs[BRANCH].snapshot_id
    tag = set_ref(BRANCH, "tag", head)
    tables.catalog.commit_table(table, (AssertRefSnapshotId(ref=BRANCH, snapshot_id=head),), (tag,))
    session = spark.newSession()
    for key, value in iceberg_rest.spark_properties("tagged").items():
        session.conf.set(key, value)
    session.conf.set("spark.wap.branch", BRANCH)
    with pytest.raises(Exception, match="is a tag, not a branch"):
        session.sql(f"INSERT INTO tagged.{tables.names[0]} VALUES (9)")
    with pytest.raises(Exception, match="is a tag, not a branch"):
        tables.catalog.load_table(tables.names[0]).append(ROWS, branch=BRANCH)
    assert tables.catalog.load_table(tables.names[0]).metadata.refs[BRANCH].snapshot_id == head


EXECUTED = {"refuse": False, "409": False, "drop": True, "500": True, "504": True, "delay": True, "repeat": True}


@pytest.mark.parametrize("fault", ICEBERG_FAULTS)
def test_the_proxy_breaks_a_transaction(fault: Fault, tables: Tables, iceberg_rest: IcebergRestServer) -> None:
    proxy = IcebergProxy(iceberg_rest.uri, once("transaction", fault))
    try:
        through = iceberg_rest.open(proxy.uri)
        try:
            status = str(commit_transaction(through, tables.publishing()).status_code)
        except requests.ConnectionError:
            status = "drop"
    finally:
        proxy.stop()
    assert proxy.done == [("POST", "transaction", fault)]
    assert status == {"refuse": "503", "delay": "204", "repeat": "409"}.get(fault, fault)
    assert tables.rows_on_main() == ([3, 3] if EXECUTED[fault] else [2, 2])


@pytest.mark.parametrize("fault", ["409", "500"])
def test_the_proxy_tells_a_publish_of_one_table_from_other_commits(
    fault: Fault, tables: Tables, iceberg_rest: IcebergRestServer
) -> None:
    proxy = IcebergProxy(iceberg_rest.uri, once("publish", fault))
    try:
        tables.catalog = iceberg_rest.open(proxy.uri)
        tables.catalog.load_table(tables.names[0]).append(ROWS, branch=BRANCH)
        assert not proxy.done
        with pytest.raises(CommitFailedException if fault == "409" else CommitStateUnknownException):
            tables.publish_one()
    finally:
        proxy.stop()
    assert proxy.done == [("POST", "publish", fault)]
    tables.catalog = iceberg_rest.open()
    assert tables.rows_on_main()[0] == (5 if EXECUTED[fault] else 2)
