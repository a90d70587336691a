"""The examination of an installation by `doctor`: what was looked at, how it is, and what to do about it."""

from typing import Literal

from pydantic import Field, field_validator

from sluice.base_model import Model
from sluice.redaction import redacted

_MAX_DETAIL = 500
FindingState = Literal["ok", "off", "warning", "failed"]
"""`off` is what is not set up, and need not be."""


class Finding(Model):
    """How one part of an installation is."""

    part: str
    state: FindingState
    detail: str
    """Without what looks like a secret, such as a password in an address."""
    remedy: str = ""
    """What to do where it is not well."""

    @field_validator("detail")
    @classmethod
    def _redacted(cls, detail: str) -> str:
        return redacted(detail)[:_MAX_DETAIL]


def failed(part: str, detail: str, remedy: str = "") -> Finding:
    """Return a finding of a part that is not well."""
    return Finding(part=part, state="failed", detail=detail, remedy=remedy)


class ExamineInstallationInput(Model):
    """What `examine_installation` looks at: what a worker needs beside Spark."""

    kind: Literal["examine_installation"] = "examine_installation"


class ExamineSparkInput(Model):
    """What `examine_spark` looks at: what a worker needs to run Spark."""

    kind: Literal["examine_spark"] = "examine_spark"


class Examination(Model):
    """What a worker says of itself and of the services that it uses."""

    findings: list[Finding] = Field(default_factory=list)
