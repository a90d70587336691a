"""Finding the Temporal CLI, which is also the development server."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from devstack.errors import StackError

GO_PACKAGE = "github.com/temporalio/cli/cmd/temporal@v1.5.1"
"""The newest version that `go install` takes: later ones have a `replace` in their go.mod."""
_DOWNLOAD_SECONDS = 90
_DOWNLOAD = """
import asyncio, sys
from temporalio.testing import WorkflowEnvironment
async def main():
    environment = await WorkflowEnvironment.start_local(download_dest_dir=sys.argv[1])
    await environment.shutdown()
asyncio.run(main())
"""


def find_temporal_cli(home: Path) -> Path:
    """Return the CLI: TEMPORAL_CLI_PATH, the PATH, one fetched before, the SDK's download, `go install`.

    Raises:
        StackError: none of these works; the message says what each gave.
    """
    tried: list[str] = []
    ways: tuple[Callable[[Path, list[str]], Path | None], ...] = (_named, _on_path, _before, _download, _go_install)
    for way in ways:
        found = way(home / "bin", tried)
        if found is not None:
            return found
    told = "\n".join(f"  - {each}" for each in tried)
    raise StackError(
        f"there is no Temporal CLI. Tried in this order:\n{told}\n"
        "Install it (https://docs.temporal.io/cli) and set TEMPORAL_CLI_PATH to it, or install Go 1.23 or later."
    )


def _named(_: Path, tried: list[str]) -> Path | None:
    named = os.environ.get("TEMPORAL_CLI_PATH")
    if not named:
        tried.append("TEMPORAL_CLI_PATH is not set")
        return None
    if not _answers(Path(named)):
        raise StackError(f"TEMPORAL_CLI_PATH={named} is no Temporal CLI that runs here: correct it, or unset it")
    return Path(named)


def _on_path(_: Path, tried: list[str]) -> Path | None:
    found = shutil.which("temporal")
    if found and _answers(Path(found)):
        return Path(found)
    tried.append(f"{found} does not run" if found else "`temporal` is not on the PATH")
    return None


def _before(bin_folder: Path, _: list[str]) -> Path | None:
    return next((each for each in sorted(bin_folder.glob("temporal*")) if _answers(each)), None)


def _download(bin_folder: Path, tried: list[str]) -> Path | None:
    print("Fetching the Temporal CLI (once)", flush=True)
    bin_folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _DOWNLOAD, str(bin_folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    except subprocess.TimeoutExpired:
        said = f"nothing within {_DOWNLOAD_SECONDS} s"
    found = _before(bin_folder, [])
    if found is None:
        tried.append(f"the SDK's own download failed: {said[:300]}")
    return found


def _go_install(bin_folder: Path, tried: list[str]) -> Path | None:
    go = shutil.which("go")
    if go is None:
        tried.append("`go` is not on the PATH, so it cannot be built")
        return None
    print("Building the Temporal CLI with Go (once, two to three minutes)", flush=True)
    environment = {**os.environ, "GOBIN": str(bin_folder.absolute())}
    done = subprocess.run([go, "install", GO_PACKAGE], env=environment, capture_output=True, text=True, check=False)
    found = _before(bin_folder, [])
    if found is None:
        tried.append(f"`go install {GO_PACKAGE}` failed: {done.stderr.strip()[-300:]}")
    return found


def _answers(cli: Path) -> bool:
    try:
        done = subprocess.run([str(cli), "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
