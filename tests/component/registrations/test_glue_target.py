"""Glue as a target, on moto's server: its optimistic lock, entries of other programs, and unsupported names."""

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
import requests

from lakehouse.targets.glue import GlueMirror
from lakehouse.targets.mirror import MirrorWriter
from sluice.errors import RegistrationRefused, ServiceUnavailable
from sluice.registration.target_kinds import GlueTarget
from sluice.registration.targets import Targets
from tests.harness.http_receiver import HttpReceiver
from tests.harness.main_tables import MainTables
from tests.harness.moto_server import moto_server

TABLE = "nyc.flights"


class _GlueOfLocalFiles(GlueTarget):
    """A Glue target for files on this machine. Glue cannot read them, but these tests read only metadata."""

    def location_problem(self, location: str) -> str | None:
        return None


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def target(server: str, monkeypatch: pytest.MonkeyPatch) -> GlueTarget:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
    requests.post(f"{server}/moto-api/reset", timeout=10).raise_for_status()
    return _GlueOfLocalFiles(kind="glue", region="eu-central-1", endpoint_url=server, catalog_id="123456789012")


@pytest.fixture
def glue(target: GlueTarget) -> Any:
    return botocore.session.Session().create_client("glue", region_name=target.region, endpoint_url=target.endpoint_url)


def register(main: MainTables, target: GlueTarget) -> str:
    return MirrorWriter(main.catalog, {}).bring_to_main(target, GlueMirror(target), TABLE)


def held(glue: Any, target: GlueTarget) -> dict[str, Any]:
    answer: dict[str, Any] = glue.get_table(CatalogId=target.catalog_id, DatabaseName="nyc", Name="flights")
    return dict(answer["Table"])


def test_a_table_is_created_with_its_columns_then_updated(main: MainTables, target: GlueTarget, glue: Any) -> None:
    first = main.publish(TABLE)
    assert register(main, target).startswith("registered")
    table = held(glue, target)
    assert table["Parameters"] == {"table_type": "ICEBERG", "metadata_location": first, "EXTERNAL": "TRUE"}
    columns = {column["Name"]: column["Type"] for column in table["StorageDescriptor"]["Columns"]}
    assert columns == {
        "id": "bigint",
        "price": "decimal(9,2)",
        "tags": "array<string>",
        "place": "struct<city:string>",
        "extra": "map<string,bigint>",
    }
    second = main.publish(TABLE)
    assert register(main, target).startswith("now at 00002-")
    table = held(glue, target)
    assert table["Parameters"]["metadata_location"] == second
    assert table["Parameters"]["previous_metadata_location"] == first
    assert register(main, target).endswith("already")
    assert held(glue, target)["VersionId"] == table["VersionId"]


def test_a_change_that_comes_between_is_not_overwritten(main: MainTables, target: GlueTarget, glue: Any) -> None:
    main.publish(TABLE)
    register(main, target)
    second = main.publish(TABLE)
    mirror = GlueMirror(target)
    present = mirror.find(TABLE)
    assert present and present.version
    table = held(glue, target)
    glue.update_table(
        CatalogId=target.catalog_id,
        DatabaseName="nyc",
        TableInput={"Name": "flights", "Owner": "ana", "Parameters": table["Parameters"]},
    )
    metadata = MirrorWriter(main.catalog, {})._metadata(second)
    with pytest.raises(ServiceUnavailable, match="changed there meanwhile"):
        mirror.update(TABLE, second, metadata, present)
    register(main, target)  # the next try reads the entry again, and keeps the changes of others
    assert held(glue, target)["Owner"] == "ana"
    assert held(glue, target)["Parameters"]["metadata_location"] == second


def test_the_update_names_the_version_that_was_looked_at(
    main: MainTables, target: GlueTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Glue itself enforces the lock: the server refuses the update if the entry changed after the last read."""
    main.publish(TABLE)
    register(main, target)
    main.publish(TABLE)
    mirror, seen = GlueMirror(target), []

    def refused(**given: Any) -> None:
        seen.append(given["VersionId"])
        answer = {"Error": {"Code": "ConcurrentModificationException", "Message": "Update table failed"}}
        raise mirror._glue.exceptions.ConcurrentModificationException(answer, "UpdateTable")

    monkeypatch.setattr(mirror._glue, "update_table", refused)
    with pytest.raises(ServiceUnavailable, match="ConcurrentModificationException"):
        MirrorWriter(main.catalog, {}).bring_to_main(target, mirror, TABLE)
    present = mirror.find(TABLE)
    assert present and seen == [present.version]


def test_a_table_that_is_not_icebergs_is_left_alone(main: MainTables, target: GlueTarget, glue: Any) -> None:
    main.publish(TABLE)
    glue.create_database(CatalogId=target.catalog_id, DatabaseInput={"Name": "nyc"})
    glue.create_table(CatalogId=target.catalog_id, DatabaseName="nyc", TableInput={"Name": "flights"})
    with pytest.raises(RegistrationRefused, match="not as an Iceberg table"):
        register(main, target)


def test_a_glue_that_is_away_is_tried_again(main: MainTables, target: GlueTarget) -> None:
    main.publish(TABLE)
    away = target.model_copy(update={"endpoint_url": "http://127.0.0.1:9"})
    with pytest.raises(ServiceUnavailable, match="Glue does not answer") as refused:
        register(main, away)
    assert "secret-of-the-test" not in str(refused.value)


def test_a_glue_that_answers_500_for_a_while_is_registered_in_the_end(
    main: MainTables, target: GlueTarget, glue: Any
) -> None:
    latest, receiver = main.publish(TABLE), HttpReceiver()
    receiver.answer = lambda number: 500
    try:
        with pytest.raises(ServiceUnavailable, match="Glue refuses: 500"):
            register(main, target.model_copy(update={"endpoint_url": receiver.url}))
    finally:
        receiver.close()
    register(main, target)
    assert held(glue, target)["Parameters"]["metadata_location"] == latest


@pytest.mark.parametrize(("table", "why"), [("a.b.c", "one level"), ("Nyc.flights", "small letters")])
def test_names_that_glue_cannot_hold_are_refused_at_validation(table: str, why: str) -> None:
    known = Targets(targets={"glue": GlueTarget(kind="glue", region="eu-central-1")})
    assert any(why in problem for problem in known.problems(["glue"], [table], "s3://b/lake"))
    assert known.problems(["glue"], ["nyc.flights"], "s3://b/lake") == []
    assert "cannot read files of this machine" in known.problems(["glue"], ["nyc.flights"], "file:///lake")[0]
