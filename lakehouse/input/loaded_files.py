"""Loaded files of main, answered from an index of main's history.

Each run that loads files names its input manifest on its merge commit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_identity import commits_of_other_tables, loads_on_main
from lakehouse.input.current_index import CurrentIndex
from lakehouse.input.intact_loads import is_intact
from lakehouse.input.loaded_files_index import FileLoad
from lakehouse.input.loaded_files_tables import AFTER_COMMIT
from lakehouse.input.manifests import InputManifests
from sluice.contracts.input import PublicationCheck
from sluice.input.held_files import HeldFile, LoadedFile, LoadedPartitions, LoadsOfTable, WantedFile, overtaken_files
from sluice.input.manifest import ManifestFile
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.write_modes import Replaced
from sluice.publishing.commit_properties import PIPELINE

_AT_ONCE = 200
"""Maximum number of paths in one question."""


class LoadedFiles:
    """Queries for the files loaded on main.

    Requires the catalog, the input manifests, and a folder for the index.
    """

    def __init__(self, catalog: BranchCatalog, manifests: InputManifests, home: Path) -> None:
        self.manifests = manifests
        self._catalog, self._index = catalog, CurrentIndex(catalog, manifests, home)

    def find(
        self, tables: Sequence[str], files: Sequence[WantedFile], *, order_matters: bool = False, but_of_run: str = ""
    ) -> list[HeldFile]:
        """Return the given files that one of the tables on main contains now, wholly or partly.

        Args:
            tables: the tables to search.
            files: the files to be loaded.
            order_matters: True if rows of a later load replace those of an earlier one.
            but_of_run: the id of a run whose loads do not count.

        A load into a dropped table does not count, even if another table has its name now.

        Raises:
            ManifestUnreadable: it is unknown which files a run loaded into one of the tables.
        """
        identities = {file.identity for file in files}
        paths = {file.path for file in files} if order_matters else set[str]()
        by_table, at = self._index.ask(
            lambda index, at: ([index.find_loads(at, table, identities, paths) for table in tables], at), tables
        )
        by_file: dict[WantedFile, HeldFile] = {}
        for loads in by_table:
            of_others = [load for load in loads if load.run_id != but_of_run]
            present = loads_on_main(self._catalog, self.manifests.io, of_others, at)
            held = LoadsOfTable(present, order_matters=order_matters)
            for file in files:
                if (each := held.find(file)) and (file not in by_file or by_file[file].is_partly):
                    by_file[file] = each
        return self._with_later(list(by_file.values()), at)

    def _with_later(self, held: Sequence[HeldFile], at: str) -> list[HeldFile]:
        """Return the held files, each renamed one with the first load of other content after its own load.

        The later load is left out if main still has the rows of the file's own load.
        """
        renamed = [(each.load, each.wanted.scope) for each in held if each.is_renamed]
        later = iter(self._index.as_it_is().find_later(renamed) if renamed else ())
        files = [replace(each, overtaken_by=next(later)) if each.is_renamed else each for each in held]
        if not overtaken_files(files):
            return files
        intact: dict[tuple[str, str], bool] = {}
        for load in (each.load for each in files if each.overtaken_by):
            if (load.table, load.commit) not in intact:
                intact[load.table, load.commit] = self._is_intact(load, at)
        return [
            replace(each, overtaken_by=None, is_intact=True)
            if each.overtaken_by and intact[each.load.table, each.load.commit]
            else each
            for each in files
        ]

    def _is_intact(self, load: LoadedFile, at: str) -> bool:
        before = self._index.as_it_is().find_previous(load.commit)
        return bool(before) and is_intact(self._catalog, self.manifests.io, load, before, at)

    def find_input(
        self, pipeline: str, digest: str, tables: Sequence[str] = (), replaces: Replaced = ""
    ) -> LoadedFile | None:
        """Return the latest run in effect of a pipeline that published the whole input of this identity.

        Args:
            tables: tables of the pipeline. If the run loaded files into other tables alone, or if all of them were
                dropped since, it does not count.
            replaces: the rows that each load replaces. A run does not count if a later load replaced its rows.
        """
        return next(self._find_inputs(pipeline, [digest], tables, replaces), None)

    def _find_inputs(
        self, pipeline: str, digests: Sequence[str], tables: Sequence[str], replaces: Replaced
    ) -> Iterator[LoadedFile]:
        """Yield the latest run in effect for each of some inputs. See `find_input`."""
        if self._has_published_nothing(pipeline):
            return
        loads, at = self._index.ask(lambda index, at: (index.find_inputs(at, pipeline, digests, tables), at))
        for load in loads:
            if replaces and (self.is_replaced(load, pipeline, replaces) or self._lacks_rows(load, at)):
                continue
            into = [replace(load, table=table) for table in tables]
            if not into or loads_on_main(self._catalog, self.manifests.io, into, at):
                yield load

    def find_overlapping(
        self, pipeline: str, scopes: Sequence[LoadScope], tables: Sequence[str], but_of_run: str = ""
    ) -> Iterator[HeldFile]:
        """Yield the partitions that overlap a larger or a smaller one on main.

        This is for inputs that main knows only as a whole. A partition that is itself on main does not count.

        Args:
            scopes: scopes of the partitions to load.
            tables: see `find_input`.
            but_of_run: the id of a run whose loads do not count.
        """
        if not any(scope.content for scope in scopes) or self._has_published_nothing(pipeline):
            return
        loads, at = self._index.ask(lambda index, at: (index.find_scopes(at, pipeline, tables), at))
        known = LoadedPartitions(load for load in loads if load.run_id != but_of_run)

        def present(loads: Sequence[LoadedFile]) -> list[LoadedFile]:
            into = [replace(load, table=table) for load in loads for table in tables]
            return loads_on_main(self._catalog, self.manifests.io, into, at)

        for scope in scopes:
            if (overlapping := present(known.overlapping(scope))) and not present(known.same(scope)):
                yield HeldFile(WantedFile("", "", scope), overlapping[-1], is_partly=True)

    def _has_published_nothing(self, pipeline: str) -> bool:
        """Return True if the index is empty and need not be built, since the pipeline published nothing."""
        return not self._index.as_it_is().head() and self._catalog.find_published({PIPELINE: pipeline}) is None

    def find_overlap(self, check: PublicationCheck, run_id: str) -> list[HeldFile]:
        """Return the files of a run's input that main contains now, loaded by other runs.

        If main knows the input only as a whole, return the whole input or, if main has an overlapping partition, that.

        Raises:
            ManifestUnreadable: it is unknown which files this run, or another, loaded.
        """
        manifest = self.manifests.read(check.manifest) if check.manifest else None
        if manifest and not check.digest:
            files = [WantedFile(file.path, file.identity, file.scope) for file in manifest.loaded]
            held = self.find(check.tables, files, order_matters=manifest.header.order_matters, but_of_run=run_id)
            return [each for each in held if each.overtaken_by is None]  # the selection decided about the others
        digests = [each.digest for each in manifest.inputs if each.digest] if manifest else [check.digest]
        loads = self._find_inputs(check.pipeline, digests, check.tables, check.replaces)
        if earlier := next((each for each in loads if each.run_id != run_id), None):
            return [HeldFile(WantedFile("", earlier.identity), earlier)]
        return list(self.find_overlapping(check.pipeline, [check.scope], check.tables, run_id))

    def is_replaced(self, load: LoadedFile, pipeline: str, replaces: Replaced) -> bool:
        """Return True if a later run in effect of a pipeline loaded files into the tables of a run.

        Args:
            load: the run, as `find_input` returned it.
            replaces: "partitions" if only loads of the same partition or scheduled time count.
        """
        same_scope = replaces == "partitions"
        return self._index.ask(lambda index, _: index.is_replaced(load, pipeline, same_scope=same_scope))

    def _lacks_rows(self, load: LoadedFile, at: str) -> bool:
        """Return True if later loads, of whatever pipeline and partition, replaced rows of a run."""
        tables = self._index.ask(lambda index, _: index.replaceable_tables(load.commit))
        return not all(self._is_intact(replace(load, table=table), at) for table in tables)

    def find_overwritten(self, check: PublicationCheck, run_id: str) -> list[LoadedFile]:
        """Return the loads on main, by other runs, of the paths of an input with other content.

        If the pipeline allows one content of each path, all loads count. If not, an append must still not add old
        content after new content, so the loads since the selection of its files count. If later rows replace earlier
        ones, or if each content is wanted, the result is empty.

        Raises:
            ManifestUnreadable: it is unknown which files this run, or another, loaded.
        """
        if check.manifest is None:
            return []
        manifest = self.manifests.read(check.manifest)
        header = manifest.header
        if header.one_content_per_path:
            loads = self.find_other_content(check.tables, manifest.loaded)
        elif header.order_matters or header.wants_all_contents:
            return []
        else:
            loads = self.find_other_content(check.tables, manifest.loaded, of_scope=True, since=header.base)
        return [load for load in loads if load.run_id != run_id]

    def find_other_content(
        self, tables: Sequence[str], files: Sequence[ManifestFile], *, of_scope: bool = False, since: str = ""
    ) -> list[LoadedFile]:
        """Return the latest load in effect of each path that was loaded with other content than these files.

        Args:
            of_scope: True if only loads of a file's partition and scheduled time count.
            since: a hash of main; only later loads count.

        Raises:
            ManifestUnreadable: it is unknown which files a run loaded into one of the tables.
        """
        wanted = {file.path: file for file in files}
        latest: dict[str, LoadedFile] = {}
        for start in range(0, len(files), _AT_ONCE):
            paths = [file.path for file in files[start : start + _AT_ONCE]]
            named, marks = ", ".join("?" * len(tables)), ", ".join("?" * len(paths))
            condition = f"r.in_effect AND f.table_name IN ({named}) AND f.path IN ({marks})"
            if since:
                condition += f" AND {AFTER_COMMIT}"
            loads, _ = self.list_files(condition, [*tables, *paths, *filter(None, [since])], -1, tables)
            for load in loads:
                file = wanted[load.file.path]
                is_of_scope = load.file.scope.covers(file.scope, is_same_path=True) or not of_scope
                if load.identity != file.identity and is_of_scope:
                    latest.setdefault(load.file.path, load.file)
        if not latest:
            return []
        head = self._catalog.head(self._catalog.main)
        return loads_on_main(self._catalog, self.manifests.io, list(latest.values()), head)

    def list_files(
        self, condition: str, values: Sequence[object], limit: int, tables: Sequence[str] = ()
    ) -> tuple[list[FileLoad], int]:
        """Return the loads that match a condition of the index, newest first, and their total number.

        Args:
            tables: tables whose loads must all be known. See `find`.
        """
        return self._index.ask(lambda index, _: index.list_files(condition, values, limit), tables)

    def follow(self, earlier: str) -> tuple[str, bool]:
        """Return the head of main, and True if its history contains an earlier head: main may have been reset."""
        return self._index.ask(lambda index, at: (at, not earlier or index.knows(earlier)))

    def find_later(self, load: LoadedFile) -> LoadedFile | None:
        """Return the first load in effect of other content into the table of a load, after it."""
        return self._index.ask(lambda index, _: index.find_later([(load, load.scope)]))[0]

    def on_present_tables(self, loads: Sequence[FileLoad]) -> list[FileLoad]:
        """Return the loads without those in effect whose table was dropped, which took their rows along.

        A load that was rolled back stays known: its roll-back may have dropped the table.
        """
        head = self._catalog.head(self._catalog.main)
        present = loads_on_main(self._catalog, self.manifests.io, [each.file for each in loads if each.in_effect], head)
        kept = {(load.table, load.commit) for load in present}
        return [load for load in loads if not load.in_effect or (load.file.table, load.file.commit) in kept]

    def were_dropped(self, tables: Sequence[str], since: str) -> bool:
        """Return True if a table of an earlier hash of main was dropped since, and maybe created again."""
        head = self._catalog.head(self._catalog.main)
        io = self.manifests.io
        return any(commits_of_other_tables(self._catalog, io, table, {since: ""}, head) for table in tables)

    @property
    def key(self) -> str:
        """Identity of this catalog's main, which names the caches of it."""
        return self._index.key

    def unknown(self) -> list[str]:
        """Return the commits whose loaded files are unknown, each with the reason."""
        return [f"{hash[:12]}: {problem}" for hash, _, problem in self._index.ask(lambda index, _: index.problems(()))]
