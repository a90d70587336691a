"""Iceberg's REST reference server for tests, on 127.0.0.1, over a JDBC catalog on SQLite in a folder."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import CommitTableRequest

from devstack.ports import reserved_ports
from devstack.processes import Daemon, start, wait_until
from devstack.stack import ROOT
from engine.spark.java import find_java
from engine.spark.submit import SPARK_HOME
from tests.harness.ports import unused_port

NAME = "lake"
"""The catalog's name in its database. A JDBC catalog shows only the tables under its own name."""
_PROGRAM = Path(__file__).with_name("Server.java")
_JARS = ROOT / ".sluice" / "jars"
_FROM_SPARK = ("janino", "commons-compiler", "hadoop-client", "jcl-over-slf4j", "log4j")


class IcebergRestServer:
    """The server, with its database and warehouse in one folder. It keeps its port over restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "server.log"
        with reserved_ports():
            self._port = unused_port()
            self._daemon = self._start()
            self._wait()  # still reserved: another process may choose the port before the server listens

    @property
    def uri(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def warehouse(self) -> Path:
        """The folder of new tables."""
        return self.folder / "warehouse"

    def open(self, uri: str = "") -> RestCatalog:
        """Open the catalog by PyIceberg, at another address if one is given."""
        return RestCatalog(NAME, uri=uri or self.uri)

    def spark_properties(self, name: str, uri: str = "") -> dict[str, str]:
        """Return the configuration that gives Spark this catalog under a name."""
        prefix = f"spark.sql.catalog.{name}"
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "rest",
            f"{prefix}.uri": uri or self.uri,
            f"{prefix}.cache-enabled": "false",
        }

    def halt_after(self, tables: int) -> None:
        """Have the next transaction end the server, as `kill -9` does, after it committed this number of tables."""
        (self.folder / "halt-after").write_text(str(tables))

    def pause_after(self, tables: int) -> None:
        """Have transactions wait for `resume` after they committed this number of tables."""
        (self.folder / "pause-after").write_text(str(tables))

    def resume(self) -> None:
        """Resume waiting transactions, and let later ones pass."""
        (self.folder / "pause-after").unlink()

    def is_alive(self) -> bool:
        """Return True if the server runs."""
        return self._daemon.alive()

    def listens_on(self) -> list[str]:
        """Return the addresses on which the server listens."""
        connections = psutil.Process(self._daemon.pid).net_connections("tcp")
        return [each.laddr.ip.removeprefix("::ffff:") for each in connections if each.status == psutil.CONN_LISTEN]

    def start_again(self) -> None:
        """Restart the ended server on the same port and database, and cancel `halt_after`."""
        assert not self.is_alive(), "the server still runs"
        (self.folder / "halt-after").unlink(missing_ok=True)
        self._daemon = self._start()
        self._wait()

    def kill(self) -> None:
        """End the server by SIGKILL."""
        process = psutil.Process(self._daemon.pid)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End the server."""
        self._daemon.stop()

    def _start(self) -> Daemon:
        path = [f"{_JARS / 'iceberg-rest'}/*", *map(str, (_JARS / "spark").glob("sqlite-jdbc-*.jar"))]
        path += [str(jar) for name in _FROM_SPARK for jar in (SPARK_HOME / "jars").glob(f"{name}*.jar")]
        java = [str(find_java() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(path)]
        program = ["org.codehaus.janino.SimpleCompiler", str(_PROGRAM), "Main", str(self.folder), str(self._port), NAME]
        return start("Iceberg's REST server", [*java, *program], dict(os.environ), self.log)

    def _wait(self) -> None:
        wait_until(lambda: "listening on" in self._daemon.output(), self._daemon)


def commit_transaction(
    catalog: RestCatalog, changes: Sequence[CommitTableRequest], headers: dict[str, str] | None = None
) -> requests.Response:
    """Commit changes of several tables by one request of the REST protocol; return the answer, also an error."""
    body: dict[str, Any] = {"table-changes": [json.loads(change.model_dump_json()) for change in changes]}
    return catalog._session.post(catalog.url("transactions/commit"), json=body, headers=headers or {})
