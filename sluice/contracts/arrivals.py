"""Messages of landing zones: arrived files, the batches that load them, and the state of zones."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.contracts.starting import PipelineText

ZONE_MEMO = "sluice.landing_zone"
"""Key of the memo of `LandingZone` with the values that `deploy` compares."""
Age = tuple[float, ...]
"""Position of a file in the order of arrival, in seconds since 1970: when it was complete, then when it was listed.

The younger file has the larger value.
"""
ROLLED_BACK = " (rolled back)"
"""Suffix to the name of a run that loaded a file and was rolled back."""
BatchState = Literal["waiting", "running", "kept out", "set aside"]
FileStatus = Literal["waiting", "in a batch", "loaded", "ignored", "refused", "moved"]


def other_content_in(batch: str) -> str:
    """Return the reason why a file waits: a batch has its path with other content."""
    return f"batch {batch} has this path with other content"


def landing_zone_id(installation: str, pipeline: str) -> str:
    """Return the workflow id of a pipeline's landing zone, one for each installation."""
    return f"sluice-{installation}-arrivals-{pipeline}"


def zone_starter(pipeline: str) -> str:
    """Return the starter of the runs of a pipeline's landing zone, as reports name it."""
    return f"arrivals of {pipeline}"


class ArrivedFile(WireMessage):
    """One file of a batch."""

    path: str
    size: int
    identity: str
    is_sent_again: bool = False
    """True if it was written after main had got its content, in a zone where the order of loads matters."""
    age: Age = ()
    """Its position in the order of arrival, in the file list of a batch; empty if it is not known."""


class BatchPaths(WireMessage):
    """Result of `read_batch`: the paths of the files of a batch."""

    paths: list[str]


class BatchRef(WireMessage):
    """Reference to a batch. The lake has the list of its files."""

    id: str
    """First digits of the SHA-256 over the identities of its files."""
    location: str
    files: int
    bytes: int
    paths: str = ""
    """First digits of the SHA-256 over the paths of its files, which ignore their content."""
    oldest: Age = ()
    """Age of its oldest file; empty in a batch of an earlier release."""
    newest: Age = ()
    is_sent_again: bool = False
    """True if main contains one of its files, and the file was sent again since."""


class Batch(WireMessage):
    """A batch that a landing zone keeps until main has all of its files."""

    ref: BatchRef
    state: BatchState = "waiting"
    since: float = 0.0
    """Time when it was made, in seconds since 1970. The oldest batches of all landing zones are loaded first."""
    tries: int = 0
    workflow_id: str = ""
    """Workflow id of its latest run."""
    run_id: str = ""
    outcome: str = ""
    reason: str = ""
    is_named: bool = False
    """True if a person named its files."""
    is_outdated: bool = False
    """True if its files changed during its runs. A retry collects the files in their state at that time."""
    overtaken_by: str = ""  # id of a younger batch that main has
    over_younger: bool = False  # true if its rows may replace younger ones


class CollectArrivalsInput(WireMessage):
    """Input of `collect_arrivals`: list a landing zone and make batches of its files."""

    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    """Batches of the zone. Their files go into no other batch."""
    states: dict[str, BatchState] = Field(default_factory=dict)
    """State of each batch that is kept out or set aside, by its id. All other batches wait or run."""
    room: int = 50
    limits: list[Age] = Field(default_factory=list)
    """Ages, if the order of files matters: of the youngest loaded file, and of the youngest file of each batch that
    waits or runs."""
    received: str = ""
    """Mark of the latest result that the zone received. Files reported in that result are not reported again."""
    files: list[str] | None = None
    """Paths that notifications named. A worker that also made the previous listing reads only these files and those
    that wait. Any other worker lists the whole zone, and so does every worker if this is None."""


class KeptOutFile(WireMessage):
    """A file that is not loaded, to be reported to people."""

    path: str
    reason: str


class CollectArrivalsResult(WireMessage):
    """Result of `collect_arrivals`."""

    problem: str = ""
    """Reason why the zone cannot be listed: its pipeline is not valid, or the listing is refused."""
    batches: list[BatchRef] = Field(default_factory=list)
    """Batches that can be loaded now, oldest first."""
    loaded: list[str] = Field(default_factory=list)
    """Ids of the zone's batches whose files main has, no matter which run loaded them."""
    kept_out: list[KeptOutFile] = Field(default_factory=list)
    """Refused or overwritten files to report to people: the first of them."""
    more_kept_out: int = 0
    """Number of files that were kept out, but are not listed in `kept_out`."""
    mark: str = ""
    """Mark to pass as `received` to the next listing."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Number of files by status."""
    in_batches: dict[str, int] = Field(default_factory=dict)
    """Number of files with the status `in a batch`, by their detail."""
    look_in: float | None = None
    """Seconds until more files can be batched if nothing else arrives; None if no file waits for a time."""
    latest_arrival: float | None = None
    """Time when the newest file of these batches was first listed, in seconds since 1970."""
    is_passing: bool = False
    """True if the problem may end without a change: a store or main does not answer."""
    is_another_history: bool = False  # true if main may lack what it had: a table was dropped, for example
    to_finish: int = 0
    """Number of loaded files to tag or move now."""
    put_off: int = 0
    """Number of loaded files that could not be tagged or moved. They are tried again later."""


class FinishArrivalsInput(WireMessage):
    """Input of `finish_arrivals`: tag or move loaded files, as the pipeline states."""

    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    """Batches of the zone. A run may still read their files."""


class FinishArrivalsResult(WireMessage):
    """Result of `finish_arrivals`."""

    finished: int = 0
    """Number of files that were tagged or moved."""
    failed: int = 0
    """Number of files that could not be tagged or moved. They are tried again later."""
    problem: str = ""
    """Reason for the first of these failures."""
    has_more: bool = False


class ListArrivalsInput(LakeQueryMessage):
    """Input of `list_arrivals`: list the files in a landing zone, each with its status."""

    kind: Literal["list_arrivals"] = "list_arrivals"
    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    states: dict[str, BatchState] = Field(default_factory=dict)
    has_room: bool = True
    """True if the zone accepts another batch. A full zone makes no batch of the files that wait."""
    file: str = ""
    """Part of the path; empty means every file."""
    status: FileStatus | None = None
    limit: int = Field(default=100, ge=1, le=5000)


class ArrivalEntry(WireMessage):
    """One file in a landing zone."""

    path: str
    size: int
    arrived_at: float
    """Time when it was first listed, in seconds since 1970."""
    status: FileStatus
    detail: str
    """Its batch, the run that loaded it, or the reason why it waits or is not loaded."""
    copy_of: str = ""  # the file with the same content that was loaded instead
    after: str = ""  # the action after it was loaded (tag, move), or the reason why that is still to be done


class ListArrivalsResult(WireMessage):
    """Files of a landing zone, those that main lacks first, then the latest."""

    files: list[ArrivalEntry]
    counts: dict[str, int]
    """Number of files by status, including files that are not listed."""
    in_batches: dict[str, int] = Field(default_factory=dict)
    """Number of files with the status `in a batch`, by their detail."""
    runs: dict[str, str] = Field(default_factory=dict)
    """Workflow id of the run of each batch of the zone, started or not, by the batch's id."""


class LandingZoneInput(WireMessage):
    """Input of the workflow `LandingZone`, and its state when it continues as new."""

    pipeline: PipelineText
    name: str
    """Name of the pipeline."""
    installation: str
    look: float
    at_once: int
    on_failure: Literal["continue", "pause"]
    in_order: bool = False  # true if rows of a batch replace rows of an earlier one
    keeps_overtaken_out: bool = False  # false in deploys of an earlier release, which replays repeat as they were
    expect: float | None = None
    task_queue: str = ""
    """Task queue that it is deployed for. A workflow on another task queue continues on this one."""
    set_name: str = ""
    """Set that it was deployed with. `deploy` removes items from its own set only."""
    deployed_from: str = ""
    """Folder that was deployed."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Properties that the next `deploy` compares and that people see."""
    batches: list[Batch] = Field(default_factory=list)
    paused: str = ""
    """Reason why no batch is started; empty unless the zone is paused."""
    resumed: str = ""
    """Reason for the latest resume, and the person who did it; empty while the zone is paused."""
    latest_arrival: float | None = None
    silence_reported: bool = False
    since: float | None = None
    """Time when the zone was made, in seconds since 1970."""
    answered: int = 0
    """Number of the latest grant of a run that the zone followed or declined."""
    problem: str = ""
    changes: dict[str, int] = Field(default_factory=dict)
    """Number of successive changes of files during their runs: by the paths of a batch, and for all batches
    together."""
    youngest: BatchRef | None = None  # the loaded batch with the youngest file
    collected_again: list[str] = Field(default_factory=list)
    """Ids of the batches whose files the next listing collects again. No batch starts before that."""
    over_younger: dict[str, str] = Field(default_factory=dict)
    """Digest of the paths (`BatchRef.paths`) of each removed batch whose files may replace younger rows when they are
    collected again, by the id of the batch."""
    reported: list[str] = Field(default_factory=list)
    """Digests of the files that are not loaded and were reported to people."""
    received: str = ""
    """Mark of the latest result of a listing that the zone received."""


class ZoneStatus(WireMessage):
    """Answer to the query `status` of a landing zone."""

    name: str
    pipeline: PipelineText
    batches: list[Batch]
    paused: str
    problem: str
    counts: dict[str, int]
    """Number of files by status at the latest listing."""
    latest_arrival: float | None
    next_look: str
    """Latest time of the next listing, in ISO 8601."""
    unfinished: str = ""
    """Number of loaded files that could not be tagged or moved, and the reason."""
    resumed: str = ""
    """Reason for the latest resume, and the person who did it; empty while the zone is paused."""
    expect: float | None = None
    """Time without a file to load after which people get a message, in seconds."""
    since: float | None = None
    """Time at which the zone began, in seconds since 1970; None if the worker does not state it."""
    in_batches: dict[str, int] = Field(default_factory=dict)
    """Number of files with the status `in a batch`, by their detail."""


class ZoneNotice(WireMessage):
    """Input of `notify_landing_zone`: a message to people about a landing zone."""

    name: str
    text: str


def memo_of(zone: LandingZoneInput) -> dict[str, Any]:
    """Return the memo of a landing zone, which describes its deployment."""
    return {
        "name": zone.name,
        "installation": zone.installation,
        "file": zone.pipeline.name,
        "set": zone.set_name,
        "folder": zone.deployed_from,
        "properties": zone.properties,
    }
