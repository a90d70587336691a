"""Measure the time until a run continues after its worker was killed during a Spark write.

    python -m bench.recovery [--rounds 5]

Two workers share one queue, and the one that writes gets SIGKILL. Seconds count from there until the workflow begins
the next attempt's write, and until the next attempt's program runs, minus the heartbeat time-out.
"""

import argparse
import contextlib
import time
from pathlib import Path

import psutil

from bench.stack import ENGINES, BenchStack, bench_stack, median, save, say
from tests.harness.processes import WorkerProcess, wait_for

_PROGRAM = """\
import time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
first, second = Path("{folder}/first"), Path("{folder}/second")
if first.exists():
    second.write_text(str(time.time()))
    spark.range(5).writeTo("r.{table}").create()
else:
    first.touch()
    time.sleep(600)
"""
_HEARTBEAT = 5.0


def once(at: BenchStack, engine: str, number: int) -> dict[str, float]:
    """Kill a worker once; return the seconds until the run continues."""
    name = f"{engine}_{number}"
    folder = at.folder / name
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(folder=folder, table=name))
    system = at.system(engine)
    run = system.start(f"name: recover-{engine}-{number}\nwrite: {{job: {Path(program)}}}\ntables: [r.{name}]\n")
    wait_for((folder / "first").exists)
    at.workers["other"] = other = WorkerProcess(at.environment(engine), at.folder)
    if engine == "warm":
        _settle(other)
    killed = time.time()
    at.workers[engine].kill()
    at.workers[engine] = at.workers.pop("other")
    begun = 0.0
    while not begun:
        status = system.status(run)  # has fewer fields while the workflow does not answer queries
        again = status.get("attempts", 0) > 1 and status.get("stage") == "writing"
        begun = time.time() if again else 0.0
    output = system.wait_for_end(run)
    if output.json["outcome"] != "published":
        raise SystemExit(f"a measured run did not end as expected: {output}")
    program_ran = float((folder / "second").read_text())
    return {"begun": begun - killed - _HEARTBEAT, "ran": program_ran - killed - _HEARTBEAT}


def _settle(worker: WorkerProcess) -> None:
    """Wait until a worker's warm server has finished its warm-up job and is idle."""
    time.sleep(5)
    wait_for(lambda: _spent(worker, 0.5) < 0.1)


def _spent(worker: WorkerProcess, seconds: float) -> float:
    """Return the number of processors that the child processes of a worker keep busy."""
    before = _processor_time(worker)
    time.sleep(seconds)
    return (_processor_time(worker) - before) / seconds


def _processor_time(worker: WorkerProcess) -> float:
    total = 0.0
    for each in psutil.Process(worker.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            total += sum(each.cpu_times()[:2])
    return total


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    rounds = asked.parse_args().rounds
    results: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    with bench_stack(SLUICE_HEARTBEAT_TIMEOUT=str(_HEARTBEAT)) as at:
        for engine in ENGINES:
            for number in range(rounds):
                results[engine].append(once(at, engine, number))
                say(f"{engine}: {results[engine][-1]}")
    for engine, measured in results.items():
        begun, ran = (median([each[key] for each in measured]) for key in ("begun", "ran"))
        print(f"{engine}: the next attempt's write begins {begun:.2f} s after the time-out, its program {ran:.2f} s")
    save("recovery", results)


if __name__ == "__main__":
    main()
