"""Imports of all Sluice programs, which the server of `forked` loads before it forks."""

from importlib import import_module

from cli.lazy_commands import COMMANDS

_COMMANDS = [command.target.partition(":")[0] for command in COMMANDS.values()]

for _name in ("cli.app", "tests.harness.faulty_worker", *_COMMANDS):
    import_module(_name)
