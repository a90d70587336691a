"""Measure the processor time of commands that do no work, compared with that of the imports that they need.

    python -m bench.front_door [--rounds 9]

Figures are processor time (user and system) of a whole process in seconds, the median of the rounds. Commands and
imports alternate in one run. `list` reaches no server here: it ends when it finds that no stack runs.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.stack import median, save
from devstack.stack import ROOT

_TYPER = "import typer, rich"
_CLIENT = "import temporalio.client"
_RUN = ["run_workflow.py"]
PROGRAMS = {
    "import typer, rich": ["-c", _TYPER],
    "--help": [*_RUN, "--help"],
    "run --help": [*_RUN, "run", "--help"],
    "checks": [*_RUN, "checks"],
    "import temporalio.client": ["-c", _CLIENT],
    "list": [*_RUN, "list"],
    "status": [*_RUN, "status", "no-such-run"],
}
"""Arguments of Python by name. An import is compared with the commands after it, up to the next import."""


def processor_time(arguments: list[str], environment: dict[str, str]) -> float:
    """Return the processor time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure, print the results with their ratios, and save the raw data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as empty:
        home = str(Path(empty) / "home")  # no stack of this checkout is reached
        environment = {**os.environ, "SLUICE_HOME": home, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, arguments in PROGRAMS.items():
                took = processor_time(arguments, environment)
                if number:  # the first round compiles modules
                    times[name].append(took)
    base = ""
    for name, took_each in times.items():
        base = name if name.startswith("import") else base
        print(f"{name:26} {median(took_each):6.3f} s, {median(took_each) / median(times[base]):5.2f} times `{base}`")
    save("front_door", times)


if __name__ == "__main__":
    main()
