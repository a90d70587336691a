"""Deploy a folder of pipeline files: read the files, plan the changes, and apply them."""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from temporalio.client import Client

from runtime.arrivals.deployed_zones import DeployedLandingZones, hint_on_removal
from runtime.arrivals.zone_conflicts import check_deploy, check_location, with_absolute_source
from runtime.schedules.deployed_schedules import DeployedSchedules, deployed_schedules
from sluice.deployment.files import PipelineFile, read_files
from sluice.deployment.plan import Change, DeployedItem, DeploySet, plan_changes
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import read_pipeline_text
from sluice.pipeline.model import Pipeline
from sluice.setting_groups import InstallationSettings
from sluice.settings import Settings

_ENDINGS = (".yml", ".yaml")


class DeployedKind(Protocol):
    """A kind of thing that a deploy applies, such as schedules."""

    kind: str

    def wanted(self, file: PipelineFile) -> DeployedItem | None:
        """Return the item of this kind that a file states, or None."""

    async def present(self) -> list[DeployedItem]:
        """Return the deployed items of this installation."""

    async def apply(self, change: Change, file: PipelineFile | None) -> None:
        """Create, change or remove an item. A removed item has no file."""


@dataclass(frozen=True)
class Deploy:
    """A planned deploy."""

    kinds: Mapping[str, DeployedKind]
    files: Mapping[str, PipelineFile]
    """Pipeline files by the name of the pipeline."""
    changes: Sequence[Change]

    @property
    def has_work(self) -> bool:
        """True if there is something to apply."""
        return any(change.is_work for change in self.changes)

    async def apply(self) -> None:
        """Apply the plan."""
        for change in self.changes:
            if change.is_work:
                file = self.files.get(change.item.pipeline) if change.action != "remove" else None
                await self.kinds[change.item.kind].apply(change, file)


def read_folder(folder: Path) -> list[PipelineFile]:
    """Read all pipeline files of a folder and the folders below it, except hidden ones.

    Raises:
        InvalidPipeline: the folder does not exist, or files are not valid; the message has every error.
    """
    if not folder.is_dir():
        raise InvalidPipeline(f"{folder} is not a folder: name the folder with all pipeline files of a set")
    texts: dict[str, str] = {}
    problems: list[str] = []
    for path in sorted(_files_below(folder, problems)):
        if path.exists() and not path.is_file():  # reading a pipe would wait for its writer
            problems.append(f"{path} is not a file")
            continue
        try:
            texts[str(path.relative_to(folder))] = read_pipeline_text(path)
        except InvalidPipeline as error:
            problems.append(str(error))
    return read_files(texts, f"{folder}/", problems)


def _files_below(folder: Path, problems: list[str]) -> Iterator[Path]:
    """Yield the paths of pipeline files, also behind links. Add unreadable folders to the problems.

    Otherwise a deploy would remove the items of unseen files, as if the files were deleted.
    """

    def note(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}")

    seen = set[str]()
    for top, folders, names in os.walk(folder, onerror=note, followlinks=True):
        if (real := os.path.realpath(top)) in seen:  # a link to a folder above, or to one that was already read
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        yield from (Path(top, each) for each in names if each.endswith(_ENDINGS) and not each.startswith("."))


def make_set(folder: Path, name: str) -> DeploySet:
    """Return the set that a folder is deployed as. Its name is the given one, or that of the folder."""
    absolute = folder.absolute().resolve()
    return DeploySet(name or absolute.name, str(absolute), stated=bool(name))


async def plan_deploy(
    client: Client, settings: Settings, files: Sequence[PipelineFile], deployed: DeploySet, working_directory: Path
) -> Deploy:
    """Return the plan of a deploy.

    Args:
        working_directory: the folder against which relative paths of the pipelines are resolved.

    Raises:
        InvalidPipeline: an item belongs to another set, or a landing zone shares files that it must not share.
    """
    kinds = _kinds(client, settings.installation, deployed, working_directory)
    wanted = [item for kind in kinds for file in files if (item := kind.wanted(file))]
    present = [item for kind in kinds for item in await kind.present()]
    changes = plan_changes(wanted, present, deployed)
    for file in files:
        check_location(file.pipeline, settings.storage, working_directory)
    touched = {change.item.pipeline for change in changes if change.item.kind == DeployedLandingZones.kind}
    zones = [item for item in wanted if item.kind == DeployedLandingZones.kind]
    others = [each for each in present if each.kind == DeployedLandingZones.kind and each.pipeline not in touched]
    scheduled = [with_absolute_source(file.pipeline, working_directory) for file in files if file.pipeline.schedule]
    if zones:
        removed = {
            change.item.pipeline
            for change in changes
            if change.action == "remove" and change.item.kind == DeployedSchedules.kind
        }
        own = {file.pipeline.name for file in files}
        scheduled += await _other_scheduled_pipelines(client, settings.installation, own | removed)
    check_deploy(zones, others, scheduled)
    for number, change in enumerate(changes):
        if change.action == "remove" and change.item.kind == DeployedLandingZones.kind:
            hint = await hint_on_removal(client, settings.installation, change.item.pipeline)
            changes[number] = replace(change, hint=hint)
    return Deploy({kind.kind: kind for kind in kinds}, {file.pipeline.name: file for file in files}, changes)


async def _other_scheduled_pipelines(
    client: Client, settings: InstallationSettings, without: Set[str]
) -> list[Pipeline]:
    """Return the pipelines of other deployed schedules, with absolute paths.

    Args:
        without: names of pipelines to leave out.
    """
    pipelines = []
    async for _, given in deployed_schedules(client, settings):
        if given.name not in without:
            with suppress(InvalidPipeline):  # a pipeline that is no longer valid starts no run
                (file,) = read_files({given.pipeline.name: given.pipeline.text})
                pipelines.append(with_absolute_source(file.pipeline, Path(given.pipeline.folder)))
    return pipelines


def _kinds(
    client: Client, settings: InstallationSettings, deployed: DeploySet, working_directory: Path
) -> Sequence[DeployedKind]:
    """Return all kinds of things that a deploy applies."""
    return [
        DeployedSchedules(client, settings, deployed, working_directory),
        DeployedLandingZones(client, settings, deployed, working_directory),
    ]
