"""The system harness: runs on the real stack, started and followed in the test's process by one Temporal client.

`command` and `run_command` start the command line as a process, for tests of the command line itself.
"""

import asyncio
import contextlib
import getpass
import json
import os
import random
import re
import socket
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError

from devstack.ports import RARELY_USED
from devstack.stack import PORTS, ROOT, Stack
from runtime.pipeline.pipeline_input import find_input, load_pipeline
from runtime.run.find_run import find_run, query_status, read_result
from runtime.run.start_run import StartOptions, start_run
from runtime.run.starter import Starter
from sluice.approval.decisions import Decision
from sluice.contracts.run import RunResult
from sluice.errors import InvalidPipeline, ServiceUnavailable, SluiceError
from sluice.publishing.exit_codes import exit_code
from sluice.setting_groups import InstallationSettings
from sluice.settings import read_settings
from tests.harness.command_line import CommandResult, run_command
from tests.harness.processes import wait_for
from tests.harness.temporal_thread import TEMPORAL
from workflows.write_audit_publish import WriteAuditPublish

_END_LIMIT = 600
"""Seconds after which an unfinished run counts as hung."""


@dataclass(frozen=True)
class EndedRun:
    """The end of a run, or the reason why it was not started, in the form of the command line."""

    code: int
    json: dict[str, Any]
    err: str = ""


class _OtherSparkQueue(InstallationSettings):
    """Settings of an installation that name another worker's task queue for Spark."""

    other_spark_queue: str

    @property
    def spark_queue(self) -> str:
        return self.other_spark_queue


class SystemHarness:
    """Start runs, follow them and run commands, in a folder and with an environment.

    With a `spark_queue`, runs use that task queue for the activities that run Spark.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], spark_queue: str = "") -> None:
        self.folder, self.environment = folder, environment
        self._spark_queue = spark_queue

    def command(self, *arguments: str, **changed: str) -> CommandResult:
        """Run a command of the command line as a process. `changed` adds variables to its environment."""
        return run_command(self.folder, {**self.environment, **changed}, *arguments)

    def run_command(self, pipeline: str, *arguments: str, **changed: str) -> CommandResult:
        """Write a pipeline file; run it with --json, as a process."""
        return self.command("run", str(self.file(pipeline)), "--json", *arguments, **changed)

    def run(self, pipeline: str, *, again: bool = False, **changed: str) -> EndedRun:
        """Run a pipeline to its end."""
        try:
            run = self.start(pipeline, again=again, **changed)
        except SluiceError as error:
            code = 7 if isinstance(error, ServiceUnavailable) else 2
            return EndedRun(code, {"outcome": None, "error": str(error), "exit_code": code}, str(error))
        return self.wait_for_end(run)

    def start(self, pipeline: str, *, again: bool = False, **changed: str) -> str:
        """Start a pipeline without following it; return the workflow id.

        Raises:
            SluiceError: the pipeline is not valid, or was published before.
        """
        return TEMPORAL.run(self._start(self.file(pipeline), again, {**self.environment, **changed}))

    def file(self, pipeline: str) -> Path:
        """Write a pipeline into a file of its own."""
        if home := self.environment.get("SLUICE_HOME"):
            _assert_own_tables(pipeline, Path(home))
        path = self.folder / f"pipeline-{uuid.uuid4().hex[:12]}.yml"  # several threads may start runs at once
        path.write_text(pipeline)
        return path

    def status(self, run: str) -> dict[str, Any]:
        """Return the state of a run as `status --json` prints it, or nothing if no worker answers."""
        return TEMPORAL.run(self._status(run))

    def wait_for_stage(self, run: str, *stages: str) -> dict[str, Any]:
        """Wait until a run is in one of these stages; return its status. The run may start later."""
        status: dict[str, Any] = {}

        def reached() -> bool:
            status.clear()
            with contextlib.suppress(InvalidPipeline):
                status.update(self.status(run))
            return status.get("stage") in stages

        wait_for(reached, lambda: f"{run} is at {status}, not in {stages}")
        return status

    def wait_for_attempt(self, run: str, attempt: int, stage: str = "waiting for approval") -> dict[str, Any]:
        """Wait until a run is in a stage of this attempt or a later one; return its status."""
        status: dict[str, Any] = {}

        def reached() -> bool:
            status.clear()
            status.update(self.status(run))
            return bool(status.get("attempts", 0) >= attempt) and status["stage"] == stage

        wait_for(reached, lambda: f"{run} is at {status}, not in attempt {attempt}")
        return status

    def wait_for_end(self, run: str) -> EndedRun:
        """Wait until a run has ended in any way; return its result and exit code."""
        result = TEMPORAL.run(asyncio.wait_for(self._result(run), _END_LIMIT))
        return EndedRun(exit_code(result), json.loads(result.model_dump_json()), result.reason)

    def approve(self, run: str, by: str = "ana") -> None:
        """Approve the hash that a run waits with, as a person who saw its status."""
        TEMPORAL.run(self._approve(run, by))

    def cancel(self, run: str) -> None:
        """Request the cancellation of a run."""
        TEMPORAL.run(self._cancel(run))

    async def _start(self, file: Path, again: bool, environment: Mapping[str, str]) -> str:
        pipeline = load_pipeline(file, environment, self.folder)
        client, settings = await TEMPORAL.client(environment), read_settings(environment)
        if self._spark_queue:
            own = settings.installation
            installation = _OtherSparkQueue.model_construct(**dict(own), other_spark_queue=self._spark_queue)
            settings = settings.model_copy(update={"installation": installation})
        starter = Starter(f"{getpass.getuser()}@{socket.gethostname()}", self.folder)
        started = await start_run(client, settings, pipeline, find_input(pipeline), starter, StartOptions(again=again))
        return started.handle.id

    async def _status(self, run: str) -> dict[str, Any]:
        client = await TEMPORAL.client(self.environment)
        execution = await find_run(client, run)
        if execution.ended:
            result = await read_result(client, execution.description)
            assert result
            return {**json.loads(result.model_dump_json()), "stage": "ended", "deadline": ""}
        status = await query_status(execution.handle)
        if status is None:
            return {}
        return {
            **json.loads(status.result.model_dump_json()),
            "stage": status.stage,
            "deadline": status.deadline,
            "audit_digest": status.audit_digest,
        }

    async def _result(self, run: str) -> RunResult:
        client = await TEMPORAL.client(self.environment)
        execution = await find_run(client, run)
        with contextlib.suppress(WorkflowFailureError):
            await execution.handle.result(follow_runs=False)
        result = await read_result(client, await execution.handle.describe())
        assert result
        return result

    async def _approve(self, run: str, by: str) -> None:
        execution = await find_run(await TEMPORAL.client(self.environment), run)
        seen = await query_status(execution.handle)
        assert seen, f"no worker answers for {run}"
        decision = Decision(
            approve=True, by=by, audited_hash=seen.result.audited_hash or "", audit_digest=seen.audit_digest
        )
        await execution.handle.execute_update(WriteAuditPublish.decide, decision)

    async def _cancel(self, run: str) -> None:
        execution = await find_run(await TEMPORAL.client(self.environment), run)
        await execution.handle.cancel()


def link_tools(home: Path) -> None:
    """Link the tools that set-up installed into the home folder of a test, and let its stack prefer ports of its own.

    While a test has killed a service, a stack that another process starts would take the usual port.
    """
    (home / "ports.json").write_text(json.dumps(dict(zip(PORTS, random.sample(RARELY_USED, len(PORTS)), strict=True))))
    for tools in ("jars", "bin", "cds"):
        if (ROOT / ".sluice" / tools).exists():
            (home / tools).symlink_to(ROOT / ".sluice" / tools)


@contextlib.contextmanager
def own_stack(folder: Path) -> Iterator[Stack]:
    """Yield a stack with a home in this folder, not yet started, for tests that break it; stop it afterwards."""
    home = folder / "home"
    home.mkdir()
    link_tools(home)
    stack = Stack(home, os.environ)
    try:
        yield stack
    finally:
        stack.down()


def _assert_own_tables(pipeline: str, home: Path) -> None:
    """Fail if another test module on the same stack uses one of the pipeline's tables.

    The number of processes decides which module runs first, so such tests fail now and then.
    """
    module = Path(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]).stem
    if not module:
        return  # no test runs: histories are being recorded
    for table in re.findall(r"^  (\w+\.\w+):|^tables: \[(.+)\]", pipeline, re.MULTILINE):
        for name in "".join(table).split(", "):
            users = home / "tables-of-tests" / name
            users.mkdir(parents=True, exist_ok=True)
            (users / module).touch()
            modules = sorted(user.name for user in users.iterdir())
            assert modules == [module], f"the table {name} is used by {modules}: each needs a name of its own"
