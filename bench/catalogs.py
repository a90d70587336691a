"""Measure runs on Nessie beside runs on Iceberg's own catalog in an SQLite file, in turns.

    python -m bench.catalogs [--rounds 7] [--rows 100000]

Both have a stack of their own, with a warm Spark. Each run loads a new file, checks it and publishes it.
"""

import argparse
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.stack import median, save, say
from devstack.stack import Stack
from tests.harness.system import SystemHarness, link_tools

_PIPELINE = """\
name: load-{number}
write: {{source: {{path: {file}, format: csv}}, mode: append}}
tables:
  bench.rows:
    checks:
      - not_null: [id, name]
      - unique: [id]
      - row_count: {{min: 1}}
"""


def load(system: SystemHarness, folder: Path, number: int, rows: int) -> tuple[float, dict[str, float]]:
    """Run a pipeline that loads a new file; return the seconds of the whole run, and of each stage."""
    file = folder / f"{number}.csv"
    lines = (f"{number * rows + row},name {row}" for row in range(rows))
    file.write_text("id,name\n" + "\n".join(lines) + "\n")
    began = time.monotonic()
    ended = system.run(_PIPELINE.format(number=number, file=file))
    seconds = time.monotonic() - began
    if ended.json["outcome"] != "published":
        raise SystemExit(f"a measured run ended otherwise: {ended}")
    return seconds, ended.json["timings"]


def main() -> None:
    """Measure, and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    runs: dict[str, list[float]] = {"nessie": [], "iceberg": []}
    stages: dict[str, list[dict[str, float]]] = {"nessie": [], "iceberg": []}
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as running:
        systems: dict[str, SystemHarness] = {}
        for catalog in runs:
            folder = Path(temporary) / catalog
            (home := folder / "home").mkdir(parents=True)
            link_tools(home)
            variables = {"SLUICE_HOME": str(home), "CATALOGUE": catalog, "SPARK_ENGINE": "connect"}
            stack = Stack(home, {**os.environ, **variables})
            running.callback(stack.down)
            systems[catalog] = SystemHarness(folder, {**os.environ, **stack.up(), **variables})
        for number in range(options.rounds + 2):
            for catalog, system in systems.items():
                seconds, timings = load(system, Path(temporary) / catalog, number, options.rows)
                if number < 2:  # the first creates the table, and both warm up
                    continue
                runs[catalog].append(seconds)
                stages[catalog].append(timings)
                say(f"{catalog:8} {seconds:6.2f} s  {timings}")
    medians = {catalog: median(seconds) for catalog, seconds in runs.items()}
    ratio = medians["iceberg"] / medians["nessie"]
    say(f"median of {options.rounds}: nessie {medians['nessie']:.2f} s, iceberg {medians['iceberg']:.2f} s")
    say(f"a run on iceberg takes {ratio:.2f} times one on Nessie")
    save("catalogs", {"rounds": options.rounds, "rows": options.rows, "runs": runs, "stages": stages})


if __name__ == "__main__":
    main()
