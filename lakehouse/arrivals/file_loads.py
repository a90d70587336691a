"""Ask main which runs loaded the files of a landing zone."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.loaded_files import LoadedFiles
from lakehouse.loaded_files_index import FileLoad
from sluice.contracts.arrivals import ROLLED_BACK

_AT_ONCE = 400


@dataclass(frozen=True)
class FileLoads:
    """The loads into the tables of a pipeline."""

    loaded_files: LoadedFiles
    tables: Sequence[str]

    def by_identity(self, identities: Sequence[str]) -> dict[str, FileLoad]:
        """Return the load of each file with one of these identities: the latest in effect, or else the latest."""
        return {load.identity: load for load in self._latest("f.identity", identities)}

    def in_effect(self, identities: Sequence[str]) -> set[str]:
        """Return those of these identities that main holds: a load that was rolled back does not count."""
        return {load.identity for load in self.all("f.identity", identities) if load.in_effect}

    def by_path(self, paths: Sequence[str]) -> dict[str, FileLoad]:
        """Return the load of each file with one of these paths: the latest in effect, or else the latest."""
        return {load.file.path: load for load in self._latest("f.path", paths)}

    def all(self, column: str, values: Sequence[str]) -> list[FileLoad]:
        """Return the loads of files with these values of a column, whether they are in effect or not."""
        loads: list[FileLoad] = []
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            condition = f"f.table_name IN ({_marks(self.tables)}) AND {column} IN ({_marks(some)})"
            loads += self.loaded_files.list_files(condition, [*self.tables, *some], -1)[0]
        return loads

    def _latest(self, column: str, values: Sequence[str]) -> list[FileLoad]:
        """Return loads so that the one that counts comes last: the latest, or the latest in effect if there is any.

        A file whose run was rolled back is not loaded again by its landing zone: a person decides that.
        """
        loads = self.all(column, values)[::-1]
        return [load for load in loads if not load.in_effect] + [load for load in loads if load.in_effect]


def name_run(load: FileLoad) -> str:
    """Return the run that loaded a file, and whether that was rolled back."""
    return load.file.workflow_id + ("" if load.in_effect else ROLLED_BACK)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
