"""Import property files of dbt that are given as text."""

from typing import Any

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files


def imported(text: str, *macros: str, project: str = "", **options: Any) -> ImportedChecks:
    """Import a property file with macros and a `dbt_project.yml`, into the namespace `shop`."""
    files = Files(
        dbt=[SourceText("schema.yml", text)],
        macros=[SourceText(f"macros/{number}.sql", each) for number, each in enumerate(macros)],
        projects=[SourceText("dbt_project.yml", project)] if project else [],
    )
    return import_files(files, ImportOptions(**{"namespace": "shop", **options}), lenient=False)


def reasons(result: ImportedChecks) -> list[str]:
    """Return each item that was not imported, as `line: test: reason`."""
    return [f"{each.line}: {each.test}: {each.reason}" for each in result.left]
