"""Query main for the loads of a landing zone's files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lakehouse.arrivals.held_files import HeldFiles, wanted
from lakehouse.arrivals.zone_files import RememberedFile
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.loaded_files_index import FileLoad
from sluice.arrivals.batching import WaitingFile
from sluice.arrivals.judging import KnownFile
from sluice.contracts.arrivals import ROLLED_BACK, ArrivedFile
from sluice.input.held_files import HeldFile, LoadedFile, WantedFile, overtaken_files
from sluice.pipeline.model import Pipeline

_AT_ONCE = 400


@dataclass(frozen=True)
class FileLoads:
    """Loads into the tables of a pipeline."""

    loaded_files: LoadedFiles
    tables: Sequence[str]
    order_matters: bool = False
    """True if rows of a later load replace those of an earlier one."""

    @classmethod
    def of(cls, loaded_files: LoadedFiles, pipeline: Pipeline) -> "FileLoads":
        """Return the loads into the tables of a pipeline."""
        return cls(loaded_files, list(pipeline.tables), pipeline.write.traits.order_matters)

    def held(self, files: Sequence[WantedFile]) -> dict[WantedFile, HeldFile]:
        """Return the given files that main contains, wholly or partly, by the same rule as for a run."""
        held = self.loaded_files.find(self.tables, files, order_matters=self.order_matters)
        return {each.wanted: each for each in held}

    def held_whole(self, files: Sequence[WantedFile]) -> set[WantedFile]:
        """Return the given files that main contains wholly, and whose rows no later load can have replaced."""
        return {file for file, each in self.held(files).items() if not each.is_partly and not each.overtaken_by}

    def by_identity(self, identities: Sequence[str]) -> dict[str, FileLoad]:
        """Return the load of each file with one of these identities: the latest in effect, or else the latest."""
        loads = self.all("f.identity", identities)[::-1]
        return {load.identity: load for load in sorted(loads, key=lambda load: load.in_effect)}

    def by_path(self, paths: Sequence[str]) -> dict[str, FileLoad]:
        """Return the load of each file with one of these paths: the latest in effect, or else the latest."""
        loads = self.all("f.path", paths)[::-1]
        return {load.file.path: load for load in sorted(loads, key=lambda load: load.in_effect)}

    def known(
        self, files: Sequence[ArrivedFile], batches: HeldFiles, copies: Mapping[str, Sequence[str]]
    ) -> dict[str, KnownFile]:
        """Return the knowledge of main and the batches about each arrived file, by its path.

        Args:
            copies: identities of the content that paths had as copies of loaded files, by path.
        """
        held = self._settled([wanted(file) for file in files])
        by_path = self.all("f.path", [file.path for file in files])[::-1]  # the latest is last
        latest = {load.file.path: load for load in by_path}
        in_effect = self.other_content(files, copies) | {load.file.path: load for load in by_path if load.in_effect}
        known = {}
        for file in files:
            last, earlier = latest.get(file.path), in_effect.get(file.path)
            is_taken_back = last is not None and not last.in_effect and last.identity == file.identity
            batch = batches.batch_of(file)
            path_batch = batches.batch_with_path(file) or batches.batch_with_content(copies.get(file.path, ()))
            known[file.path] = KnownFile(
                held=held.get(wanted(file)),
                batch=batch,
                path_batch=path_batch if path_batch != batch else "",
                order_matters=self.order_matters,
                rolled_back=last.file.workflow_id if last and is_taken_back else "",
                replaced=earlier.file.workflow_id if earlier else "",
                replaced_copy=earlier.file.path if earlier and earlier.file.path != file.path else "",
            )
        return known

    def with_sent_again(
        self,
        files: Sequence[ArrivedFile],
        known: Callable[[Sequence[str]], Mapping[str, RememberedFile]],
        identify: Callable[[WaitingFile], str],
        pause: float,
    ) -> list[ArrivedFile]:
        """Return the files; those that were written after main had got their content are marked as sent again.

        If the latest loaded file was rewritten with the same content, too, the files written before that, or within
        `pause` seconds of it, count as loaded: a program that copies all files again leaves main as it is.

        Args:
            files: the files, with the content that they have now.
            known: returns files of the zone by path, as its memory has them.
            identify: returns the identity of the present content of a file, or an empty string if it is not known.
            pause: time without a modification that separates two deliveries, in seconds.
        """
        held = self.held([wanted(file) for file in files]) if self.order_matters else {}
        times = {path: file.written_at for path, file in known([file.path for file in held]).items()} if held else {}
        again = {
            file.path: times[file.path]
            for file, each in held.items()
            if not each.is_partly and times.get(file.path, 0.0) > _time_of(each.load)
        }
        if again:
            marks = _marks(self.tables)
            latest = self.loaded_files.list_files(f"r.in_effect AND f.table_name IN ({marks})", self.tables, 1)[0]
            sent = [
                there.written_at
                for each in latest
                if (there := known([each.file.path]).get(each.file.path))
                and there.written_at > _time_of(each.file)
                and (there.identity or identify(there.waiting)) == each.identity
            ]
            together = max(sent, default=-pause) + pause
            again = {path: time for path, time in again.items() if time > together}
        return [file.model_copy(update={"is_sent_again": True}) if file.path in again else file for file in files]

    def _settled(self, files: Sequence[WantedFile]) -> dict[WantedFile, HeldFile]:
        """Return the files that main contains. Those that were moved together count as loaded."""
        held = self.held(files)
        overtaken = overtaken_files(list(held.values()))
        return {file: each if each in overtaken else replace(each, overtaken_by=None) for file, each in held.items()}

    def other_content(self, files: Sequence[ArrivedFile], copies: Mapping[str, Sequence[str]]) -> dict[str, FileLoad]:
        """Return the load in effect of the content that a path had as a copy of a loaded file, by path."""
        earlier = {file.path: [each for each in copies.get(file.path, ()) if each != file.identity] for file in files}
        loads = self.by_identity(sorted({each for identities in earlier.values() for each in identities}))
        in_effect = {identity: load for identity, load in loads.items() if load.in_effect}
        latest = {path: next((each for each in of if each in in_effect), "") for path, of in earlier.items()}
        return {path: in_effect[identity] for path, identity in latest.items() if identity}

    def find_later(self, load: FileLoad) -> LoadedFile | None:
        """Return the first load of other content after a load; None if there is none, or the order does not matter."""
        return self.loaded_files.find_later(load.file) if self.order_matters else None

    def all(self, column: str, values: Sequence[str]) -> list[FileLoad]:
        """Return the loads of files with these values of a column, in effect or not, into the present tables."""
        loads: list[FileLoad] = []
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            condition = f"f.table_name IN ({_marks(self.tables)}) AND {column} IN ({_marks(some)})"
            loads += self.loaded_files.list_files(condition, [*self.tables, *some], -1)[0]
        return self.loaded_files.on_present_tables(loads)


def name_run(load: FileLoad) -> str:
    """Return the workflow id of the run that loaded a file, marked if the run was rolled back."""
    return load.file.workflow_id + ("" if load.in_effect else ROLLED_BACK)


def _time_of(load: LoadedFile) -> float:
    return datetime.fromisoformat(load.at).timestamp()


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
