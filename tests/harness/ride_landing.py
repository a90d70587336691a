"""Landing zones of monthly rides, in a folder or in a bucket, and the worker that lists them."""

import json
import os
import random
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import requests

from devstack.object_store import upload
from devstack.stack import Stack
from devstack.store_events import EVENTS_ADDRESS
from runtime.installation.identity import with_known_installation
from runtime.store_access import CREDENTIALS_FILE
from sluice.contracts.arrivals import landing_zone_id
from sluice.settings import read_settings
from tests.harness.http_receiver import HttpReceiver
from tests.harness.lake import LakeReader
from tests.harness.ports import unused_port
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.rides import write_month
from tests.harness.system import SystemHarness
from tests.harness.temporal_thread import TEMPORAL

NAME, TABLE = "rides", "city.rides"


class RideLanding:
    """A landing zone of monthly files in a folder, and its worker, which is killed and started again."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder / "landing"
        self._home, self._environment = folder, dict(environment)
        self._worker = WorkerProcess(environment, folder)
        self.system, self.lake = SystemHarness(folder, self._environment), LakeReader(environment)
        self.kills: Counter[str] = Counter()
        self.undisturbed = threading.Lock()
        """A lock that prevents kills while a thread has acquired it."""

    @property
    def source(self) -> str:
        """The value of `arrival.from`."""
        return str(self.folder)

    def write(self, month: int, *, name: str = "", spoilt: bool = False) -> None:
        """Write the rides of a month into the zone."""
        write_month(self.folder, month, name=name, spoilt=spoilt)

    def deploy(self, arrival: str) -> None:
        """Deploy the zone with these keys of its arrival."""
        pipelines = self._home / "pipelines"
        for each in (self.folder, pipelines):
            each.mkdir()
        (pipelines / "rides.yml").write_text(
            f"name: {NAME}\nwrite: {{source: {{format: parquet}}}}\n"
            f"tables: {{{TABLE}: {{checks: [not_null: [ride_id], unique: [ride_id], "
            f"accepted_range: {{column: ride_id, max: 1000000}}]}}}}\n"
            f'arrival: {{from: "{self.source}", {arrival}}}\n'
        )
        deployed = self.system.command("deploy", str(pipelines), "--yes")
        assert deployed.code == 0, deployed.err

    def kill_worker(self) -> None:
        """Kill the worker with SIGKILL, and start another one."""
        self.kills["worker"] += 1
        self._worker.kill()
        self._worker = WorkerProcess(self._environment, self._home)

    def kill_spark(self) -> None:
        """Kill the worker's running Spark servers with SIGKILL. The worker starts another one."""
        for each in psutil.Process(self._worker.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if each.name() == "java":
                    self.kills["spark"] += 1
                    each.kill()

    def notify(self, times: int = 3) -> None:
        """Send a notification `times` times, as a messenger may."""

        async def send() -> None:
            client = await TEMPORAL.client(self._environment)
            settings = with_known_installation(read_settings(self._environment))
            zone = client.get_workflow_handle(landing_zone_id(settings.installation.sluice_installation, NAME))
            for _ in range(times):
                await zone.signal("look")

        TEMPORAL.run(send())

    def shown(self) -> dict[str, Any]:
        """Return the output of `arrivals`, as soon as a worker answers."""
        shown: dict[str, Any] = {}

        def answered() -> bool:
            output = self.system.command("arrivals", NAME, "--json", "--limit", "500")
            if output.code == 0:
                shown.update(output.json)
            return output.code == 0

        wait_for(answered)
        return shown

    def wait_until_loaded(self, files: int) -> None:
        """Wait until the zone has this number of files, each loaded or left out for a permanent reason."""
        wait_for(lambda: self._is_done(files), lambda: str(self.shown()), limit=900, pause=1)

    def _is_done(self, files: int) -> bool:
        shown = self.shown()
        return len(shown["files"]) == files and {each["status"] for each in shown["files"]} <= {"loaded", "ignored"}

    def close(self) -> None:
        """Remove the zone and end the worker: other tests of this process use the same server."""
        (self._home / "pipelines" / f"{NAME}.yml").unlink(missing_ok=True)
        removed = self.system.command("deploy", str(self._home / "pipelines"), "--yes")
        self._worker.stop()
        assert removed.code == 0, removed.err


class BucketLanding(RideLanding):
    """A landing zone of monthly files in the source bucket of a stack, reported by an unreliable messenger."""

    def __init__(self, folder: Path, stack: Stack, messenger: "UnreliableMessenger", more: Mapping[str, str]) -> None:
        self._variables = stack.up(with_worker=False)
        access = json.loads(Path(self._variables[CREDENTIALS_FILE]).read_text())
        own = {EVENTS_ADDRESS: messenger.worker_address, "SLUICE_HOME": str(stack.home), **more}
        super().__init__(folder, {**os.environ, **self._variables, **access, **own})
        self.lake = LakeReader.of_store(self._variables, access)

    @property
    def source(self) -> str:
        """The value of `arrival.from`."""
        return "s3://source/rides/"

    def write(self, month: int, *, name: str = "", spoilt: bool = False) -> None:
        """Put the rides of a month into the bucket. Retry until the store answers."""
        file = write_month(self.folder, month, name=name, spoilt=spoilt)
        wait_for(lambda: self._put(file))

    def _put(self, file: Path) -> bool:
        try:
            upload(self._variables, [(file, f"rides/{file.name}")])
        except OSError:
            return False
        return True


class UnreliableMessenger(HttpReceiver):
    """A messenger that forwards each event of a store not at all or three times, each time after some seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._draw = random.Random(1)
        self.delivered = 0
        """Number of events of rides that the worker accepted."""
        self.worker_address = f"127.0.0.1:{unused_port()}"
        self.answer = self._forward

    def _forward(self, number: int) -> int:
        body = self.requests[number - 1].body
        for _ in range(self._draw.choice((0, 3, 3))):
            later = threading.Timer(self._draw.uniform(0, 8), self._send, (body,))
            later.daemon = True
            later.start()
        return 204

    def _send(self, body: bytes) -> None:
        with suppress(requests.RequestException):  # the worker may be away; then the event is lost
            answer = requests.post(f"http://{self.worker_address}/", data=body, timeout=5)
            self.delivered += answer.ok and b"rides" in body
