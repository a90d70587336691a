"""The lake and its input on an S3-compatible store, where one can be had: versitygw, by its Go package."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from devstack.jars import install_jars
from devstack.ports import choose_port
from devstack.processes import start, wait_until
from devstack.stack import ROOT
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness

GO_PACKAGE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


@pytest.fixture(scope="module")
def gateway() -> str:
    """The store's program: on the PATH, built before, or built by Go now."""
    built = ROOT / ".sluice" / "bin" / "versitygw"
    program = shutil.which("versitygw") or (str(built) if built.exists() else None)
    if program is None and (go := shutil.which("go")):
        build = {**os.environ, "GOBIN": str(built.parent)}
        subprocess.run([go, "install", GO_PACKAGE], env=build, capture_output=True, timeout=280, check=False)
        program = str(built) if built.exists() else None
    if program is None:
        pytest.skip("there is no S3-compatible store: no versitygw, and no Go to build it")
    return program


@pytest.fixture
def store(gateway: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A running store with two buckets, as the variables by which programs find it."""
    for bucket in ("lake", "landing"):
        (tmp_path / "store" / bucket).mkdir(parents=True)
    address = f"127.0.0.1:{choose_port(7070, None, '', set())}"
    command = [gateway, "--access", "key", "--secret", "secret", "--port", address, "posix", str(tmp_path / "store")]
    daemon = start("versitygw", command, dict(os.environ), tmp_path / "store.log")

    def uploaded() -> bool:
        system = fs.S3FileSystem(
            access_key="key", secret_key="secret", endpoint_override=address, scheme="http", region="us-east-1"
        )
        try:
            with system.open_output_stream("landing/cities.csv") as file:
                file.write(b"id,city\n1,Oslo\n2,Bergen\n")
        except OSError:
            return False
        return True

    wait_until(uploaded, daemon, 30)
    yield {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL_S3": f"http://{address}",
        "WAREHOUSE": "s3://lake/warehouse",
    }
    daemon.stop()


@pytest.mark.timeout(900)  # the store may have to be built
@pytest.mark.parametrize("catalog", ["nessie", "iceberg"])
def test_a_run_from_s3_to_s3(
    catalog: str,
    store: dict[str, str],
    home: Path,
    system: SystemHarness,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    install_jars(home, ["s3"])
    chosen = {"CATALOGUE": catalog, "ICEBERG_URI": f"sqlite:///{tmp_path}/catalog.db" if catalog == "iceberg" else ""}
    environment = {**system.environment, **store, **chosen, "SLUICE_TASK_QUEUE": request.node.name}
    worker = WorkerProcess(environment, tmp_path)
    try:
        ended = SystemHarness(tmp_path, environment).command(
            "--json", TABLE_NAME="cities", NAMESPACE="s3", S3_PATH="s3://landing/*.csv", NOT_NULL_COLUMNS="id,city"
        )
    finally:
        worker.stop()
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert ended.json["tables"]["s3.cities"]["total_rows"] == 2
    assert [check["answered_by"] for check in ended.json["checks"]] == ["metadata", "metadata"]
    assert list((tmp_path / "store" / "lake" / "warehouse").glob("s3/cities*/data/*.parquet"))
    if catalog == "iceberg":  # the history of the commit log is in the lake, too
        assert list((tmp_path / "store" / "lake" / "warehouse").glob("sluice/commits/commits/*.json"))
    assert not ended.json["branch"]
