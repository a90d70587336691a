"""A real YARN on this machine: a resource manager and a node manager, with ports and folders of their own."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.spark.java import find_java
from engine.spark.submit import SPARK_HOME
from tests.harness.processes import wait_for

_PACKAGE = "org.apache.hadoop.yarn.server"
_DAEMONS = ("resourcemanager.ResourceManager", "nodemanager.NodeManager")
_OPENED = [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in ("lang", "util", "net", "io")]
_ADDRESSES = (
    *("resourcemanager.address", "resourcemanager.scheduler.address", "resourcemanager.resource-tracker.address"),
    *("resourcemanager.admin.address", "resourcemanager.webapp.address", "nodemanager.address"),
    *("nodemanager.localizer.address", "nodemanager.webapp.address"),
)
_SITE = {
    "resourcemanager.hostname": "127.0.0.1",
    "resourcemanager.bind-host": "127.0.0.1",
    "nodemanager.bind-host": "127.0.0.1",
    "nodemanager.resource.memory-mb": "8192",
    "nodemanager.resource.cpu-vcores": "8",
    "nodemanager.vmem-check-enabled": "false",
    "nodemanager.disk-health-checker.enable": "false",
    "scheduler.minimum-allocation-mb": "128",
}
_LOGS = """\
rootLogger.level = info
rootLogger.appenderRef.all.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""
_CAPACITY = {"root.queues": "default", "root.default.capacity": "100", "maximum-am-resource-percent": "1.0"}


class Yarn:
    """One cluster of one node."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf = folder, folder / "conf"

    @property
    def log(self) -> str:
        """The log of the resource manager."""
        return (self.folder / "daemon0.log").read_text()

    def ended(self, application: str) -> str:
        """Return the final state of an application, or an empty string while it runs."""
        lines = [line for line in self.log.splitlines() if f"{application} State change from" in line]
        state = lines[-1].split(" to ")[1].split()[0] if lines else ""
        return state if state in ("FINISHED", "FAILED", "KILLED") else ""


@contextmanager
def yarn(folder: Path, jars: Path) -> Iterator[Yarn]:
    """Start the cluster; end it afterwards."""
    unused, started = Yarn(folder), []
    _configure(unused)
    path = f"{unused.conf}:{jars}/*:{SPARK_HOME}/jars/*"
    command = [str(find_java() / "bin" / "java"), *_OPENED, "-Xmx256m", "-cp", path]
    try:
        for number, daemon in enumerate(_DAEMONS):
            with (folder / f"daemon{number}.log").open("wb") as out:
                started.append(
                    subprocess.Popen(
                        [*command, f"{_PACKAGE}.{daemon}"],
                        env={**os.environ, "JAVA_HOME": str(find_java())},
                        stdout=out,
                        stderr=out,
                        start_new_session=True,
                    )
                )
        wait_for(lambda: "Transitioned from NEW to RUNNING" in unused.log, lambda: unused.log[-3000:])
        yield unused
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGKILL)  # it has no state to save, and a graceful end takes long
            process.wait(30)


def _configure(cluster: Yarn) -> None:
    cluster.conf.mkdir()
    (cluster.conf / "log4j2.properties").write_text(_LOGS)
    folders = {f"nodemanager.{each}-dirs": str(cluster.folder / each) for each in ("local", "log")}
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(_ADDRESSES, _ports(len(_ADDRESSES)), strict=True)}
    _write(cluster.conf / "yarn-site.xml", "yarn.", {**_SITE, **folders, **addresses})
    _write(cluster.conf / "core-site.xml", "fs.", {"defaultFS": "file:///"})
    _write(cluster.conf / "capacity-scheduler.xml", "yarn.scheduler.capacity.", _CAPACITY)


def _write(file: Path, prefix: str, values: dict[str, str]) -> None:
    lines = [f"<property><name>{prefix}{key}</name><value>{value}</value></property>" for key, value in values.items()]
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))


def _ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
