"""Find the landing zones that a file concerns, by the part of `arrival.from` before its first wildcard."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluice.arrivals.notifications import StoredObject

NamedFiles = Mapping[str, set[str]]
"""Files that notifications name, by the workflow id of their landing zone. An empty set lists the whole zone."""
_WILDCARD = re.compile(r"[*?\[]")
_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)


@dataclass(frozen=True)
class NotifiedZone:
    """A landing zone: the id of its workflow, and its absolute `arrival.from`."""

    workflow_id: str
    from_: str

    @property
    def is_folder(self) -> bool:
        """True if its files are local."""
        return "://" not in self.from_

    @property
    def is_bucket(self) -> bool:
        """True if its files are in S3, or in a store with the same notifications."""
        return bool(_S3.match(self.from_))

    @property
    def folder(self) -> str:
        """Folder that contains all of its local files, directly or in subfolders."""
        fixed = _WILDCARD.split(self.from_, maxsplit=1)[0]
        return self.from_ if fixed == self.from_ else fixed.rpartition("/")[0] or "/"

    @property
    def pattern(self) -> tuple[str, ...]:
        """Parts of a local pattern below `folder`; empty if the zone is a folder."""
        return tuple(part for part in self.from_.removeprefix(self.folder).split("/") if part)

    @property
    def is_too_wide(self) -> bool:
        """True for a local pattern that would need a watch of a whole top-level folder, such as /home."""
        return self.is_folder and bool(self.pattern) and self.folder.strip("/").count("/") == 0


@dataclass(frozen=True)
class _Prefix:
    """Beginning of the keys of a zone. The beginning of a pattern may end in the middle of a name."""

    text: str
    is_pattern: bool

    def begins(self, key: str) -> bool:
        if self.is_pattern or not self.text:
            return key.startswith(self.text)
        return key == self.text or key.startswith(f"{self.text}/")


@dataclass(frozen=True)
class NotifiedZones:
    """Landing zones of an installation."""

    zones: frozenset[NotifiedZone] = frozenset()
    _by_bucket: dict[str, list[tuple[_Prefix, str, str]]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for zone in self.zones:
            if zone.is_bucket:
                rest = _S3.sub("", zone.from_)
                bucket, _, key = rest.partition("/")
                fixed = _WILDCARD.split(key, maxsplit=1)[0]
                prefix = _Prefix(_plain(fixed), True) if fixed != key else _Prefix(_plain(fixed).rstrip("/"), False)
                url = zone.from_[: len(zone.from_) - len(rest)] + bucket
                self._by_bucket.setdefault(bucket, []).append((prefix, url, zone.workflow_id))

    def of_objects(self, objects: Iterable[StoredObject]) -> NamedFiles:
        """Return the zones that may contain some of these objects, with the URLs of those objects."""
        concerned: dict[str, set[str]] = {}
        for stored in objects:
            zones = self._by_bucket.get(stored.bucket, ())
            key = _plain(stored.key) if zones else ""
            for prefix, bucket, id in zones:
                if prefix.begins(key):
                    concerned.setdefault(id, set()).add(f"{bucket}/{key}")
        return concerned

    def watchable(self) -> list[NotifiedZone]:
        """Return the zones with local files whose folder may be watched."""
        return [zone for zone in self.zones if zone.is_folder and not zone.is_too_wide]


def _plain(key: str) -> str:
    """Return a key without empty folders, as listings return it."""
    return re.sub(r"/{2,}", "/", key).lstrip("/")
