"""The commands behind `make up`, `make down`, `make status` and `make demo`."""

import os
import sys
from pathlib import Path

import typer

from devstack.demo import run_demo
from devstack.errors import StackError
from devstack.stack import Stack
from sluice.errors import SluiceError
from sluice.settings import DEFAULT_HOME, HOME, read_environment

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


def _stack() -> Stack:
    environment = read_environment()
    return Stack(Path(environment.get(HOME, DEFAULT_HOME)), {**environment, **os.environ})


@app.command()
def up() -> None:
    """Start the local stack."""
    stack = _stack()
    variables = stack.up()
    print(f"Temporal  {variables['TEMPORAL_ADDRESS']}, Web UI {variables['TEMPORAL_UI']}")
    if "NESSIE_URI" in variables:
        print(f"Nessie    {variables['NESSIE_URI']}")
        print(f"Tokens    for the roles reader, writer and publisher in {stack.home / 'identity'}")
    else:
        print(f"Catalog   Iceberg's own, in {stack.home / 'iceberg' / 'catalog.db'}")
    print(f"Worker    log in {stack.home / 'logs' / 'worker.log'}")
    print("Next: .venv/bin/python run_workflow.py pipelines/nyc_flights.yml")


@app.command()
def down() -> None:
    """Stop the local stack."""
    stopped = _stack().down()
    print(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.")


@app.command()
def status() -> None:
    """Show which processes run, and the variables that programs need to use them."""
    stack = _stack()
    for daemon in stack.daemons():
        print(f"{daemon.name:9} {'runs' if daemon.alive() else 'has ended'}, process {daemon.pid}, log {daemon.log}")
    for name, value in stack.variables().items():
        print(f"{name}={value}")
    if not stack.daemons():
        print("Nothing is running. `make up` starts it.")


@app.command()
def demo() -> None:
    """Run three pipelines on real flights."""
    sys.exit(run_demo(_stack()))


if __name__ == "__main__":
    try:
        app()
    except (StackError, SluiceError) as error:
        print(f"sluice: {error}", file=sys.stderr)
        sys.exit(7)
