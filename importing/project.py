"""Import files: find the tool that each file belongs to, and collect the checks of all files."""

import json
from collections.abc import Sequence
from dataclasses import replace

from importing.dbt.files import import_dbt
from importing.dbt.project import PROJECT_FILES, DbtProject, project_of, read_project
from importing.expectations.suite_files import import_suite, is_suite
from importing.imported import ImportedChecks, SourceText, add_new, unreadable
from importing.input_files import Files, ImportOptions
from importing.soda.check_files import SodaImport
from importing.soda.settings import is_contract
from importing.yaml_lines import read_yaml_of_dbt
from sluice.errors import InvalidPipeline

__all__ = ["Files", "ImportOptions", "import_files", "merged", "sort_files"]
_DBT_KEYS = ("models", "seeds", "snapshots", "sources", "unit_tests")
_SODA_HEADERS = ("checks for ", "filter ", "configurations for ", "for each dataset", "for each table")


def sort_files(files: Sequence[SourceText]) -> Files:
    """Sort files by their content and folder."""
    sorted_files = Files()
    for file in files:
        _list_for(file, sorted_files).append(file)
    return _with_test_folders(sorted_files)


def _with_test_folders(files: Files) -> Files:
    """Return files with their singular tests, which are those in the test folders of their projects."""
    projects: list[DbtProject] = []
    for file in files.projects:
        try:
            projects.append(read_project(file))
        except InvalidPipeline:
            continue  # the import of the project lists it
    singular: list[SourceText] = []
    others: list[SourceText] = []
    tests = {file.path for file in files.singular}
    for file in (*files.singular, *files.others):
        project = project_of(projects, file.path) if file.path.endswith(".sql") else None
        is_test = file.path in tests if project is None else project.has_test(file.path)
        (singular if is_test else others).append(file)
    return replace(files, singular=singular, others=others)


def _list_for(file: SourceText, files: Files) -> list[SourceText]:
    name, folders = file.path.rpartition("/")[2], file.path.split("/")[:-1]
    if name.endswith(".sql"):
        if "macros" in folders or "generic" in folders or "{% test" in file.text or "{%- test" in file.text:
            return files.macros
        return files.singular if folders and "tests" in folders else files.others
    if name.endswith(".json"):
        return files.suites if '"expectations"' in file.text else files.others
    if name in PROJECT_FILES:
        return files.projects
    keys = _keys_of(file)
    if any(key.startswith(_SODA_HEADERS) for key in keys) or (is_contract(keys) and "checks:" in file.text):
        return files.soda
    return files.dbt if keys & set(_DBT_KEYS) else files.others


def _keys_of(file: SourceText) -> set[str]:
    """Return the keys at the beginning of lines of a YAML file. If no line begins with a key, parse the file."""
    lines = [line for line in file.text.splitlines() if line[:1] not in (" ", "#", "-", "\t", "")]
    keys = {line.partition(":")[0].strip("'\" ") for line in lines if not line.startswith(("{", "%", "?"))}
    if keys - {"..."} or not any(word in file.text for word in (*_DBT_KEYS, *_SODA_HEADERS, "dataset:")):
        return keys
    try:
        tree = read_yaml_of_dbt(file)[0]
    except InvalidPipeline:
        return {*_DBT_KEYS[:1]}  # so that the import of dbt's files lists it
    return set(map(str, tree)) if isinstance(tree, dict) else set()


def import_files(files: Files, options: ImportOptions, *, lenient: bool = True) -> ImportedChecks:
    """Convert files to checks.

    Args:
        lenient: True to list a file that cannot be read, instead of raising an error.

    Raises:
        InvalidPipeline: no namespace is known, or a file cannot be read.
    """
    unread = ImportedChecks()
    for path, why in files.unread:
        unread.leave("", (path, 1), "the file", f"it cannot be read: {why}")
    imports = [unread]
    if (files.dbt or files.soda or files.singular) and options.namespace is None:
        kind = "models of dbt" if files.dbt or files.singular else "data sets of Soda"
        raise InvalidPipeline(f"say in which namespace the tables of the {kind} are: --namespace shop")
    if files.dbt or files.singular:
        imports += import_dbt(files, options, lenient=lenient)
    if files.soda:
        soda = SodaImport(options.namespace or "", options.scope, options.dialect)
        imports.append(soda.run(files.soda, lenient=lenient))
    imports += [_suite(file, options, lenient) for file in files.suites]
    return merged(imports)


def _suite(file: SourceText, options: ImportOptions, lenient: bool) -> ImportedChecks:
    imported = ImportedChecks()
    try:
        if lenient and not is_suite(json.loads(file.text)):
            return imported
        return import_suite(file, options.namespace, options.table, options.scope, options.dialect)
    except InvalidPipeline:
        raise
    except Exception as error:  # a file may have any shape, and the others are imported nevertheless
        if not lenient:
            raise InvalidPipeline(f"{file.path}: {unreadable(error)}") from error
        imported.leave("", (file.path, 1), "the file", unreadable(error))
        return imported


def merged(imports: Sequence[ImportedChecks]) -> ImportedChecks:
    """Merge several imports into one."""
    total = ImportedChecks()
    for each in imports:
        for table, checks in each.checks.items():
            add_new(total.checks.setdefault(table, []), checks)
        total.left += each.left
        total.carried_over += each.carried_over
    return total
