"""Importing the files of dbt: each project with its own macros, variables and settings."""

from collections.abc import Iterable
from typing import Any

from sluice.errors import InvalidPipeline
from sluice.importing.dbt_import import DbtImport
from sluice.importing.dbt_macros import DbtMacros
from sluice.importing.dbt_project import PROJECT_FILES, DbtProject, project_of, read_project
from sluice.importing.dbt_properties import names_in, shape_problems
from sluice.importing.imported import ImportedChecks, SourceText, unreadable
from sluice.importing.input_files import Files, ImportOptions
from sluice.importing.jinja_values import DbtValues
from sluice.importing.yaml_lines import read_yaml_of_dbt


def import_dbt(files: Files, options: ImportOptions, *, lenient: bool) -> list[ImportedChecks]:
    """Import the files of dbt.

    Args:
        lenient: whether a file that is not valid YAML is listed, and not an error.

    Raises:
        InvalidPipeline: a file is not valid YAML.
    """
    problems = ImportedChecks()
    projects = [each for file in files.projects for each in _project(file, problems, lenient)]
    for path, why in files.unread:
        root, _, name = path.rpartition("/")
        if name in PROJECT_FILES:
            projects.append(DbtProject(root=root, problem=why))
    trees = [(file.path, tree) for file in files.dbt for tree in _tree(file, problems, lenient)]
    paths = [*(path for path, _ in trees), *(file.path for file in files.singular)]
    owners = list({_key(project): project for project in (project_of(projects, path) for path in paths)}.values())
    runs = []
    for owner in owners:
        values = DbtValues(options.namespace or "", {**(owner.variables if owner else {}), **options.variables},
                           options.target)  # fmt: skip
        own, others = _macros_of(files.macros, projects, owner)
        run = DbtImport(values, DbtMacros(values, own, others), owner, options.scope, options.dialect)
        own_trees = [(path, tree) for path, tree in trees if project_of(projects, path) == owner]
        names = [tree for path, tree in trees if project_of(projects, path) != owner] + [tree for _, tree in own_trees]
        for tree in names:  # what a project names itself counts more than what another one does
            names_in(tree, values)
        for path, tree in own_trees:
            _import_tree(run, path, tree)
        for file in files.singular:
            if project_of(projects, file.path) == owner:
                run.import_singular(file)
        runs.append(run.imported)
    return [problems, *runs]


def _key(project: DbtProject | None) -> str | None:
    return project.root if project else None


def _macros_of(
    macros: Iterable[SourceText], projects: list[DbtProject], owner: DbtProject | None
) -> tuple[list[SourceText], list[SourceText]]:
    """Return the files of macros of a project, and those of the others."""
    own: list[SourceText] = []
    others: list[SourceText] = []
    for file in macros:
        (own if project_of(projects, file.path) == owner else others).append(file)
    return own, others


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
    """Return what a property file states, if it can be read; list what cannot."""
    try:
        tree, repeated = read_yaml_of_dbt(file)
    except InvalidPipeline as error:
        if not lenient:
            raise
        problems.leave("", (file.path, 1), "the file", str(error).partition(": ")[2])
        return []
    for each in repeated:
        why = f"dbt reads the value of the same key on line {each.last_line} in its place"
        problems.leave("", (file.path, each.line), f"the key {each.key}", why, inactive=True)
    if not isinstance(tree, dict):
        problems.leave("", (file.path, 1), "the file", "it is no mapping")
        return []
    for line, problem in shape_problems(tree):
        problems.leave("", (file.path, line), "what stands here", problem)
    return [tree]


def _import_tree(run: DbtImport, path: str, tree: dict[str, Any]) -> None:
    try:
        run.import_tree(path, tree)
    except Exception as error:  # a file may have any shape, and the others are imported nevertheless
        run.imported.leave("", (path, 1), "the file", unreadable(error))
