"""Names of datasets, by OpenLineage's naming conventions for file systems and object stores.

A location gets the namespace and name that OpenLineage's own Spark integration gives it, so that both mean the same
dataset.
"""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

_ALIASES = {"s3a": "s3", "s3n": "s3"}
_OBJECT_STORES = ("s3", "gs")
"""Schemes whose datasets are named by object keys, without a leading slash."""
_WILDCARDS = "*?["


@dataclass(frozen=True)
class DatasetName:
    """The identity of a dataset."""

    namespace: str
    name: str


@dataclass(frozen=True)
class TableDataset:
    """Description of a table in an event."""

    table: str
    """Its name in the catalog."""
    location: str
    snapshot_id: int | None
    columns: list[tuple[str, str, str]] = field(default_factory=list)
    """The name, the Iceberg type and the documentation of each column, in order."""


def dataset_name(location: str) -> DatasetName:
    """Return the name of the dataset at a location: a path, or the address of a store.

    It omits user information, query and fragment of an address, since they may contain secrets.
    """
    if "://" not in location:
        return DatasetName("file", _plain(location.removeprefix("file:")))
    parts = urlsplit(location)
    scheme = _ALIASES.get(parts.scheme.lower(), parts.scheme.lower())
    if scheme == "file":
        return DatasetName("file", _plain(unquote(parts.path)))
    host = parts.netloc if scheme.startswith(("abfs", "wasb")) and ":" not in parts.netloc else _host(parts.netloc)
    name = _plain(parts.path)
    return DatasetName(f"{scheme}://{host}", name.lstrip("/") or "/" if scheme in _OBJECT_STORES else name)


def source_dataset(path: str) -> DatasetName:
    """Return the name of the dataset of a source path: a file or a folder. A pattern stands for its folder."""
    first = min((path.index(each) for each in _WILDCARDS if each in path), default=len(path))
    if first < len(path):
        path = path[:first].rsplit("/", 1)[0] or "/"
    return dataset_name(path)


def _host(authority: str) -> str:
    """Return host and port of an authority, without user and password."""
    return authority.rsplit("@", 1)[-1]


def _plain(path: str) -> str:
    return path.rstrip("/") or "/"
