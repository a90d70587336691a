"""Glue as a catalog, by moto's server with Glue's lock: branches, half-done publishes, and Glue's answers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.log_commits import PENDING
from sluice.contracts.references import BranchRef
from sluice.errors import BadEnvironment, CatalogRefused, ServiceUnavailable, UnexpectedWrite
from tests.harness.glue_server import GlueServer
from tests.harness.iceberg_lake import IcebergLake, WriterJob

pytestmark = pytest.mark.slow
BOTH = ("one", "two")
SECRET = "secret-of-the-test"


def open_glue(server: GlueServer, folder: Path) -> IcebergCatalog:
    """Open the catalog as another process would. Each request is tried once."""
    return open_iceberg("lake", "glue", server.uri, folder.as_uri(), {**server.properties, "glue.max-retries": "0"})


@pytest.fixture
def lake(glue_server: GlueServer, tmp_path: Path) -> IcebergLake:
    reader = load_catalog("lake", type="glue", warehouse=tmp_path.as_uri(), **glue_server.properties)
    return IcebergLake(open_glue(glue_server, tmp_path), reader, *BOTH)


@pytest.fixture
def written(lake: IcebergLake, tmp_path: Path) -> tuple[BranchRef, str]:
    """A branch with its head, after a job added a row to both tables."""
    job = WriterJob(lake, tmp_path)
    for table in BOTH:
        job.append(table, 3)
    return job.branch, job.record()


def rows(lake: IcebergLake) -> list[list[int]]:
    return [lake.rows(table) for table in BOTH]


def assert_published_once(lake: IcebergLake, branch: BranchRef, head: str) -> None:
    """Assert that main of both tables moved by one commit, that the log agrees, and that a repeat finds the commit."""
    assert rows(lake) == [[1, 2, 3], [1, 2, 3]]
    assert [commit.merged for commit in lake.catalog.history("main")].count(head) == 1
    assert not [name for name in lake.reader.load_table("sluice.commits").refs() if name.startswith(PENDING)]
    main = lake.catalog.head("main")
    assert lake.publish(branch, head).main_after == main == lake.catalog.head("main")


def fail_before(table: str, error: Callable[[], None]) -> Callable[[str], None]:
    """Return a callback that calls `error` once, before main of a table moves."""
    left = [error]

    def before(updated: str) -> None:
        if updated == table and left:
            left.pop()()

    return before


def test_branches_of_many_processes_at_once_are_all_there(lake: IcebergLake, glue_server: GlueServer) -> None:
    """The log's branches rely on Glue's lock alone. Without it, one process would undo the changes of another."""
    base, folder = lake.catalog.head("main"), Path(lake.reader.properties["warehouse"].removeprefix("file://"))

    def create(process: int) -> None:
        catalog = open_glue(glue_server, folder)
        for number in range(5):
            catalog.create_branch(f"wap/x/p{process}-{number}", base)

    with ThreadPoolExecutor(4) as processes:
        list(processes.map(create, range(4)))
    names = {branch.name for branch in lake.catalog.list_branches("wap/x/p")}
    assert names == {f"wap/x/p{process}-{number}" for process in range(4) for number in range(5)}
    assert glue_server.refused > 0


def test_two_tables_are_published_one_by_one(lake: IcebergLake, written: tuple[BranchRef, str]) -> None:
    assert lake.catalog.capabilities.guarantee == "one by one"
    assert lake.publish(*written).merged
    assert_published_once(lake, *written)


@pytest.mark.parametrize("who", ["the repeat", "another process"])
def test_a_half_is_finished(
    who: str, lake: IcebergLake, written: tuple[BranchRef, str], glue_server: GlueServer, tmp_path: Path
) -> None:
    glue_server.lose_answer_of = lambda table, number: table == "one"
    with pytest.raises(ServiceUnavailable, match="Glue cannot serve now"):
        lake.publish(*written)
    assert rows(lake) == [[1, 2, 3], [1, 2]]
    glue_server.lose_answer_of = lambda table, number: False
    catalog = lake.catalog if who == "the repeat" else open_glue(glue_server, tmp_path)
    assert lake.publish(*written, catalog=catalog).merged
    assert_published_once(lake, *written)


def test_a_half_is_taken_back_where_the_other_table_moved(
    lake: IcebergLake, written: tuple[BranchRef, str], glue_server: GlueServer
) -> None:
    glue_server.before_update = fail_before("two", lambda: lake.append("two", 5))
    publication = lake.publish(*written)
    assert (publication.merged, publication.conflicts) == (False, [lake.name("two")])
    assert rows(lake) == [[1, 2], [1, 2, 5]]


def test_a_half_that_cannot_be_taken_back_is_loud(
    lake: IcebergLake, written: tuple[BranchRef, str], glue_server: GlueServer
) -> None:
    def both() -> None:
        for table in BOTH:
            lake.append(table, 5)

    glue_server.before_update = fail_before("two", both)
    with pytest.raises(UnexpectedWrite, match="half published"):
        lake.publish(*written)
    assert rows(lake) == [[1, 2, 3, 5], [1, 2, 5]]


def test_the_answer_to_every_update_is_lost_once(
    lake: IcebergLake, written: tuple[BranchRef, str], glue_server: GlueServer, tmp_path: Path
) -> None:
    """The SDK repeats the update, and gets a conflict with its own first one."""
    glue_server.lose_answer_of = lambda table, number: True
    catalog = open_iceberg("lake", "glue", glue_server.uri, tmp_path.as_uri(), glue_server.properties)
    assert lake.publish(*written, catalog=catalog).merged
    assert glue_server.refused >= 3
    glue_server.lose_answer_of = lambda table, number: False
    assert_published_once(lake, *written)


def test_the_log_keeps_a_hundred_metadata_files(lake: IcebergLake) -> None:
    name = lake.branch().name
    for number in range(110):
        lake.catalog.commit_tables(name, lake.catalog.head(name), "note", properties={"number": str(number)})
    location = lake.reader.load_table("sluice.commits").location().removeprefix("file://")
    assert len(list(Path(location, "metadata").glob("*.metadata.json"))) == 101


def test_a_table_that_is_not_icebergs_is_left_alone(lake: IcebergLake, glue_server: GlueServer, tmp_path: Path) -> None:
    reader: Any = lake.reader
    reader.glue.create_table(DatabaseName=lake.namespace, TableInput={"Name": "of_hive", "Parameters": {"a": "b"}})
    lake.append("one", 7)
    head = lake.catalog.head("main")
    assert lake.catalog.list_tables("main", head) == [lake.name(table) for table in BOTH]
    with pytest.raises(CatalogRefused, match="not as an Iceberg table"):
        lake.catalog._branches.table(lake.name("of_hive"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("UnrecognizedClientException", BadEnvironment),
        ("ExpiredTokenException", BadEnvironment),
        ("AccessDeniedException", BadEnvironment),
        ("InvalidInputException", CatalogRefused),
        ("ThrottlingException", ServiceUnavailable),
        ("InternalServiceException", ServiceUnavailable),
    ],
)
def test_what_glue_refuses_is_one_error(
    code: str, expected: type[Exception], glue_server: GlueServer, tmp_path: Path
) -> None:
    catalog = open_glue(glue_server, tmp_path)
    glue_server.refuse_all_with = code
    with pytest.raises(expected, match=code) as raised:
        catalog.initialize_main()
    glue_server.refuse_all_with = ""
    assert SECRET not in str(raised.value)


def test_a_glue_that_is_away_is_tried_again_and_one_without_an_identity_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = {"glue.region": "eu-central-1", "glue.max-retries": "0"}
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadEnvironment, match="NoCredentialsError"):
        open_iceberg("lake", "glue", "http://127.0.0.1:9", tmp_path.as_uri(), away).initialize_main()
    away |= {"glue.access-key-id": "a-key", "glue.secret-access-key": SECRET}
    with pytest.raises(ServiceUnavailable, match="EndpointConnectionError"):
        open_iceberg("lake", "glue", "http://127.0.0.1:9", tmp_path.as_uri(), away).initialize_main()
