"""Messages of registrations: what a run publishes is told to targets, or brought to them, after its merge."""

import hashlib
from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.write import TableChange
from sluice.pipeline.publish_options import PublishOptions

RegistrationState = Literal["pending", "done", "failed"]
ENDED_SIGNAL = "registration_ended"
"""The signal by which a run learns that one of its registrations ended."""


class Registration(Model):
    """How one registration of a publication stands: at one target, and of one table where the target holds tables."""

    target: str
    state: RegistrationState = "pending"
    table: str = ""
    """The table; empty where the target is told of the publication as a whole."""
    reason: str = ""
    """What was done, or why it is not done."""
    workflow_id: str = ""
    """The workflow that carries it out."""


class PublicationEvent(Model):
    """What a run published, as targets are told."""

    run_id: str
    workflow_id: str
    pipeline: str
    published_at: str
    """When the run learnt that it is published, in ISO 8601."""
    main_before: str = ""
    main_after: str = ""
    audited_hash: str = ""
    publish: PublishOptions = PublishOptions()
    """What the merge commit says beside its certificate; an empty message means the default one."""
    tables: dict[str, TableChange] = Field(default_factory=dict)


class StartRegistrationsInput(Model):
    """Input of `start_registrations`: start the registrations of a publication."""

    event: PublicationEvent
    targets: list[str] = Field(default_factory=list)
    """The targets that the pipeline names; the installation may add others."""


class RegisterInput(Model):
    """Input of the workflow `RegisterPublication` and of its activity: one registration."""

    target: str
    table: str = ""
    """The table to bring to the target as main holds it; empty for an event."""
    event: PublicationEvent | None = None
    """What the target is told; None for a table."""
    patience: float = 24 * 3600.0
    """How long it is retried, in seconds."""
    deadline: float = 0.0
    """When the retries end, in seconds since 1970, where the workflow continues an earlier one; else 0."""
    waiting: list["WaitingRun"] = Field(default_factory=list)
    """The runs that wait for it, where the workflow continues an earlier one."""


class WaitingRun(Model):
    """A run that is told how a registration ended; empty ids for a request that no run made."""

    workflow_id: str = ""
    run_id: str = ""


class CheckRegistrationsInput(Model):
    """Input of `check_registrations`: look for tables of targets that are behind main."""

    history: float = 366 * 86400.0
    """Seconds: what pipelines registered is known from their merge commits of this time."""


class CheckedRegistrations(Model):
    """How the tables of targets stand, beside main."""

    checked: int = 0
    behind: int = 0
    started: list[str] = Field(default_factory=list)
    """Target and table of registrations that were started, some of them."""
    problems: dict[str, str] = Field(default_factory=dict)
    """What could not be looked at, and why: by target, or by target and table."""


class FailedRegistration(Model):
    """Input of `notify_registration`: a registration failed for good."""

    registration: Registration
    pipeline: str = ""
    """The pipeline whose publication it was, where that is one."""


def table_registration_id(installation: str, target: str, table: str) -> str:
    """Return the workflow id of all registrations of one table at one target: they follow each other."""
    return f"sluice-registration-{installation}-{target}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"


def event_registration_id(installation: str, target: str, run_id: str) -> str:
    """Return the workflow id by which one target is told of one publication, once."""
    return f"sluice-registration-{installation}-{target}-event-{run_id}"
