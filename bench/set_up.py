"""Measure the first set-up on this machine: two commits, each cloned and set up with every cache empty.

    .venv/bin/python -m bench.set_up --before a5f2bc1 --after HEAD --out docs/measurements/set_up.json

Wall time depends on the network and on other processes, processor time hardly does. Both are saved, with the load of
the machine. The rounds alternate.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_CACHES = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "GOPATH": "go",
    "GOMODCACHE": "go/pkg/mod",
    "GOCACHE": "go-build",
    "XDG_CACHE_HOME": "cache",
}


def measure(commit: str, target: str, folder: Path) -> dict[str, Any]:
    """Clone a commit and run a target of its Makefile twice; return the times of both, in seconds."""
    clone, home = folder / "clone", folder / "home"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), **{name: str(home / path) for name, path in _CACHES.items()}}
    for name in ("VIRTUAL_ENV", "SLUICE_HOME", "TEMPORAL_CLI_PATH"):
        environment.pop(name, None)
    # Go keeps its modules read-only by default, and then the folder could not be removed afterwards.
    environment["GOFLAGS"] = f"{environment.get('GOFLAGS', '')} -modcacherw".strip()
    python = str(Path(sys.base_exec_prefix) / "bin" / "python3")
    command = ["make", target, f"PYTHON={python}"]
    result = {
        "commit": commit,
        "target": target,
        "load": os.getloadavg()[0],
        "first": _run(command, clone, environment),
    }
    return {**result, "again": _run(command, clone, environment), "megabytes": _size(clone)}


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> dict[str, float]:
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall": round(time.monotonic() - began, 1),
        "user": round(after.ru_utime - before.ru_utime, 1),
        "system": round(after.ru_stime - before.ru_stime, 1),
    }


def _size(folder: Path) -> int:
    return int(subprocess.check_output(["du", "-sm", str(folder)], text=True).split()[0])


def main() -> None:
    """Measure, and save the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="commit to compare with")
    parser.add_argument("--after", default="HEAD", help="commit to measure")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the clones")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    resolved = {
        name: subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "--short", commit], text=True).strip()
        for name, commit in (("before", options.before), ("after", options.after))
    }
    targets = (("before", "setup"), ("after", "setup"), ("after", "setup-dev"))
    measured = []
    for number in range(options.rounds):
        for side, target in targets:
            folder = Path(tempfile.mkdtemp(prefix="set-up-", dir=options.scratch))
            try:
                measured.append({"side": side, "round": number, **measure(resolved[side], target, folder)})
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            options.out.write_text(json.dumps({"cores": os.cpu_count(), "measured": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
