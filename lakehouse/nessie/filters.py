"""Filters for Nessie's listings in the Common Expression Language (CEL)."""

from collections.abc import Mapping


def named_with_prefix(prefix: str) -> str:
    """Return the filter for references whose name begins with `prefix`."""
    return f"ref.name.startsWith({_literal(prefix)})"


def having_properties(properties: Mapping[str, str]) -> str:
    """Return the filter for commits that carry all of these properties."""
    pairs = [(_literal(key), _literal(value)) for key, value in properties.items()]
    return " && ".join(f"{key} in commit.properties && commit.properties[{key}] == {value}" for key, value in pairs)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
