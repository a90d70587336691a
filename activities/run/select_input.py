"""Select the files that an attempt loads: the files of its source that main does not contain yet, each once."""

from dataclasses import dataclass
from functools import partial

from temporalio import activity

from activities.run.source_progress import run_with_progress
from lakehouse.catalog import BranchCatalog
from lakehouse.input.later_loads import LaterLoads
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.replacing_loads import find_replacing_load
from lakehouse.publishing.published_commits import describe_other_version
from lakehouse.source_files import OnProgress, find_files, identify_input
from lakehouse.source_files.listing import changed_since_start
from sluice.contracts.input import SelectInputInput
from sluice.contracts.run_request import InputFile
from sluice.contracts.selected_input import ManifestRef, SelectedInput
from sluice.errors import AlreadyPublished, InputChanged, InputIncomplete, ManifestUnreadable, ServiceUnavailable
from sluice.input.held_files import LoadedFile, WantedFile, overtaken_files
from sluice.input.manifest import InputManifest, ManifestFile, ManifestHeader, total_bytes
from sluice.input.selection import (
    LoadedByPath,
    asks_what_was_loaded,
    describe_changed_files,
    describe_other_content,
    describe_overwritten_input,
    describe_replacing_load,
    describe_selection,
    name_left_out,
    refuse_changed_partition,
    refuse_overtaken,
    refuse_partly_loaded,
    select_files,
)
from sluice.publishing.branch_properties import branch_properties, input_properties

_MOST_COMPARED = 5
"""Maximum number of earlier runs whose pipeline is compared with the present one."""


@dataclass(frozen=True)
class SelectInputActivity:
    """The activity `select_input`.

    Needs the catalog, the index of loaded files, and the installation of these runs. It reads the source, so the worker
    must have access to its files.
    """

    catalog: BranchCatalog
    loaded_files: LoadedFiles
    installation: str

    @activity.defn(name="select_input")
    async def select_input(self, input: SelectInputInput) -> SelectedInput:
        """List and identify the files, select those to load, and write the result as the attempt's input manifest."""
        work = partial(self._select, input)
        return await run_with_progress(work, activity.heartbeat, "identifying the source files")

    def _select(self, input: SelectInputInput, on_progress: OnProgress) -> SelectedInput:
        files = self._list(input, on_progress)
        loaded = self._find_loaded(input, files)
        try:
            selected = select_files(
                files, loaded, input.policy, reads_selection=input.reads_selection, scope=input.scope
            )
        except AlreadyPublished as error:
            raise AlreadyPublished(f"{error}{self._describe_other_version(input, loaded)}") from error
        chosen = [file for file in selected if file.left_out is None]
        if input.one_content_per_path:
            self._refuse_overwritten(input, chosen)
        self._refuse_after_replacing_load(input)
        changed = self._find_changed(input, chosen)
        if changed and asks_what_was_loaded(input.policy, again=input.again):
            self._refuse_doubled(input, chosen, changed)
        if input.write and chosen:
            loads = LaterLoads(self.catalog, self.loaded_files.manifests.io, self.loaded_files)
            loads.check_youngest(input.run_ref.pipeline, input.write, input.tables, input.order)
        manifest = self.loaded_files.manifests.write(_manifest(input, selected))
        self._describe_branch(input, manifest)
        sentences = (describe_selection(selected, loaded), describe_changed_files(changed))
        return SelectedInput(
            manifest=manifest,
            files=len(chosen),
            bytes=total_bytes(chosen),
            loaded_before=sum(file.left_out == "loaded before" for file in selected),
            duplicates=sum(file.left_out == "same content" for file in selected),
            left_out=name_left_out(selected, loaded),
            summary=". ".join(filter(None, sentences)),
        )

    def _find_loaded(self, input: SelectInputInput, files: list[InputFile]) -> LoadedByPath:
        """Return the files that main contains, or no files if the run loads its files regardless.

        Raises:
            InvalidInput: main contains a whole file, and the run would load a partition of it, or the reverse. Or a
                file has older content under a new name, and its rows may not replace younger ones.
        """
        if not asks_what_was_loaded(input.policy, again=input.again):
            return {}
        wanted = [WantedFile(file.path, file.identity, input.scope) for file in files]
        held = self.loaded_files.find(input.tables, wanted, order_matters=input.order_matters)
        refuse_partly_loaded(held)
        overtaken = overtaken_files(held)
        if not input.order.over_younger:
            refuse_overtaken(overtaken)
        return {each.wanted.path: each.load for each in held if each not in overtaken}

    def _describe_other_version(self, input: SelectInputInput, loaded: LoadedByPath) -> str:
        """Describe the first of the runs that loaded the files by another version of the pipeline."""
        pipeline, digest = input.run_ref.pipeline, input.pipeline_digest
        runs = list(dict.fromkeys(load.run_id for load in loaded.values()))[:_MOST_COMPARED]
        described = (describe_other_version(self.catalog, run, pipeline, digest) for run in runs)
        return next(filter(None, described), "")

    def _list(self, input: SelectInputInput, on_progress: OnProgress) -> list[InputFile]:
        """Return the files of the run: those of its first attempt, or else those that the source lists now.

        Raises:
            InvalidInput: the files are not those that the run was started for.
        """
        if input.listed:
            listed = self.loaded_files.manifests.read(input.listed).files
            return [InputFile(path=file.path, size=file.size, identity=file.identity) for file in listed]
        try:
            files = find_files(input.source, on_progress)
        except InputIncomplete as error:  # it was complete when the run was started
            raise InputChanged(f"{error} (it changed since the run was started)") from error
        if identify_input(files, input.scope).digest != input.input_digest:
            raise changed_since_start(input.source.paths)
        return files

    def _refuse_overwritten(self, input: SelectInputInput, files: list[ManifestFile]) -> None:
        """Check that main has no other content from the paths of these files.

        Raises:
            InputChanged: main has other content of a path. A deployed landing zone then decides again which files to
                load.
        """
        if overwritten := self.loaded_files.find_other_content(input.tables, files):
            raise InputChanged(describe_overwritten_input(overwritten))

    def _refuse_after_replacing_load(self, input: SelectInputInput) -> None:
        """Check that the run does not append after a load of its pipeline, by now edited, that may replace rows.

        Raises:
            InputChanged: there was such a load after the first attempt selected its files.
        """
        if input.listed is None or input.again:
            return
        header = self.loaded_files.manifests.read(input.listed).header
        if replacing := find_replacing_load(self.loaded_files, header):
            raise InputChanged(f"{describe_replacing_load(replacing)}. Start the pipeline again as it is now")

    def _refuse_doubled(self, input: SelectInputInput, chosen: list[ManifestFile], changed: list[LoadedFile]) -> None:
        """Check that the run does not append a partition again, nor files whose other content was loaded meanwhile.

        Raises:
            InputChanged: another run loaded other content of a file after the first attempt selected its files.
            InvalidInput: main contains the partition from other content.
        """
        if input.listed and not input.loads_all_contents:
            base = self.loaded_files.manifests.read(input.listed).header.base
            if later := self.loaded_files.find_other_content(input.tables, chosen, of_scope=True, since=base):
                raise InputChanged(describe_other_content(later))
        if input.scope.label:
            refuse_changed_partition(changed, input.scope)

    def _find_changed(self, input: SelectInputInput, files: list[ManifestFile]) -> list[LoadedFile]:
        """Return the loads of other content from the paths of files whose rows are appended to it."""
        if input.order_matters or not input.reads_selection:
            return []
        try:
            return self.loaded_files.find_other_content(input.tables, files, of_scope=True)
        except (ManifestUnreadable, ServiceUnavailable):  # `--again` loads the files in this case, too
            return []

    def _describe_branch(self, input: SelectInputInput, manifest: ManifestRef) -> None:
        """Name the manifest in a commit on the branch, where the reaper can read it after the end of the run."""
        properties = {
            **input_properties(input.input_digest, input.tables, manifest, input.scope),
            **branch_properties(input.run_ref, self.installation),
        }
        head = self.catalog.head(input.branch.name)
        self.catalog.commit_tables(input.branch.name, head, "Select the input", properties=properties)


def _manifest(input: SelectInputInput, files: list[ManifestFile]) -> InputManifest:
    run_ref = input.run_ref
    header = ManifestHeader(
        run_id=run_ref.run_id,
        workflow_id=run_ref.workflow_id,
        pipeline=run_ref.pipeline,
        attempt=run_ref.attempt,
        base=input.branch.base,
        tables=input.tables,
        policy=input.policy,
        again=input.again,
        one_content_per_path=input.one_content_per_path,
        loads_all_contents=input.loads_all_contents,
        input_digest=input.input_digest,
        order_matters=input.order_matters,
        replaces=input.replaces,
    )
    return InputManifest(header=header, files=files)
