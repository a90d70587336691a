"""The access of programs to the object store: variables, the credentials of the local stack, and buckets by name."""

import json
import os
import stat
from pathlib import Path
from unittest import mock

import pytest

from devstack.errors import StackError
from devstack.object_store import build_store_program, make_credentials, server_variables, store_command
from devstack.object_store import store_variables as variables_of
from devstack.stack import Stack
from runtime.store_access import CREDENTIALS_FILE, export_store_access
from sluice.pipeline.environment import pipeline_from_environment
from sluice.settings import read_settings

OTHERS = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SESSION_TOKEN": "token", "AWS_PROFILE": "work", "AWS_REGION": "eu-north-1"}


def exported(environment: dict[str, str], before: dict[str, str]) -> dict[str, str]:
    with mock.patch.dict(os.environ, before, clear=True):
        export_store_access(environment)
        return dict(os.environ)


def test_variables_of_a_file_do_not_replace_those_of_the_process() -> None:
    given = {"AWS_ACCESS_KEY_ID": "of the file", "AWS_SECRET_ACCESS_KEY": "s", "SLACK_TOKEN": "t"}
    after = exported(given, {"AWS_ACCESS_KEY_ID": "of the process"})
    assert after == {"AWS_ACCESS_KEY_ID": "of the process", "AWS_SECRET_ACCESS_KEY": "s"}


def test_the_credentials_of_the_local_store_replace_others_for_this_store_alone(tmp_path: Path) -> None:
    variables = variables_of(tmp_path, "127.0.0.1:7070", {})
    made = make_credentials(variables)
    after = exported({**OTHERS, **variables}, OTHERS)
    assert after == made and after["AWS_REGION"] == "us-east-1"
    other_store = {**OTHERS, **variables, "AWS_ENDPOINT_URL_S3": "https://store.example"}
    assert exported(other_store, OTHERS)["AWS_ACCESS_KEY_ID"] == "mine"
    Path(variables[CREDENTIALS_FILE]).unlink()
    assert exported({**OTHERS, **variables}, OTHERS)["AWS_ACCESS_KEY_ID"] == "mine"


def test_credentials_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    made = make_credentials(variables_of(tmp_path, "127.0.0.1:7070", {}))
    again = make_credentials(variables_of(tmp_path, "127.0.0.1:7071", {}))
    file = tmp_path / "identity" / "store.json"
    assert again == {**made, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:7071"} == json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    other = make_credentials(variables_of(tmp_path / "other", "127.0.0.1:7070", {}))
    assert other["AWS_SECRET_ACCESS_KEY"] != made["AWS_SECRET_ACCESS_KEY"]
    assert set(server_variables(made).values()) == {made["AWS_ACCESS_KEY_ID"], made["AWS_SECRET_ACCESS_KEY"]}


def test_buckets_have_the_names_that_the_user_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "versitygw"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setenv("PATH", "/nowhere")
    variables = variables_of(tmp_path, "127.0.0.1:7070", {"SOURCE_BUCKET": "drop", "LAKE_BUCKET": ""})
    command = store_command(tmp_path, tmp_path / "store", variables)
    assert {each.name for each in (tmp_path / "store").iterdir()} == {"drop", "lake"}
    assert command[0] == str(program) and "127.0.0.1:7070" in command
    program.unlink()
    with pytest.raises(StackError, match="run `make store`"):
        store_command(tmp_path, tmp_path / "store", variables)
    with pytest.raises(StackError, match="no Go to build it: install it"):
        build_store_program(tmp_path)


def test_a_stack_with_a_store_does_not_mix_with_another_lake(tmp_path: Path) -> None:
    for name in ("WAREHOUSE", "AWS_ENDPOINT_URL_S3"):
        with pytest.raises(StackError, match=f"{name} is set, but S3=1 starts its own store"):
            Stack(tmp_path, {name: "s3://other"}, s3=True).up()
    assert not (tmp_path / "stack.json").exists()
    running = {"name": "temporal", "pid": os.getpid(), "born": 0, "log": ""}
    (tmp_path / "stack.json").write_text(json.dumps({"daemons": [running], "environment": {}, "ports": {}}))
    with (
        mock.patch("devstack.processes.Daemon.alive", return_value=True),
        pytest.raises(StackError, match="runs without an object store: stop it first, by `make down`"),
    ):
        Stack(tmp_path, {}, s3=True).up()


@pytest.mark.parametrize(
    ("given", "lake"),
    [
        ({"LAKE_BUCKET": "ours"}, "s3://ours/warehouse"),
        ({"LAKE_BUCKET": "s3://ours/"}, "s3://ours/warehouse"),
        ({"LAKE_BUCKET": "ours", "WAREHOUSE": "s3://other/place"}, "s3://other/place"),
    ],
)
def test_the_lake_is_in_its_bucket(given: dict[str, str], lake: str) -> None:
    assert read_settings(given).storage.lake == lake


@pytest.mark.parametrize(
    ("path", "bucket", "read"),
    [
        ("cities/*.csv", "drop", "s3://drop/cities/*.csv"),
        ("cities/*.csv", "s3://drop/", "s3://drop/cities/*.csv"),
        ("cities/*.csv", "", "cities/*.csv"),
        ("./cities.csv", "drop", "./cities.csv"),
        ("/data/cities.csv", "drop", "/data/cities.csv"),
        ("~/cities.csv", "drop", "~/cities.csv"),
        ("s3://other/cities.csv", "drop", "s3://other/cities.csv"),
        ("file:/data/cities.csv", "drop", "file:/data/cities.csv"),
    ],
)
def test_a_relative_path_is_below_the_source_bucket(path: str, bucket: str, read: str) -> None:
    given = {"TABLE_NAME": "cities", "NAMESPACE": "geo", "S3_PATH": path, "SOURCE_BUCKET": bucket}
    source = pipeline_from_environment(given).write.source
    assert source and source.path == read
