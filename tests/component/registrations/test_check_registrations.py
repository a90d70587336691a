"""Drift: target tables that are behind main are found and registered; tables that cannot be examined are reported.

`doctor` examines the same targets.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client

from activities.installation.examine_targets import examine_targets
from activities.registration.check_registrations import CheckRegistrationsActivity
from activities.registration.start_registrations import StartRegistrationsActivity
from lakehouse.targets.mirror import MirrorWriter
from lakehouse.targets.open_mirror import open_mirror
from sluice.contracts.registration import CheckedRegistrations, CheckRegistrationsInput, RegisterInput
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from sluice.publishing.certificate import _registration_properties
from sluice.publishing.commit_properties import REGISTERED, REGISTERS
from sluice.registration.targets import NO_TARGETS, Targets
from tests.harness.activity import run_activity
from tests.harness.http_receiver import HttpReceiver
from tests.harness.main_tables import MainTables
from tests.harness.rest_catalog import RestCatalogServer


class Checker:
    """The activity, with a client that records the workflows that it starts."""

    def __init__(self, main: MainTables, targets: dict[str, Any]) -> None:
        self.started: list[tuple[str, str]] = []
        self.targets = Targets.model_validate({"targets": targets})
        client = cast(Client, SimpleNamespace(start_workflow=self._start))
        self.mirrors = MirrorWriter(main.catalog, {})
        starter = StartRegistrationsActivity(client, self.targets, "here", "queue")
        self._activity = CheckRegistrationsActivity(main.catalog, self.mirrors, starter)

    async def check(self) -> CheckedRegistrations:
        self.started.clear()
        checked: CheckedRegistrations = await run_activity(
            self._activity.check_registrations, CheckRegistrationsInput()
        )
        return checked

    def register(self, name: str, table: str) -> None:
        target: Any = self.targets.targets[name]
        self.mirrors.bring_to_main(target, open_mirror(target), table)

    async def _start(self, workflow: str, input: RegisterInput, **_: Any) -> None:
        assert workflow == "RegisterPublication"
        self.started.append((input.target, input.table))


def rest(uri: str, **more: Any) -> dict[str, Any]:
    return {"kind": "rest", "uri": uri, "reads_local_files": True, **more}


async def test_what_is_missing_or_behind_is_registered_and_the_rest_left_alone(
    main: MainTables, server: RestCatalogServer
) -> None:
    checker = Checker(main, {"lake2": rest(server.uri, tables=["shop.*"])})
    for table in ("shop.a", "shop.b", "shop.c", "nyc.x"):
        main.publish(table)
    checker.register("lake2", "shop.a")
    checker.register("lake2", "shop.b")
    main.publish("shop.b")
    result = await checker.check()
    assert checker.started == [("lake2", "shop.b"), ("lake2", "shop.c")]
    assert (result.checked, result.behind, result.problems) == (3, 2, {})
    for _, table in list(checker.started):
        checker.register("lake2", table)
    assert (await checker.check()).behind == 0 and checker.started == []


async def test_what_pipelines_registered_is_known_from_main(main: MainTables, server: RestCatalogServer) -> None:
    """Temporal may have lost all data: the merge commits name targets and tables."""
    checker = Checker(main, {"lake2": rest(server.uri), "unused": rest(server.uri)})
    main.publish("t.x")
    main.publish("t.other")
    pipeline = {"name": "p", "write": {"job": "j.py"}, "tables": {"t.x": {}}, "after_publish": ["lake2", "lost"]}
    request = RunRequest(pipeline=Pipeline.model_validate(pipeline), input=RunInput(digest="d"), starter="ana")
    properties = _registration_properties(request)
    assert properties == {REGISTERS: "true", REGISTERED: json.dumps({"targets": ["lake2", "lost"], "tables": ["t.x"]})}
    main.catalog.commit_tables("main", main.catalog.head("main"), "merge", [], properties)
    await checker.check()
    assert checker.started == [("lake2", "t.x")]


async def test_a_target_that_is_away_holds_up_no_other(main: MainTables, server: RestCatalogServer) -> None:
    away = RestCatalogServer()
    away.close()
    checker = Checker(main, {"away": rest(away.uri, tables=["*"]), "lake2": rest(server.uri, tables=["*"])})
    main.publish("t.x")
    result = await checker.check()
    assert checker.started == [("lake2", "t.x")]
    assert "does not answer" in result.problems["away"]


async def test_what_no_retry_mends_is_reported_and_not_started(main: MainTables, server: RestCatalogServer) -> None:
    checker = Checker(main, {"lake2": rest(server.uri, tables=["*"], reads_local_files=False)})
    server.tables["t", "x"] = main.publish("t.x")
    main.publish("t.x")
    result = await checker.check()
    assert checker.started == [] and "cannot read files of this machine" in result.problems["lake2 t.x"]


async def test_a_table_that_main_lost_is_no_drift(main: MainTables, server: RestCatalogServer) -> None:
    checker = Checker(main, {"lake2": rest(server.uri, tables=["*"])})
    main.publish("t.x")
    checker.register("lake2", "t.x")
    main.drop("t.x")
    assert (await checker.check()).checked == 0 and ("t", "x") in server.tables


def test_doctor_looks_at_each_target(
    server: RestCatalogServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = HttpReceiver()
    monkeypatch.setenv("HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    hook = {"kind": "webhook", "url": f"{receiver.url}/path-token", "secret": {"env": "HOOK"}}
    targets = Targets.model_validate(
        {
            "targets": {
                "hook": hook,
                "no-secret": {**hook, "secret": {"env": "NOT_SET"}},
                "nobody": {**hook, "url": "http://127.0.0.1:9/path-token"},
                "announce": {"kind": "command", "command": ["/bin/true"]},
                "missing": {"kind": "command", "command": [str(tmp_path / "none")]},
                "lake2": rest(server.uri),
                "cannot-read": rest(server.uri, reads_local_files=False),
                "denied": rest(server.uri, token={"file": str(tmp_path / "none")}),
            }
        }
    )
    findings = {each.part.removeprefix("target "): each for each in examine_targets(targets, "file:///lake")}
    assert {name for name, each in findings.items() if each.state == "ok"} == {"hook", "announce", "lake2"}
    assert all(each.remedy for each in findings.values() if each.state == "failed")
    assert "NOT_SET" in findings["no-secret"].detail and "WAREHOUSE" in findings["cannot-read"].detail
    assert not any("path-token" in each.detail for each in findings.values())
    assert receiver.requests == []
    receiver.close()
    assert [each.state for each in examine_targets(NO_TARGETS, "s3://b/lake")] == ["off"]
