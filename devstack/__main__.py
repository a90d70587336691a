"""The commands behind `make up`, `make down`, `make status` and `make demo`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from devstack.demo import run_demo
from devstack.errors import StackError
from devstack.object_store import BUCKETS
from devstack.stack import Stack
from lakehouse.open_catalog import catalog_address
from runtime.store_access import CREDENTIALS_FILE
from sluice.environment_files import DEFAULT_HOME, HOME, read_environment
from sluice.errors import SluiceError
from sluice.settings import read_settings

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


S3 = Annotated[bool, typer.Option("--s3", help="With an object store: buckets for sources and for the lake.")]


def _stack(s3: bool = False) -> Stack:
    environment = read_environment()
    return Stack(Path(environment.get(HOME, DEFAULT_HOME)), {**environment, **os.environ}, s3=s3)


def has_outdated_worker(stack: Stack, dotenv: Path) -> bool:
    """Return True if the settings file was written after the stack's worker started."""
    born = next((daemon.born for daemon in stack.daemons() if daemon.name == "worker"), None)
    return born is not None and dotenv.is_file() and dotenv.stat().st_mtime > born


@app.command()
def up(s3: S3 = False) -> None:
    """Start the local stack."""
    stack = _stack(s3)
    variables = stack.up(say=lambda line: print(line, flush=True))
    print(f"Page      {stack.page}")
    print(f"Temporal  {variables['TEMPORAL_ADDRESS']}, Web UI {variables['TEMPORAL_UI']}")
    if "NESSIE_URI" in variables:
        print(f"Nessie    {variables['NESSIE_URI']}")
        print(f"Tokens    for the roles reader, writer and publisher in {stack.home / 'identity'}")
    else:
        print(
            f"Catalog   Iceberg's own, in {catalog_address(read_settings(read_environment())).removeprefix('sqlite:///')}"
        )
    if stack.s3:
        print(
            f"Store     {variables['AWS_ENDPOINT_URL_S3']}, buckets {' and '.join(variables[name] for name in BUCKETS)}"
        )
        print(f"          credentials in {variables[CREDENTIALS_FILE]}")
    print(f"Worker    log in {stack.home / 'logs' / 'worker.log'}")
    if has_outdated_worker(stack, Path(".env")):
        print("          It has the settings from before .env was changed: run `make down`, then `make up`")
    print("Next: .venv/bin/python run_workflow.py pipelines/nyc_flights.yml")


@app.command()
def down() -> None:
    """Stop the local stack."""
    stopped = _stack().down()
    print(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.")


@app.command()
def status() -> None:
    """Show the running processes, and the variables that programs need to use them."""
    stack = _stack()
    for daemon in stack.daemons():
        print(f"{daemon.name:9} {'runs' if daemon.alive() else 'has ended'}, process {daemon.pid}, log {daemon.log}")
    for name, value in stack.variables().items():
        print(f"{name}={value}")
    if not stack.daemons():
        print("Nothing is running. `make up` starts it.")


@app.command()
def demo(s3: S3 = False) -> None:
    """Run three pipelines on real flights, and let files arrive in a landing zone."""
    sys.exit(run_demo(_stack(s3)))


if __name__ == "__main__":
    try:
        app()
    except (StackError, SluiceError) as error:
        print(f"sluice: {error}", file=sys.stderr)
        sys.exit(7)
