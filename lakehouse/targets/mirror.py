"""Bring a table of any target to the present version on main: the target mirrors main.

The target's entry points at the same metadata file as main. Nothing is copied, and no file is deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lakehouse.catalog import BranchCatalog, TableVersion
from sluice.errors import RegistrationRefused, ServiceUnavailable
from sluice.registration.target_kinds import TableTarget

_LOOKS = 3
"""Maximum number of updates in one call, because main moved while the target was written."""


@dataclass(frozen=True)
class MirroredTable:
    """A table in a target."""

    metadata_location: str
    version: str = ""
    """Version that the target compares before it changes the entry, if it can."""


class Mirror(Protocol):
    """A target that mirrors tables.

    Every method raises `ServiceUnavailable` when the target does not answer or another change came first. Problems that
    no retry solves raise `RegistrationRefused` or `BadEnvironment`.
    """

    def find(self, table: str) -> MirroredTable | None:
        """Return a table of the target, or None if it has no table of this name."""

    def create(self, table: str, location: str, metadata: TableMetadata) -> None:
        """Register a table that the target does not have, with its namespaces."""

    def update(self, table: str, location: str, metadata: TableMetadata, present: MirroredTable) -> None:
        """Point a table of the target at another metadata file, if the target's entry still equals `present`."""

    def examine(self) -> str:
        """Return the target's description of itself, without changing it."""


@dataclass(frozen=True)
class MirrorWriter:
    """Writer of one target's tables.

    Requires the catalog, and Iceberg's properties for file access.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]

    def bring_to_main(self, target: TableTarget, mirror: Mirror, table: str) -> str:
        """Point a table of a target at main's present metadata file; return a one-line description of the change.

        Read main again after the update, to register a run that was published meanwhile.

        Raises:
            RegistrationRefused: main has no such table, the target cannot read it, or the target has another table of
                this name.
            ServiceUnavailable: main or the target does not answer, or moves each time.
        """
        done = ""
        for _ in range(_LOOKS):
            version = self.main_version(target, table)
            done = self._bring_to(mirror, table, version.metadata_location) or done
            if self.catalog.table_version(self.catalog.main, table) == version:
                return done or f"it has {_file_name(version.metadata_location)} already"
        raise ServiceUnavailable(f"main moves: runs published {table} during each try to register it")

    def is_behind(self, target: TableTarget, mirror: Mirror, table: str) -> bool:
        """Return True if a target lacks a table, or has it in another version than main."""
        present = mirror.find(table)
        return present is None or present.metadata_location != self.main_version(target, table).metadata_location

    def main_version(self, target: TableTarget, table: str) -> TableVersion:
        """Return the version of a table that is on main now.

        Raises:
            RegistrationRefused: main has no such table, or the target cannot read it.
        """
        version = self.catalog.table_version(self.catalog.main, table)
        if version is None:
            raise RegistrationRefused(
                f"main has no table {table}: if it was dropped, drop it at the target by hand too, without its files"
            )
        if why := target.table_problem(table) or target.location_problem(version.metadata_location):
            raise RegistrationRefused(f"{table}: {why}")
        return version

    def _bring_to(self, mirror: Mirror, table: str, location: str) -> str:
        present = mirror.find(table)
        if present is not None and present.metadata_location == location:
            return ""
        metadata = self._metadata(location)
        if present is None:
            mirror.create(table, location, metadata)
            return f"registered, at {_file_name(location)}"
        if present.metadata_location:
            self._check_same_table(table, metadata, present)
        mirror.update(table, location, metadata, present)
        return f"now at {_file_name(location)}"

    def _check_same_table(self, table: str, metadata: TableMetadata, present: MirroredTable) -> None:
        """Verify that the target's table is main's table in another version: no other table may be overwritten.

        Raises:
            RegistrationRefused: the target has another table.
        """
        try:
            held = self._metadata(present.metadata_location)
        except FileNotFoundError:
            return  # the files of the target's version were deleted; those of main exist
        if held.table_uuid != metadata.table_uuid:
            raise RegistrationRefused(
                f"the target has another table of the name {table} (uuid {held.table_uuid}, main's is "
                f"{metadata.table_uuid}): drop or rename it there"
            )

    def _metadata(self, location: str) -> TableMetadata:
        return FromInputFile.table_metadata(load_file_io(dict(self.io), location).new_input(location))


def _file_name(location: str) -> str:
    return location.rsplit("/", 1)[-1]
