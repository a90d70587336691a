"""A REST catalog as a target: brought to the present main, from any earlier state and despite concurrent changes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehouse.targets.mirror import MirrorWriter
from lakehouse.targets.open_mirror import open_mirror
from sluice.errors import BadEnvironment, RegistrationRefused, ServiceUnavailable
from sluice.registration.target_kinds import RestTarget, SecretSource
from sluice.registration.targets import Targets
from tests.harness.main_tables import MainTables
from tests.harness.rest_catalog import RestCatalogServer


def target_of(uri: str, **more: object) -> RestTarget:
    return RestTarget.model_validate({"kind": "rest", "uri": uri, "reads_local_files": True, **more})


def register(main: MainTables, target: RestTarget, table: str = "a.b.x") -> str:
    return MirrorWriter(main.catalog, {}).bring_to_main(target, open_mirror(target), table)


def test_a_table_is_registered_then_updated_and_a_repeat_changes_nothing(
    main: MainTables, server: RestCatalogServer
) -> None:
    target = target_of(server.uri)
    first = main.publish("a.b.x")
    assert register(main, target).startswith("registered, at 00001-")
    assert server.tables == {("a\x1fb", "x"): first} and server.namespaces == {"a", "a\x1fb"}
    second = main.publish("a.b.x")
    assert register(main, target).startswith("now at 00002-")
    assert server.tables == {("a\x1fb", "x"): second}
    writes = [request for request in server.requests if not request.startswith("GET")]
    assert register(main, target).endswith("already")
    assert [request for request in server.requests if not request.startswith("GET")] == writes


def test_what_was_published_meanwhile_is_registered_too(main: MainTables, server: RestCatalogServer) -> None:
    """The target gets the present main, not the one that the run left."""
    main.publish("a.b.x")
    newer: list[str] = []
    server.before_register = lambda: newer.append(main.publish("a.b.x")) if not newer else None
    register(main, target_of(server.uri))
    assert server.tables["a\x1fb", "x"] == newer[0]


def test_a_main_that_moves_each_time_is_tried_again_later(main: MainTables, server: RestCatalogServer) -> None:
    main.publish("a.b.x")
    server.before_register = lambda: main.point("a.b.x", main.publish("a.b.x"))
    with pytest.raises(ServiceUnavailable, match="main moves"):
        register(main, target_of(server.uri))


def test_two_at_once_leave_the_target_at_main(main: MainTables, server: RestCatalogServer) -> None:
    target = target_of(server.uri)
    main.publish("a.b.x")
    register(main, target)
    latest = main.publish("a.b.x")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: register(main, target), range(8)))
    assert server.tables["a\x1fb", "x"] == latest


def test_another_table_of_the_same_name_is_left_alone(main: MainTables, server: RestCatalogServer) -> None:
    target = target_of(server.uri)
    theirs = main.publish("a.b.x")
    register(main, target)
    main.publish("a.b.x", new=True)
    with pytest.raises(RegistrationRefused, match="another table of the name"):
        register(main, target)
    assert server.tables["a\x1fb", "x"] == theirs


def test_a_table_that_main_lost_is_not_dropped_at_the_target(main: MainTables, server: RestCatalogServer) -> None:
    target = target_of(server.uri)
    main.publish("a.b.x")
    register(main, target)
    main.drop("a.b.x")
    with pytest.raises(RegistrationRefused, match="main has no table"):
        register(main, target)
    assert ("a\x1fb", "x") in server.tables


@pytest.mark.parametrize(("status", "kind"), [(409, "AlreadyExistsException"), (406, "UnsupportedOperationException")])
def test_a_server_that_cannot_overwrite_needs_leave_to_drop(
    main: MainTables, server: RestCatalogServer, status: int, kind: str
) -> None:
    """Servers that ignore the option answer 409, Iceberg's reference server answers 406."""
    server.can_overwrite = False
    server.refusal = status, {"error": {"message": "not supported", "type": kind, "code": status}}
    first = main.publish("a.b.x")
    register(main, target_of(server.uri))
    second = main.publish("a.b.x")
    with pytest.raises(RegistrationRefused, match="drop_and_register: true"):
        register(main, target_of(server.uri))
    assert server.tables["a\x1fb", "x"] == first
    register(main, target_of(server.uri, drop_and_register=True))
    assert server.tables["a\x1fb", "x"] == second


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503, 504])
def test_a_failure_is_one_that_a_retry_may_mend(main: MainTables, server: RestCatalogServer, status: int) -> None:
    latest = main.publish("a.b.x")
    server.fail = lambda request: status if request.endswith("/register") else None
    with pytest.raises(ServiceUnavailable):
        register(main, target_of(server.uri))
    server.fail = lambda request: None
    register(main, target_of(server.uri))
    assert server.tables["a\x1fb", "x"] == latest


def test_a_target_that_is_down_is_named_by_its_host_alone(main: MainTables, server: RestCatalogServer) -> None:
    main.publish("a.b.x")
    server.close()
    with pytest.raises(ServiceUnavailable, match=r"127.0.0.1:\d+ does not answer") as refused:
        register(main, target_of(f"{server.uri}/path-token-123"))
    assert "path-token" not in str(refused.value)


def test_a_token_is_sent_and_read_when_it_is_used(main: MainTables, server: RestCatalogServer, tmp_path: Path) -> None:
    main.publish("a.b.x")
    file = tmp_path / "token"
    target = target_of(server.uri, token={"file": str(file)})
    with pytest.raises(BadEnvironment, match="No such file"):
        register(main, target)
    file.write_text("t0ken-of-the-target")
    register(main, target)
    assert "Bearer t0ken-of-the-target" in server.authorizations
    assert "t0ken" not in repr(target)


def test_local_files_are_refused_unless_the_target_says_that_it_reads_them(
    main: MainTables, server: RestCatalogServer
) -> None:
    main.publish("a.b.x")
    target = target_of(server.uri, reads_local_files=False)
    with pytest.raises(RegistrationRefused, match="cannot read files of this machine"):
        register(main, target)
    assert not server.tables
    known = Targets(targets={"lake2": target, "laptop": target_of(server.uri)})
    assert "WAREHOUSE=s3://" in known.problems(["lake2"], ["t.x"], "file:///lake")[0]
    assert known.problems(["lake2"], ["t.x"], "s3://bucket/lake") == []
    assert known.problems(["laptop"], ["t.x"], "file:///lake") == []


def test_a_secret_among_the_properties_is_refused() -> None:
    with pytest.raises(ValueError, match="looks like a secret"):
        target_of("https://h.example", properties={"s3.secret-access-key": "x"})
    assert SecretSource(env="A").env == "A"
