"""Table properties that let Iceberg delete files which main or another branch needs. A run may not set them."""

import re
from collections.abc import Collection, Mapping, Sequence

DELETING_PROPERTIES = ("write.metadata.delete-after-commit.enabled", "gc.enabled")
"""Properties that let a commit delete earlier metadata files, and maintenance delete data files. False is safe."""
_SET_PROPERTIES = re.compile(r"\s*ALTER\s+TABLE\s+([\w.`]+)\s+(?:UN)?SET\s+TBLPROPERTIES\b", re.IGNORECASE)
_EXPIRY = "history.expire."
"""Prefix of the properties that decide which snapshots maintenance removes."""


def deletes_files(properties: Mapping[str, str]) -> list[str]:
    """Return the properties of a table that let Iceberg delete files, sorted."""
    return sorted(key for key in DELETING_PROPERTIES if _is_true(properties.get(key, "")))


def unsafe_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the properties of a table that a run may not leave on its branch, sorted.

    Properties that delete files are never allowed. Properties of expiry must stay as they were.
    """
    changed = {key for key in {*before, *after} if key.startswith(_EXPIRY) and before.get(key) != after.get(key)}
    return sorted({*deletes_files(after), *changed})


def property_problem(key: str, value: str) -> str | None:
    """Return the reason why a pipeline may not set a property of a table, or None."""
    name = key.strip().lower()
    if name in DELETING_PROPERTIES and value.strip().lower() != "false":
        return (
            f"{key}: {value} lets a write on a branch delete files that main needs: leave it out, or write false. "
            "Files that no branch needs are removed by the catalog's own garbage collection"
        )
    if name.startswith(_EXPIRY):
        return (
            f"{key} is for Iceberg's own expiry of snapshots, which does not know the catalog's branches: leave it out"
        )
    return None


def opening_problem(table: str, properties: Mapping[str, str]) -> str | None:
    """Return the change that a table on main needs before a run may write to it, or None."""
    unsafe = deletes_files(properties)
    if not unsafe:
        return None
    listed = ", ".join(f"'{key}' = 'false'" for key in unsafe)
    return (
        f"{table} on main has {' and '.join(f'{key}=true' for key in unsafe)}: a write on a branch could delete files "
        f"that main needs. Set it to false first, by a pipeline with `mode: sql` and the one statement "
        f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})"
    )


def tables_made_safe(statements: Sequence[str], tables: Collection[str]) -> list[str]:
    """Return the tables whose properties the statements of `mode: sql` change.

    A run may begin with unsafe properties of these tables: it verifies on the branch those that the statements leave.
    """
    named = [_SET_PROPERTIES.match(statement) for statement in statements]
    changed = {match[1].replace("`", "") for match in named if match}
    return [table for table in tables if any(name == table or name.endswith(f".{table}") for name in changed)]


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"
