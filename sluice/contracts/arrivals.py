"""The messages of landing zones: what arrived, the batches in which it is loaded, and what people ask."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.starting import PipelineText

ZONE_MEMO = "sluice.landing_zone"
"""The memo of `LandingZone` with what `deploy` compares."""
ROLLED_BACK = " (rolled back)"
"""What follows the name of a run that loaded a file and was rolled back."""
BatchState = Literal["waiting", "running", "kept out", "set aside"]
FileStatus = Literal["waiting", "in a batch", "loaded", "ignored", "refused", "moved"]


def other_content_in(batch: str) -> str:
    """Return why a file waits whose path is in a batch with other content."""
    return f"batch {batch} has this path with other content"


def landing_zone_id(installation: str, pipeline: str) -> str:
    """Return the workflow id of the landing zone of a pipeline: one for each installation."""
    return f"sluice-{installation}-arrivals-{pipeline}"


class ArrivedFile(Model):
    """One file of a batch."""

    path: str
    size: int
    identity: str


class BatchPaths(Model):
    """Result of `read_batch`: the paths of the files of a batch."""

    paths: list[str]


class BatchRef(Model):
    """A batch: its files are listed in the lake."""

    id: str
    """The first digits of the SHA-256 over the identities of its files."""
    location: str
    files: int
    bytes: int
    paths: str = ""
    """The first digits of the SHA-256 over the paths of its files: the same files with other content have the same."""


class Batch(Model):
    """A batch that a landing zone holds: main has not all of its files."""

    ref: BatchRef
    state: BatchState = "waiting"
    since: float = 0.0
    """When it was made, in seconds since 1970: the oldest are loaded first, over all landing zones."""
    tries: int = 0
    workflow_id: str = ""
    """Of its latest run."""
    run_id: str = ""
    outcome: str = ""
    reason: str = ""
    is_named: bool = False
    """Whether a person named its files."""
    is_outdated: bool = False
    """Whether its files changed under its runs: a retry collects them as they are then."""
    overtaken_by: str = ""  # a younger batch that main holds


class CollectArrivalsInput(Model):
    """Input of `collect_arrivals`: look at a landing zone."""

    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    """The batches that the zone holds: their files are in no other one."""
    states: dict[str, BatchState] = Field(default_factory=dict)
    """The state of each batch that is kept out or set aside, by its id; the others wait or run."""
    room: int = 50
    received: str = ""
    """The mark of the latest result that arrived: files that it told of are not told of again."""
    files: list[str] | None = None
    """The paths that notifications named: only these, and the files that wait, are looked at where the worker did the
    look before, too. None has the whole zone listed."""


class KeptOutFile(Model):
    """A file that is not loaded, of which people are told."""

    path: str
    reason: str


class CollectArrivalsResult(Model):
    """Result of `collect_arrivals`."""

    problem: str = ""
    """Why the zone cannot be looked at: its pipeline is not valid, or the listing is refused."""
    batches: list[BatchRef] = Field(default_factory=list)
    """What can be loaded now, the oldest first."""
    loaded: list[str] = Field(default_factory=list)
    """The ids of held batches whose files main has, by whichever run."""
    kept_out: list[KeptOutFile] = Field(default_factory=list)
    """Files that are refused, or were overwritten, and that people are to be told of: the first of them."""
    more_kept_out: int = 0
    """How many more there are."""
    mark: str = ""
    """What the next look is given as `received`."""
    counts: dict[str, int] = Field(default_factory=dict)
    """How many files there are by status."""
    look_in: float | None = None
    """The seconds after which files are settled if nothing else arrives."""
    latest_arrival: float | None = None
    """When the latest file of these batches was listed for the first time, in seconds since 1970."""
    is_passing: bool = False
    """Whether the problem may pass by itself: a store or main does not answer."""
    to_finish: int = 0
    """How many files that main holds are to be tagged or moved now."""
    put_off: int = 0
    """How many of them could not be, and are tried again later."""


class FinishArrivalsInput(Model):
    """Input of `finish_arrivals`: tag or move the files that main holds, as the pipeline states."""

    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    """The batches that the zone holds: a run may read their files."""


class FinishArrivalsResult(Model):
    """Result of `finish_arrivals`."""

    finished: int = 0
    """How many files were tagged or moved."""
    failed: int = 0
    """How many stay as they are, and are tried again later."""
    problem: str = ""
    """Why the first of those does."""
    has_more: bool = False


class ListArrivalsInput(Model):
    """What `list_arrivals` lists: the files that are in a landing zone, each with what became of it."""

    kind: Literal["list_arrivals"] = "list_arrivals"
    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    states: dict[str, BatchState] = Field(default_factory=dict)
    has_room: bool = True
    """Whether the zone may hold another batch: a full one makes none of the files that wait."""
    file: str = ""
    """A part of the path; empty means every file."""
    status: FileStatus | None = None
    limit: int = Field(default=100, ge=1, le=5000)


class ArrivalEntry(Model):
    """One file that is in a landing zone."""

    path: str
    size: int
    arrived_at: float
    """When it was listed for the first time, in seconds since 1970."""
    status: FileStatus
    detail: str
    """The batch that it is in, the run that loaded it, or why it is not loaded, or waits."""
    copy_of: str = ""  # the file with the same content that was loaded in its place
    after: str = ""  # what was done with it when main held it, or why that is still to be done


class ListArrivalsResult(Model):
    """Files of a landing zone, the latest first."""

    files: list[ArrivalEntry]
    counts: dict[str, int]
    """How many files there are by status, listed or not."""
    runs: dict[str, str] = Field(default_factory=dict)
    """The workflow ids of the runs of the batches that are held, whether they were started or not."""


class LandingZoneInput(Model):
    """Input of the workflow `LandingZone`; its state goes along where the workflow continues as new."""

    pipeline: PipelineText
    name: str
    """The pipeline's name."""
    installation: str
    look: float
    at_once: int
    on_failure: Literal["continue", "pause"]
    in_order: bool = False  # whether rows of a batch take the place of rows of an earlier one
    expect: float | None = None
    task_queue: str = ""
    """The task queue that it is deployed for; where it is on another one, it continues there."""
    set_name: str = ""
    """The set of things that it was deployed with: `deploy` removes from its own set alone."""
    deployed_from: str = ""
    """The folder that was deployed."""
    properties: dict[str, str] = Field(default_factory=dict)
    """What the next `deploy` compares, and what people see."""
    batches: list[Batch] = Field(default_factory=list)
    paused: str = ""
    """Why no batch is started; empty while the zone is not paused."""
    resumed: str = ""
    """Why the zone was resumed last, and by whom; empty while it is paused."""
    latest_arrival: float | None = None
    silence_reported: bool = False
    since: float | None = None
    """When the zone was made, in seconds since 1970."""
    answered: int = 0
    """The number of the latest grant of a run that the zone followed or declined."""
    problem: str = ""
    changes: dict[str, int] = Field(default_factory=dict)
    """How often in a row the files of a batch changed under its run, by their paths; and those of any batch."""
    reported: list[str] = Field(default_factory=list)
    """Digests of the files that are not loaded and that people were told of."""
    received: str = ""
    """The mark of the latest look."""


class ZoneStatus(Model):
    """The answer to the query `status` of a landing zone."""

    name: str
    pipeline: PipelineText
    batches: list[Batch]
    paused: str
    problem: str
    counts: dict[str, int]
    """How many files there were by status, at the latest look."""
    latest_arrival: float | None
    next_look: str
    """When the zone is listed again at the latest, in ISO 8601."""
    unfinished: str = ""
    """How many files that main holds could not be tagged or moved, and why."""
    resumed: str = ""
    """Why the zone was resumed last, and by whom; empty while it is paused."""


class BatchRequest(Model):
    """What a person asks of a batch."""

    batch: str
    by: str
    over_younger: bool = False  # whether its rows may take the place of those of younger batches


class BatchCommand(BatchRequest):
    """What a person asks of a batch that was kept out."""

    action: Literal["retry", "set aside"]


class SplitBatch(BatchRequest):
    """What a person asks of a batch whose bad file is to be identified: two batches in the place of one."""


class SplitBatchInput(Model):
    """Input of `split_batch`."""

    name: str
    """The pipeline's name."""
    ref: BatchRef


class SplitBatchResult(Model):
    """Result of `split_batch`: the batches with the first and the second half of the files."""

    halves: list[BatchRef]


class PauseZone(Model):
    """Pause a landing zone, or resume it: files are collected, and no batch is started meanwhile."""

    paused: bool
    note: str = ""
    by: str


class ZoneNotice(Model):
    """Input of `notify_landing_zone`: what people are told of a landing zone."""

    name: str
    text: str


def memo_of(zone: LandingZoneInput) -> dict[str, Any]:
    """Return what the memo of a landing zone holds: how it was deployed."""
    return {
        "name": zone.name,
        "installation": zone.installation,
        "file": zone.pipeline.name,
        "set": zone.set_name,
        "folder": zone.deployed_from,
        "properties": zone.properties,
    }
