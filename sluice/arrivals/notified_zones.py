"""Which landing zones a file concerns, by the part of `arrival.from` before its first wildcard."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluice.arrivals.notifications import StoredObject

NamedFiles = Mapping[str, set[str]]
"""The files that notifications name, by the workflow id of their landing zone; no file has the whole zone listed."""
_WILDCARD = re.compile(r"[*?\[]")
_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)


@dataclass(frozen=True)
class NotifiedZone:
    """A landing zone, by the id of its workflow and its absolute `arrival.from`."""

    workflow_id: str
    from_: str

    @property
    def is_folder(self) -> bool:
        """Whether its files are local."""
        return "://" not in self.from_

    @property
    def is_bucket(self) -> bool:
        """Whether it is in a store that sends the notifications that are read here."""
        return bool(_S3.match(self.from_))

    @property
    def folder(self) -> str:
        """The folder that all of its local files are below."""
        fixed = _WILDCARD.split(self.from_, maxsplit=1)[0]
        return self.from_ if fixed == self.from_ else fixed.rpartition("/")[0] or "/"

    @property
    def pattern(self) -> tuple[str, ...]:
        """The parts of a local pattern below that folder; none of a folder."""
        return tuple(part for part in self.from_.removeprefix(self.folder).split("/") if part)

    @property
    def is_too_wide(self) -> bool:
        """Whether it is a local pattern in a folder of which everything would have to be watched, such as /home."""
        return self.is_folder and bool(self.pattern) and self.folder.strip("/").count("/") == 0


@dataclass(frozen=True)
class _Prefix:
    """The beginning of the keys of a zone, and whether they may go on within the same name, as those of a pattern."""

    text: str
    is_pattern: bool

    def begins(self, key: str) -> bool:
        if self.is_pattern or not self.text:
            return key.startswith(self.text)
        return key == self.text or key.startswith(f"{self.text}/")


@dataclass(frozen=True)
class NotifiedZones:
    """The landing zones of an installation."""

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
        """Return the zones that some of these objects may be in, with the URLs of those objects."""
        concerned: dict[str, set[str]] = {}
        for stored in objects:
            zones = self._by_bucket.get(stored.bucket, ())
            key = _plain(stored.key) if zones else ""
            for prefix, bucket, id in zones:
                if prefix.begins(key):
                    concerned.setdefault(id, set()).add(f"{bucket}/{key}")
        return concerned

    def watchable(self) -> list[NotifiedZone]:
        """Return the zones whose files are local, and whose folder may be watched."""
        return [zone for zone in self.zones if zone.is_folder and not zone.is_too_wide]


def _plain(key: str) -> str:
    """Return a key without empty folders, as listings return it."""
    return re.sub(r"/{2,}", "/", key).lstrip("/")
