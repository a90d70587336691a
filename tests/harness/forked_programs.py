"""Imports of all Sluice programs, which the server of `forked` loads before it forks."""

from importlib import import_module

from cli.lazy_commands import LAZY_COMMANDS

for _name in ("cli.app", "tests.harness.faulty_worker", *LAZY_COMMANDS.values()):
    import_module(_name)
