"""Import the files of dbt, each project with its own macros, variables and settings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from importing.dbt.jinja_values import DbtValues
from importing.dbt.macros import DbtMacros
from importing.dbt.project import PROJECT_FILES, DbtProject, project_of, read_project
from importing.dbt.properties import names_in, shape_problems
from importing.dbt.property_files import DbtImport
from importing.imported import ImportedChecks, SourceText, unreadable
from importing.input_files import Files, ImportOptions
from importing.yaml_lines import read_yaml_of_dbt
from sluice.errors import InvalidPipeline


@dataclass
class _Part:
    """The files of one project, or those outside of any project."""

    project: DbtProject
    values: DbtValues
    trees: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    macros: list[SourceText] = field(default_factory=list)
    singular: list[SourceText] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    """Files of models, by the name of the model."""


def import_dbt(files: Files, options: ImportOptions, *, lenient: bool) -> list[ImportedChecks]:
    """Import the files of dbt.

    Args:
        lenient: True to list a file that is not valid YAML, instead of raising an error.

    Raises:
        InvalidPipeline: a file is not valid YAML, and `lenient` is False.
    """
    problems = ImportedChecks()
    projects = [each for file in files.projects for each in _project(file, problems, lenient)]
    for path, why in files.unread:
        root, _, name = path.rpartition("/")
        if name in PROJECT_FILES:
            projects.append(DbtProject(root=root, problem=why))
    parts = _Parts(projects, options)
    for file in files.dbt:
        parts.of(file.path).trees += [(file.path, tree) for tree in _tree(file, problems, lenient)]
    for file in files.singular:
        parts.of(file.path).singular.append(file)
    for file in files.macros:
        parts.of(file.path).macros.append(file)
    for file in files.others:
        if file.path.endswith(".sql"):
            parts.of(file.path).models[file.path.rpartition("/")[2].removesuffix(".sql")] = file.path
    return [problems, *(_import_part(part, parts.others_of(part), options) for part in parts.all())]


class _Parts:
    """The parts of an import, by project."""

    def __init__(self, projects: Sequence[DbtProject], options: ImportOptions) -> None:
        self._projects, self._options = projects, options
        self._parts: dict[str | None, _Part] = {}

    def of(self, path: str) -> _Part:
        """Return the part that a file belongs to."""
        project = project_of(self._projects, path)
        root = project.root if project else None
        if root not in self._parts:
            owner, options = project or DbtProject(), self._options
            values = DbtValues(options.namespace or "", {**owner.variables, **options.variables}, options.target)
            self._parts[root] = _Part(owner, values)
        return self._parts[root]

    def all(self) -> list[_Part]:
        """Return the parts, after each has recorded the names of its tables."""
        for part in self._parts.values():
            for _, tree in part.trees:
                names_in(tree, part.values)
        return [*self._parts.values()]

    def others_of(self, part: _Part) -> list[_Part]:
        """Return all parts except one."""
        return [each for each in self._parts.values() if each is not part]


def _import_part(part: _Part, others: list[_Part], options: ImportOptions) -> ImportedChecks:
    values = part.values
    for each in others:  # a project's own names take precedence over those of other projects
        values.models = {**each.values.models, **values.models}
        values.sources = {**each.values.sources, **values.sources}
        values.unknown_tables = {**each.values.unknown_tables, **values.unknown_tables}
    macros = DbtMacros(values, part.macros, (file for each in others for file in each.macros))
    run = DbtImport(values, macros, part.project, options.scope, options.dialect, part.models)
    for path, tree in part.trees:
        _import_tree(run, path, tree)
    for file in part.singular:
        run.import_singular(file)
    return run.imported


def _project(file: SourceText, problems: ImportedChecks, lenient: bool) -> list[DbtProject]:
    try:
        return [read_project(file)]
    except InvalidPipeline as error:
        if not lenient:
            raise
        problem = str(error).partition(": ")[2]
        problems.leave("", (file.path, 1), "the file", problem)
        return [DbtProject(root=file.path.rpartition("/")[0], problem=problem)]


def _tree(file: SourceText, problems: ImportedChecks, lenient: bool) -> list[dict[str, Any]]:
    """Return the tree of a property file in a list, empty if it cannot be read, and record the problems."""
    try:
        tree, repeated = read_yaml_of_dbt(file)
    except InvalidPipeline as error:
        if not lenient:
            raise
        problems.leave("", (file.path, 1), "the file", str(error).partition(": ")[2])
        return []
    for each in repeated:
        why = f"dbt uses the value of the same key on line {each.last_line} instead"
        problems.leave("", (file.path, each.line), f"the key {each.key}", why, inactive=True)
    if not isinstance(tree, dict):
        problems.leave("", (file.path, 1), "the file", "it is not a mapping")
        return []
    for line, problem in shape_problems(tree):
        problems.leave("", (file.path, line), "this value", problem)
    return [tree]


def _import_tree(run: DbtImport, path: str, tree: dict[str, Any]) -> None:
    try:
        run.import_tree(path, tree)
    except Exception as error:  # a file may have any shape, and the others are still imported
        run.imported.leave("", (path, 1), "the file", unreadable(error))
