"""Operations of a commit in the format of Nessie's API. Source: its OpenAPI document, schema "Operation"."""

from typing import Any

from lakehouse.catalog import NamespaceDiff, TableCommit, TableDiff, TableVersion
from sluice.identifiers import joined_name, name_elements

ROOT_NAMESPACE = "sluice"
"""Namespace that the first commit on main creates. Commits that change no table refer to its key."""
_NO_SNAPSHOT = -1


def table_operation(table: TableCommit, content_id: str | None) -> dict[str, Any]:
    """Return the operation that moves a table to a version, or drops it.

    Args:
        content_id: the id of the table's content, if it is on the branch already.
    """
    key = {"elements": name_elements(table.name)}
    if table.version is None:
        return {"type": "DELETE", "key": key}
    snapshot_id = table.version.snapshot_id
    content = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": table.version.metadata_location,
        "snapshotId": _NO_SNAPSHOT if snapshot_id is None else snapshot_id,
        "schemaId": table.schema_id,
        "specId": table.spec_id,
        "sortOrderId": table.sort_order_id,
        **({"id": content_id} if content_id else {}),
    }
    return {"type": "PUT", "key": key, "content": content}


def no_change_operation() -> dict[str, Any]:
    """Return the operation that changes nothing, for a commit of properties alone."""
    return {"type": "UNCHANGED", "key": {"elements": [ROOT_NAMESPACE]}}


def put_namespace_operation(elements: list[str]) -> dict[str, Any]:
    """Return the operation that creates a namespace."""
    content = {"type": "NAMESPACE", "elements": elements, "properties": {}}
    return {"type": "PUT", "key": {"elements": elements}, "content": content}


def is_namespace(difference: dict[str, Any]) -> bool:
    """Return True if a difference concerns only namespaces, and none of them became something else."""
    contents = [each for each in (difference.get("from"), difference.get("to")) if each]
    return all(content["type"] == "NAMESPACE" for content in contents)


def table_diff(difference: dict[str, Any]) -> TableDiff:
    """Return the difference of a table. Content that is not a table has no version."""
    name = joined_name(difference["key"]["elements"])
    return TableDiff(name, table_version(difference.get("from")), table_version(difference.get("to")))


def namespace_diff(difference: dict[str, Any]) -> NamespaceDiff:
    """Return the difference of a namespace."""
    before, after = (_namespace_properties(difference.get(side)) for side in ("from", "to"))
    return NamespaceDiff(tuple(difference["key"]["elements"]), before, after)


def _namespace_properties(content: dict[str, Any] | None) -> dict[str, str] | None:
    return None if content is None else dict(content.get("properties") or {})


def table_version(content: dict[str, Any] | None) -> TableVersion | None:
    """Return the version of a table from its content; None if the content is not a table."""
    location = content.get("metadataLocation") if content else None
    if content is None or location is None:
        return None
    snapshot_id = content.get("snapshotId", _NO_SNAPSHOT)
    return TableVersion(str(location), None if snapshot_id == _NO_SNAPSHOT else int(snapshot_id))
