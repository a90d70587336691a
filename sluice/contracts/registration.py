"""Messages of registrations, which send a publication or its tables to targets after the merge."""

import hashlib
from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.table_changes import TableChange
from sluice.pipeline.publish_options import PublishOptions

RegistrationState = Literal["pending", "done", "failed"]
REGISTRATION_WORKFLOW = "RegisterPublication"
"""Name of the workflow of a registration, for clients that do not import the workflow."""
REGISTRATION_QUERY = "registration"
"""Name of its query that returns a `Registration`."""
ENDED_SIGNAL = "registration_ended"
"""Signal that informs a run that one of its registrations ended."""


class Registration(WireMessage):
    """State of a registration of a publication: at one target, and of one table if the target contains tables."""

    target: str
    state: RegistrationState = "pending"
    table: str = ""
    """Table to register; empty if the target gets the publication as a whole."""
    reason: str = ""
    """Action that was taken, or the reason why none was."""
    workflow_id: str = ""
    """Workflow that performs the registration."""


class PublicationEvent(WireMessage):
    """Publication of a run, as sent to targets."""

    run_id: str
    workflow_id: str
    pipeline: str
    published_at: str
    """Time when the run learnt that it is published, in ISO 8601."""
    main_before: str = ""
    main_after: str = ""
    audited_hash: str = ""
    publish: PublishOptions = PublishOptions()
    """Message and metadata of the merge commit, besides its certificate; an empty message means the default one."""
    tables: dict[str, TableChange] = Field(default_factory=dict)


class StartRegistrationsInput(WireMessage):
    """Input of `start_registrations`: start the registrations of a publication."""

    event: PublicationEvent
    targets: list[str] = Field(default_factory=list)
    """Targets that the pipeline names. The installation may add others."""


class RegisterInput(WireMessage):
    """Input of the workflow `RegisterPublication` and of its activity: one registration."""

    target: str
    table: str = ""
    """Table to register at the target in its state on main; empty for an event."""
    event: PublicationEvent | None = None
    """Publication to send to the target; None for a table."""
    patience: float = 24 * 3600.0
    """Duration of the retries, in seconds."""
    deadline: float = 0.0
    """End of the retries, in seconds since 1970, if the workflow continues an earlier one; otherwise 0."""
    waiting: list["WaitingRun"] = Field(default_factory=list)
    """Runs that wait for the registration, if the workflow continues an earlier one."""


class WaitingRun(WireMessage):
    """A run that waits for the end of a registration; its ids are empty if no run made the request."""

    workflow_id: str = ""
    run_id: str = ""


class CheckRegistrationsInput(WireMessage):
    """Input of `check_registrations`: find tables of targets that are behind main."""

    history: float = 366 * 86400.0
    """Period of merge commits to read, in seconds. They show which tables pipelines registered."""


class CheckedRegistrations(WireMessage):
    """State of the tables of targets, compared with main."""

    checked: int = 0
    behind: int = 0
    started: list[str] = Field(default_factory=list)
    """Target and table of some of the started registrations."""
    problems: dict[str, str] = Field(default_factory=dict)
    """Reason why something could not be checked, by target, or by target and table."""


class FailedRegistration(WireMessage):
    """Input of `notify_registration`: a registration failed for good."""

    registration: Registration
    pipeline: str = ""
    """Pipeline of the publication; empty for a table of a target, because several pipelines may write it."""
    tables: list[str] = Field(default_factory=list)
    """The table, or the tables of the publication."""


def table_registration_id(installation: str, target: str, table: str) -> str:
    """Return the workflow id shared by all registrations of a table at a target. They run one after the other."""
    return f"sluice-registration-{installation}-{target}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"


def event_registration_id(installation: str, target: str, run_id: str) -> str:
    """Return the id of the workflow that sends one publication to one target, once."""
    return f"sluice-registration-{installation}-{target}-event-{run_id}"
