"""The local stack with an object store: the lake and its input on S3. Skipped if versitygw is not available."""

import json
import os
import stat
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psutil
import pytest

from devstack.object_store import upload
from devstack.stack import Stack
from runtime.store_access import CREDENTIALS_FILE
from tests.harness.object_store import stack_with_store
from tests.harness.processes import wait_for
from tests.harness.system import SystemHarness

ARRIVING = """
name: arriving
write: {source: {format: csv, schema: "id INT, city STRING"}}
tables:
  s3.arriving:
    checks: [not_null: [id], unique: [id]]
arrival: {from: "s3://source/arriving/", settle: 1s, look: 1h}
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Stack]:
    """A stack of the test's own without Nessie, with a store and two files in its source bucket."""
    with stack_with_store(tmp_path, CATALOG="sql") as stack:
        variables = stack.up()
        (tmp_path / "cities.csv").write_text("id,city\n1,Oslo\n2,Bergen\n")
        upload(variables, [(tmp_path / "cities.csv", "cities/cities.csv")])
        yield stack


def system_of(stack: Stack, folder: Path) -> SystemHarness:
    """Return the harness of a person's shell: it has the folder of the stack, and no settings of the store."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return SystemHarness(folder, {**others, "SLUICE_HOME": str(stack.home)})


@pytest.mark.timeout(900)  # building the store may be necessary
def test_a_run_from_s3_to_s3_in_an_iceberg_catalog(running: Stack, tmp_path: Path) -> None:
    """The pipeline of the environment reads the source bucket; a zone loads an object when it is put.

    `test_s3_arrivals.py` has the lake of a Nessie on S3.
    """
    ended = system_of(running, tmp_path).command(
        "--json", TABLE_NAME="cities", NAMESPACE="s3", S3_PATH="cities/*.csv", NOT_NULL_COLUMNS="id,city"
    )
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert ended.json["tables"]["s3.cities"]["total_rows"] == 2 and not ended.json["branch"]
    assert [check["answered_by"] for check in ended.json["checks"]] == ["metadata", "metadata"]
    lake = running.home / "s3" / "store" / "lake" / "warehouse"
    assert list(lake.glob("s3/cities*/data/*.parquet"))
    assert list(lake.glob("sluice/commits/commits/*.json")), "the history of the commit log is in the lake, too"
    check_that_an_object_is_loaded_when_it_is_put(running, tmp_path)
    check_secrecy(running)
    assert running.down() == ["page", "worker", "temporal", "store"]


def check_that_an_object_is_loaded_when_it_is_put(stack: Stack, folder: Path) -> None:
    """Put a file after the first listing of a zone that is listed hourly, so that only the store's event is sooner."""
    system, pipelines = system_of(stack, folder), folder / "pipelines"
    pipelines.mkdir()
    (pipelines / "arriving.yml").write_text(ARRIVING)
    assert system.command("deploy", str(pipelines), "--yes").code == 0
    shown: dict[str, Any] = {}

    def is_listed_hourly() -> bool:
        shown.update(system.command("arrivals", "arriving", "--json").json)
        next_look = datetime.fromisoformat(shown["next_look"])
        return next_look - datetime.now(timezone.utc) > timedelta(minutes=50)

    def is_loaded() -> bool:
        shown.update(system.command("arrivals", "arriving", "--json").json)
        return [each["status"] for each in shown["files"]] == ["loaded"]

    time.sleep(12)  # by now, the worker's list has the zone, and the zone has listed its files
    wait_for(is_listed_hourly, lambda: str(shown), pause=1)
    (folder / "jan.csv").write_text("id,city\n7,Oslo\n")
    upload(stack.variables(), [(folder / "jan.csv", "arriving/jan.csv")])
    wait_for(is_loaded, lambda: str(shown), pause=1)


def check_secrecy(stack: Stack) -> None:
    """Verify that only one file of the stack's owner has the credentials: they appear in no argument and no output."""
    file = Path(stack.variables()[CREDENTIALS_FILE])
    secret = json.loads(file.read_text())["AWS_SECRET_ACCESS_KEY"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in (stack.home / "stack.json").read_text()
    (store,) = (daemon for daemon in stack.daemons() if daemon.name == "store")
    assert secret not in " ".join(psutil.Process(store.pid).cmdline())
    assert not any(secret in log.read_text(errors="replace") for log in (stack.home / "logs").glob("*.log"))
