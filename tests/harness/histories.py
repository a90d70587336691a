"""Record histories of real workflows in files, without the names of the recording machine."""

import asyncio
import base64
import getpass
import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecution

from devstack.stack import ROOT, Stack
from runtime.temporal_client import connect
from tests.harness.system import link_tools

TARGET = ROOT / "tests" / "histories"
"""The folder of the files."""
REPLAYED_QUEUE = "replay-histories"
"""The task queue of workflows that compare their queue: the replayer of Temporal's SDK uses this name."""
_LIMIT = 300
"""Maximum time to wait for a workflow, in seconds."""


class HistoryFiles:
    """Fetches histories from the server of an environment, and writes them to files."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment

    async def keep_workflow(self, name: str, workflow_id: str) -> None:
        """Write the history of the latest run of a workflow to the file `name`."""
        client = await connect(self._environment)
        self._write(name, (await client.get_workflow_handle(workflow_id).fetch_history()).to_json())

    async def keep_first(self, name: str, query: str) -> None:
        """Wait until a Temporal query lists a workflow; write the history of the earliest to the file `name`."""
        client = await connect(self._environment)
        workflows: list[WorkflowExecution] = []
        for _ in range(_LIMIT):
            workflows = [each async for each in client.list_workflows(query)]
            if workflows:
                break
            await asyncio.sleep(1)
        workflows.sort(key=lambda each: each.start_time)
        handle = client.get_workflow_handle(workflows[0].id, run_id=workflows[0].run_id)
        self._write(name, (await handle.fetch_history()).to_json())

    def _write(self, name: str, text: str) -> None:
        history = json.loads(text)
        (TARGET / f"{name}.json").write_text(json.dumps(scrubbed(history, self._replaced), indent=1) + "\n")
        print(f"recorded {name}: {len(history['events'])} events", flush=True)

    def _replaced(self, text: str) -> str:
        for path, stands_for in ((self._folder, "/srv/data"), (ROOT, "/srv/sluice")):
            text = text.replace(str(path), stands_for)
        text = text.replace(f"{getpass.getuser()}@{socket.gethostname()}", "ana@example")
        return re.sub(rf"\d+@{re.escape(socket.gethostname())}", "1@example", text)


def scrubbed(node: Any, replaced: Callable[[str], str]) -> Any:
    """Replace text everywhere in a history, including its encoded payloads."""
    if isinstance(node, dict) and isinstance(node.get("data"), str) and "metadata" in node:
        data = replaced(base64.b64decode(node["data"]).decode())
        return {**node, "data": base64.b64encode(data.encode()).decode()}
    if isinstance(node, dict):
        return {key: scrubbed(value, replaced) for key, value in node.items()}
    if isinstance(node, list):
        return [scrubbed(value, replaced) for value in node]
    return replaced(node) if isinstance(node, str) else node


@contextmanager
def stack_for_histories() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a folder and the variables of a stack without a worker; stop the stack afterwards."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        link_tools(home)
        variables = {"SLUICE_HOME": str(home), "SLUICE_HEARTBEAT_TIMEOUT": "5"}
        stack = Stack(home, {**os.environ, **variables})
        try:
            yield Path(folder), {**os.environ, **stack.up(with_worker=False), **variables}
        finally:
            stack.down()
