"""Refuse landing zones that list files of Sluice or of another zone, and runs that read files of a zone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.source_files import absolute_path, is_remote, may_share, resolved_pattern, without_scheme
from sluice.deployment.plan import DeployedItem
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.file import read_pipeline
from sluice.pipeline.model import Pipeline
from sluice.setting_groups import StorageSettings

_CHECKOUT = ("run_workflow.py", "worker.py")
_MOST_FILES = 200
"""Maximum number of other pipeline files that `check` reads."""
_FOLDERS_OF_CHECKOUT = (
    *("activities", "bench", "cli", "devstack", "docs", "engine", "generation", "hosting"),
    *(
        "importing",
        "lakehouse",
        "pipelines",
        "runtime",
        "sluice",
        "spark_jobs",
        "tests",
        "workflows",
        ".git",
        ".venv",
        ".sluice",
    ),
)


@dataclass(frozen=True)
class KnownZone:
    """A landing zone that is deployed, or is to be deployed."""

    pipeline: str
    path: str
    """Absolute path with links resolved."""
    tables: frozenset[str]
    """Tables that the zone loads into; empty if they are not known."""
    keeps: bool
    """True if the zone leaves its files where they are."""
    move_to: str = ""

    @property
    def _text(self) -> str:
        return f"the landing zone {self.path} of {self.pipeline!r}"

    def problem_with(self, other: "KnownZone") -> str:
        """Return why this zone and another one cannot be deployed together; empty if they can."""
        if other.move_to and may_share(self.path, other.move_to):
            return f"{self._text} would list the files that {other.pipeline!r} moves to {other.move_to}"
        if not may_share(self.path, other.path):
            return ""
        if self.keeps and other.keeps and not self._may_share_table(other.tables):
            return ""
        return (
            f"{self._text} and {other._text} may list the same files: give each its own folder. Two zones may share "
            "files only with `after: keep` in both, and no table in common"
        )

    def problem_with_source(self, pipeline: Pipeline) -> str:
        """Return why a run of another pipeline file should not read its source; empty if it may."""
        source, is_own = pipeline.write.source, pipeline.name == self.pipeline and pipeline.arrival is not None
        if is_own or source is None or not self._may_share_table(frozenset(pipeline.tables)):
            return ""
        shared = next((path for path in source.paths if may_share(self.path, resolved_source(path))), None)
        if shared is None:
            return ""
        return (
            f"{pipeline.name!r} reads {shared}, and {self._text} lists files there and loads them into the same table: "
            f"a run would load files that are still written, or that the zone ignores. Load files by `arrivals "
            f"{self.pipeline} --load FILE`, or read another folder"
        )

    def _may_share_table(self, tables: frozenset[str]) -> bool:
        return not self.tables or bool(self.tables & tables)


def resolved_source(path: str, folder: Path | None = None) -> str:
    """Return a path for the comparison of zones: absolute, with links resolved."""
    return path if is_remote(path) else resolved_pattern(str(absolute_path(without_scheme(path), folder)))


def check_location(pipeline: Pipeline, settings: StorageSettings, working_directory: Path) -> None:
    """Check that a landing zone shares no files with the lake, the home, or a checkout of Sluice.

    Raises:
        InvalidPipeline: the zone shares files with one of them.
    """
    if pipeline.arrival is None:
        return
    path = resolved_source(pipeline.arrival.from_, working_directory)
    for what, own in _own_locations(path, settings, working_directory):
        if may_share(path, own):
            raise InvalidPipeline(
                f"the landing zone {pipeline.arrival.from_} of {pipeline.name!r} has files in common with {what}, "
                f"{own}: use a separate folder or prefix that has only arriving files"
            )


def _own_locations(path: str, settings: StorageSettings, working_directory: Path) -> Iterator[tuple[str, str]]:
    yield "the lake", resolved_source(settings.lake)
    if is_remote(path):
        return
    yield "SLUICE_HOME", resolved_source(str(settings.sluice_home))
    parents = [Path(path), *Path(path).parents]
    for folder in {Path(__file__).resolve().parents[2], working_directory.resolve(), *parents}:
        if all((folder / name).is_file() for name in _CHECKOUT):
            yield from (("a checkout of Sluice", str(folder / name)) for name in _FOLDERS_OF_CHECKOUT)


def check_deploy(
    wanted: Sequence[DeployedItem], present: Sequence[DeployedItem], scheduled: Sequence[Pipeline]
) -> None:
    """Check that no two zones list the same files, and that no scheduled run loads files of a zone.

    Args:
        wanted: landing zones that the files of the deploy state.
        present: deployed landing zones, without those that this deploy changes or removes.
        scheduled: pipelines that have a schedule after the deploy, with absolute paths.

    Raises:
        InvalidPipeline: there are conflicts; the message has all of them.
    """
    new = [zone_of(item.pipeline, item.properties) for item in wanted]
    old = [zone_of(item.pipeline, item.properties) for item in present]
    problems: list[str] = []
    for number, zone in enumerate(new):
        for other in [*new[number + 1 :], *old]:
            problems += filter(None, [zone.problem_with(other) or other.problem_with(zone)])
    for pipeline in scheduled:
        problems += filter(None, (zone.problem_with_source(pipeline) for zone in [*new, *old]))
    if problems:
        raise InvalidPipeline("\n".join(dict.fromkeys(problems)))


def hint_at_zones(pipeline: Pipeline, file: Path, directory: Path) -> list[str]:
    """Return why `deploy` would refuse a pipeline together with a landing zone of another file in its folder.

    Args:
        pipeline: the pipeline of the file, with absolute paths.
        file: the pipeline file.
        directory: the folder to which relative paths of the other files refer.
    """
    own = _stated_zone(pipeline, directory)
    hints = []
    for path in sorted(file.absolute().parent.glob("*.y*ml"))[:_MOST_FILES]:
        try:
            other = read_pipeline(path) if path.suffix in (".yml", ".yaml") and path.name != file.name else None
            zone = _stated_zone(other, directory) if other else None
        except (InvalidPipeline, InvalidInput):  # a file that is not valid, or has placeholders, states no zone
            continue
        if zone and own:
            hints.append(own.problem_with(zone) or zone.problem_with(own))
        elif zone:
            hints.append(zone.problem_with_source(pipeline))
    return list(filter(None, hints))


def _stated_zone(pipeline: Pipeline, directory: Path) -> KnownZone | None:
    """Return the landing zone that a pipeline states, or None."""
    if pipeline.arrival is None:
        return None
    more = {"tables": ", ".join(sorted(pipeline.tables)), "paths are relative to": str(directory)}
    return zone_of(pipeline.name, pipeline.arrival.properties() | more)


def with_absolute_source(pipeline: Pipeline, directory: Path) -> Pipeline:
    """Return a pipeline whose source has absolute paths, with links resolved."""
    if pipeline.write.source is None:
        return pipeline
    paths = [resolved_source(path, directory) for path in pipeline.write.source.paths]
    source = pipeline.write.source.model_copy(update={"path": paths})
    return pipeline.model_copy(update={"write": pipeline.write.model_copy(update={"source": source})})


def zone_of(pipeline: str, properties: Mapping[str, str]) -> KnownZone:
    """Return the zone that a memo describes. A memo of an earlier version names no tables."""
    folder = Path(properties.get("paths are relative to", "."))
    after = properties.get("after", "keep")
    move_to = after.removeprefix("move to ") if after.startswith("move to ") else ""
    try:
        path = resolved_source(properties["from"], folder)
    except InvalidInput:
        path = properties["from"]
    return KnownZone(
        pipeline=pipeline,
        path=path,
        tables=frozenset(filter(None, properties.get("tables", "").split(", "))),
        keeps=after == "keep",
        move_to=resolved_source(move_to, folder) if move_to else "",
    )
