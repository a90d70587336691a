"""Snowflake as a target, with a fake of its connector: the service is not available here."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lakehouse.targets.mirror import MirrorWriter
from lakehouse.targets.open_mirror import open_mirror
from lakehouse.targets.snowflake import SnowflakeMirror
from sluice.errors import BadEnvironment, RegistrationRefused, ServiceUnavailable
from sluice.registration.target_kinds import SnowflakeTarget
from tests.harness.main_tables import MainTables

TABLE = "nyc.flights"
NAME = '"LAKE"."NYC"."FLIGHTS"'


class _Error(Exception):
    def __init__(self, message: str, errno: int = -1) -> None:
        super().__init__(message)
        self.errno = errno


class _ProgrammingError(_Error):
    pass


class FakeSnowflake(ModuleType):
    """A fake connector: its tables by name, and the statements that it got."""

    def __init__(self, volume: str) -> None:
        super().__init__("snowflake.connector")
        self.errors = SimpleNamespace(Error=_Error, ProgrammingError=_ProgrammingError)
        self.volume, self.tables, self.statements = volume, dict[str, str](), list[str]()
        self.logins: list[dict[str, Any]] = []
        self.failing, self.closed = 0, 0

    def connect(self, **given: Any) -> "FakeSnowflake":
        if self.failing:
            self.failing -= 1
            raise _Error("250001: Could not connect to Snowflake backend: HTTP 500")
        self.logins.append(given)
        return self

    def cursor(self) -> "FakeSnowflake":
        return self

    def close(self) -> None:
        self.closed += 1

    def execute(self, command: str, params: Sequence[object] | None = None) -> None:
        self.statements.append(command)
        if params:
            if str(params[0]) not in self.tables:
                raise _ProgrammingError(f"002003: Object '{params[0]}' does not exist or not authorized.", 2003)
            self.answer = json.dumps({"metadataLocation": self.tables[str(params[0])], "status": "success"})
        if created := re.match(r"CREATE ICEBERG TABLE IF NOT EXISTS (\S+) .*METADATA_FILE_PATH = '(.*)'", command):
            self.tables.setdefault(created[1], f"{self.volume}/{created[2]}")
        if refreshed := re.match(r"ALTER ICEBERG TABLE (\S+) REFRESH '(.*)'", command):
            self.tables[refreshed[1]] = f"{self.volume}/{refreshed[2]}"

    def fetchone(self) -> tuple[str]:
        return (self.answer,)


class _OfLocalFiles(SnowflakeTarget):
    """A Snowflake target for files on this machine. Snowflake cannot read them, but these tests read only metadata."""

    def location_problem(self, location: str) -> str | None:
        return None


@pytest.fixture
def main(tmp_path: Path) -> MainTables:
    return MainTables(tmp_path)


@pytest.fixture
def snowflake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSnowflake:
    fake = FakeSnowflake(f"file://{tmp_path}")
    monkeypatch.setitem(sys.modules, "snowflake", ModuleType("snowflake"))
    monkeypatch.setitem(sys.modules, "snowflake.connector", fake)
    monkeypatch.setenv("SNOW_TOKEN", "t0ken-of-snow")
    return fake


def target_of(folder: Path | str, **more: Any) -> SnowflakeTarget:
    fields = {
        "kind": "snowflake", "account": "org-acc", "user": "SLUICE", "database": "LAKE",
        "external_volume": "LAKE_VOLUME",
        "volume_location": str(folder), "catalog_integration": "FILES", "token": {"env": "SNOW_TOKEN"}, **more,
    }  # fmt: skip
    return _OfLocalFiles.model_validate(fields)


def register(main: MainTables, target: SnowflakeTarget) -> str:
    return MirrorWriter(main.catalog, {}).bring_to_main(target, open_mirror(target), TABLE)


def test_a_table_is_created_once_then_refreshed(main: MainTables, snowflake: FakeSnowflake, tmp_path: Path) -> None:
    target = target_of(snowflake.volume)
    first = main.publish(TABLE)
    assert register(main, target).startswith("registered")
    create = next(each for each in snowflake.statements if each.startswith("CREATE"))
    path = first.removeprefix(f"{snowflake.volume}/")
    assert create == (
        f'CREATE ICEBERG TABLE IF NOT EXISTS {NAME} EXTERNAL_VOLUME = "LAKE_VOLUME" CATALOG = "FILES" '
        f"METADATA_FILE_PATH = '{path}'"
    )
    second = main.publish(TABLE)
    assert register(main, target).startswith("now at 00002-")
    assert snowflake.tables == {NAME: second}
    before = len(snowflake.statements)
    assert register(main, target).endswith("already")
    assert all(each.startswith("SELECT") for each in snowflake.statements[before:])
    assert snowflake.closed == 2 * len(snowflake.logins)  # every cursor and every connection


def test_a_snowflake_that_answers_500_for_a_while_is_registered_in_the_end(
    main: MainTables, snowflake: FakeSnowflake
) -> None:
    latest = main.publish(TABLE)
    snowflake.failing = 2
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="HTTP 500"):
            register(main, target_of(snowflake.volume))
    register(main, target_of(snowflake.volume))
    assert snowflake.tables == {NAME: latest}


def test_another_table_of_the_same_name_is_left_alone(main: MainTables, snowflake: FakeSnowflake) -> None:
    main.publish(TABLE)
    register(main, target_of(snowflake.volume))
    theirs = dict(snowflake.tables)
    main.publish(TABLE, new=True)
    with pytest.raises(RegistrationRefused, match="another table of the name"):
        register(main, target_of(snowflake.volume))
    assert snowflake.tables == theirs


def test_a_key_is_given_as_the_connector_takes_it_and_shown_nowhere(
    main: MainTables, snowflake: FakeSnowflake, tmp_path: Path
) -> None:
    key = rsa.generate_private_key(65537, 2048)
    file = tmp_path / "key.pem"
    der, pem = (
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        for encoding in (serialization.Encoding.DER, serialization.Encoding.PEM)
    )
    file.write_bytes(pem)
    main.publish(TABLE)
    target = target_of(snowflake.volume, token=None, private_key={"file": str(file)})
    register(main, target)
    assert snowflake.logins[0]["private_key"] == der and "token" not in snowflake.logins[0]
    file.write_text("no key at all")
    with pytest.raises(BadEnvironment, match="not an unencrypted key") as refused:
        register(main, target)
    assert "no key at all" not in str(refused.value)


def test_names_and_paths_are_quoted(snowflake: FakeSnowflake, main: MainTables) -> None:
    mirror = SnowflakeMirror(target_of("s3://b/lake", database='L"AKE', external_volume='V"'))
    location = "s3://b/lake/it's \\ here.json"
    mirror.create("a.b", location, None)  # type: ignore[arg-type]
    assert '"L""AKE"."A"."B"' in snowflake.statements[-1] and '"V"""' in snowflake.statements[-1]
    assert snowflake.statements[-1].endswith(r"'it\'s \\ here.json'")
    with pytest.raises(RegistrationRefused, match="does not lie under"):
        mirror.create("a.b", "s3://b/lake2/x.json", None)  # type: ignore[arg-type]


def test_what_snowflake_cannot_read_or_name_is_refused_at_validation() -> None:
    target = SnowflakeTarget.model_validate(target_of("s3://b/lake").model_dump())
    assert "cannot read files of this machine" in str(target.location_problem("file:///lake"))
    assert "does not lie under" in str(target.location_problem("s3://other/lake"))
    assert target.location_problem("s3://b/lake") is target.location_problem("s3://b/lake/t/m.json") is None
    assert "one level" in str(target.table_problem("a.b.c"))
    with pytest.raises(ValueError, match="name one credential"):
        target_of("s3://b/lake", token=None)


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snowflake.connector", None)
    with pytest.raises(BadEnvironment, match=r"locks/snowflake.txt"):
        open_mirror(target_of("s3://b/lake"))
