"""What `dbt_project.yml` says: variables, and settings that all tests of a project or of a folder have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from sluice.importing.dbt_properties import CONFIG
from sluice.importing.imported import SourceText
from sluice.importing.yaml_lines import plain, read_yaml_of_dbt

_ROOTS = ("models", "seeds", "snapshots", "data", "tests")
"""Folders of a project whose folders `dbt_project.yml` can name."""


@dataclass(frozen=True)
class DbtProject:
    """The settings of a project."""

    name: str = ""
    root: str = ""
    """The folder of the project."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    tests: Mapping[str, Any] = field(default_factory=dict)
    """The settings of tests, as they stand under `tests` or `data_tests`."""

    def settings_of(self, path: str) -> dict[str, Any]:
        """Return the settings of the tests in a property file: those of the project, then of each folder around it."""
        folders = PurePosixPath(path).parts[:-1]
        start = max((index for index, part in enumerate(folders) if part in _ROOTS), default=len(folders))
        settings: dict[str, Any] = {}
        node: Any = self.tests
        for part in ("", self.name, *folders[start + 1 :]):
            node = node.get(part) if part else node
            if not isinstance(node, dict):
                break
            stated = {key.removeprefix("+"): value for key, value in node.items() if not isinstance(value, dict)}
            settings |= {name: value for name, value in stated.items() if name in CONFIG}  # the rest are folders
        return settings


def read_project(source: SourceText) -> DbtProject:
    """Return the settings of a `dbt_project.yml`; variables in a mapping of a package's name are that package's.

    Raises:
        InvalidPipeline: it is not valid YAML.
    """
    tree = plain(read_yaml_of_dbt(source)[0])
    if not isinstance(tree, dict):
        return DbtProject()
    name = str(tree.get("name", ""))
    stated = tree.get("vars")
    given: dict[str, Any] = stated if isinstance(stated, dict) else {}
    own = given.get(name)
    variables = {key: value for key, value in given.items() if key != name} | (own if isinstance(own, dict) else {})
    tests: dict[str, Any] = {}
    for key in ("tests", "data_tests"):
        tests |= tree[key] if isinstance(tree.get(key), dict) else {}
    return DbtProject(name, source.path.rpartition("/")[0], variables, tests)


def settings_of(projects: Sequence[DbtProject], path: str) -> dict[str, Any]:
    """Return the settings of the tests in a file, of the innermost project that it lies in, or of the only one."""
    around = [each for each in projects if path.startswith(f"{each.root}/") or len(projects) == 1]
    return max(around, key=lambda each: len(each.root)).settings_of(path) if around else {}
