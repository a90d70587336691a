"""Settings in `dbt_project.yml`: variables, and settings of all tests of a project or of a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from importing.dbt.properties import CONFIG, NODES
from importing.imported import NotCarriedOver, SourceText
from importing.yaml_lines import plain, read_yaml_of_dbt

PROJECT_FILES = ("dbt_project.yml", "dbt_project.yaml")


@dataclass(frozen=True)
class DbtProject:
    """The settings of a project."""

    name: str = ""
    root: str = ""
    """The folder of the project."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    tests: Mapping[str, Any] = field(default_factory=dict)
    """The settings of tests, as written under `tests` or `data_tests`."""
    problem: str = ""
    """The reason why its settings are not known."""
    tables: Mapping[str, Any] = field(default_factory=dict)
    """The settings of tables, as written under `models`, `seeds`, `snapshots` and `sources`."""
    test_folders: Sequence[tuple[str, ...]] = (("tests",),)
    """The folders of singular tests, each as a path from the project's folder."""

    def has_test(self, path: str) -> bool:
        """Return True if a SQL file is a singular test, by its folder."""
        folders = self.folders_of(path)
        return folders is not None and any(folders[: len(each)] == each for each in self.test_folders)

    def folders_of(self, path: str) -> tuple[str, ...] | None:
        """Return the folders from the project's down to a file, or None if the file is outside of the project."""
        file, root = _resolved(path).parts, _resolved(self.root or ".").parts
        return file[len(root) : -1] if file[: len(root)] == root else None

    def settings_of(self, path: str) -> dict[str, Any]:
        """Return the settings of the tests in a property file, from the project and then from each folder around it.

        Raises:
            NotCarriedOver: the settings are not known.
        """
        if self.problem:
            raise NotCarriedOver(f"the settings of its project are not known: {self.problem}")
        stated = self._stated(self.tests, path, ())
        return {name: value for name, value in stated.items() if name in CONFIG}  # the rest are folders

    def table_settings(self, kind: str, path: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the setting `enabled` that the project states for a table or for its folder; empty if there is none.

        The setting in the table's own file takes precedence.

        Args:
            kind: `models`, `seeds`, `snapshots` or `sources`.
            path: file that defines the table; for a source, the file that describes it.
            names: name of the table, after the name of its source if it has one.
        """
        stated = self._stated(self.tables.get(kind), path, names)
        return {name: value for name, value in stated.items() if name == "enabled"}

    def _stated(self, node: Any, path: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the settings under the project, under each folder around a file, and under names in the folders."""
        folders = self.folders_of(path) or ()
        settings: dict[str, Any] = {}
        for part in ("", self.name, *folders[1:], *names):  # dbt omits the folder of all models
            node = node.get(part) if part else node
            if not isinstance(node, dict):
                break
            settings |= {key.removeprefix("+"): value for key, value in node.items() if not isinstance(value, dict)}
        return settings


def _resolved(path: str) -> Path:
    return _resolved_in(Path.cwd(), path)


@lru_cache(65_536)
def _resolved_in(folder: Path, path: str) -> Path:
    return (folder / path).resolve()


def read_project(source: SourceText) -> DbtProject:
    """Return the settings of a `dbt_project.yml`. Variables under the name of a package belong to that package.

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
    tables = {kind: tree.get(kind) for kind in (*NODES, "sources")}
    paths = tree.get("test-paths")
    listed = paths if isinstance(paths, list) else ["tests"]
    test_folders = [PurePosixPath(str(each)).parts for each in listed]
    root = source.path.rpartition("/")[0]
    return DbtProject(name, root, variables, tests, tables=tables, test_folders=test_folders)


def project_of(projects: Sequence[DbtProject], path: str) -> DbtProject | None:
    """Return the innermost project that contains a file, or None if there is none."""
    around = [(len(folders), each) for each in projects if (folders := each.folders_of(path)) is not None]
    return min(around, key=lambda pair: pair[0])[1] if around else None
