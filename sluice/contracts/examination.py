"""Messages of `doctor`, which examines an installation: findings with their states and remedies."""

from typing import Literal

from pydantic import Field, field_validator

from sluice.base_model import WireMessage
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.redaction import redacted

_MAX_DETAIL = 500
FindingState = Literal["ok", "off", "warning", "failed"]
"""State of a part. `off` means that it is not set up and need not be."""


class Finding(WireMessage):
    """Finding about one part of an installation."""

    part: str
    state: FindingState
    detail: str
    """Description without anything that looks like a secret, such as a password in an address."""
    remedy: str = ""
    """Action that corrects the problem, if there is one."""

    @field_validator("detail")
    @classmethod
    def _redacted(cls, detail: str) -> str:
        return redacted(detail)[:_MAX_DETAIL]


def failed(part: str, detail: str, remedy: str = "") -> Finding:
    """Return a finding with the state `failed`."""
    return Finding(part=part, state="failed", detail=detail, remedy=remedy)


class ExamineInstallationInput(LakeQueryMessage):
    """Input of `examine_installation`: check everything that a worker needs except Spark."""

    kind: Literal["examine_installation"] = "examine_installation"


class ExamineSparkInput(LakeQueryMessage):
    """Input of `examine_spark`: check everything that a worker needs to run Spark."""

    kind: Literal["examine_spark"] = "examine_spark"


class Examination(WireMessage):
    """Findings of a worker about itself and the services that it uses."""

    findings: list[Finding] = Field(default_factory=list)
