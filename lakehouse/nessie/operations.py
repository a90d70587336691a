"""What a commit on a branch may do, as Nessie's API takes it. Source: its OpenAPI document, schema "Operation"."""

from typing import Any

from pyiceberg.table.metadata import TableMetadata

ROOT_NAMESPACE = "sluice"
"""What is there from the beginning: by its key, commits that change nothing can be made."""


def put_table_operation(name: str, place: str, metadata: TableMetadata, content: str | None = None) -> dict[str, Any]:
    """Return the operation that moves a table to a metadata file.

    Args:
        content: the id of the table's content, if it is on the branch already.
    """
    table = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": place,
        "snapshotId": -1 if metadata.current_snapshot_id is None else metadata.current_snapshot_id,
        "schemaId": metadata.current_schema_id,
        "specId": metadata.default_spec_id,
        "sortOrderId": metadata.default_sort_order_id,
        **({"id": content} if content else {}),
    }
    return {"type": "PUT", "key": {"elements": name.split(".")}, "content": table}


def delete_table_operation(name: str) -> dict[str, Any]:
    """Return the operation that takes a table off a branch; its files stay."""
    return {"type": "DELETE", "key": {"elements": name.split(".")}}


def no_change_operation() -> dict[str, Any]:
    """Return the operation that changes nothing: a commit of it carries properties alone."""
    return {"type": "UNCHANGED", "key": {"elements": [ROOT_NAMESPACE]}}


def put_namespace_operation(elements: list[str]) -> dict[str, Any]:
    """Return the operation that makes a namespace."""
    content = {"type": "NAMESPACE", "elements": elements, "properties": {}}
    return {"type": "PUT", "key": {"elements": elements}, "content": content}
