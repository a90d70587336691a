"""Which approval a run needs, by what its pipeline asks for, what a worker demands, and who started it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import Field

from sluice.base_model import Model
from sluice.errors import BadEnvironment
from sluice.pipeline.model import Approval

_RULE = re.compile(r"(?P<pattern>[\w.*?-]+)(?:=(?P<required>[1-9]\d?))?", re.ASCII)

_SHOWN_TABLES = 5


class StartStatement(Model):
    """What is signed of the start of a run: which run it is, by what it does and not by its name alone."""

    workflow_id: str = ""
    pipeline_digest: str = ""
    input_digest: str = ""
    continues: str = ""
    """The digest of the rows or versions that a release or roll-back begins with; empty for other runs."""


class SignedStart(Model):
    """The signature of a person on the start of a run."""

    at: str
    """When it was signed, in ISO 8601."""
    signature: str


class ApprovalTerms(Model):
    """What a run says of its approval and of its start. None of it is trusted before it is verified."""

    approval: Approval | None = None
    """What its pipeline asks for."""
    starter: str = ""
    """Who started it, as the request says."""
    start: StartStatement = Field(default_factory=StartStatement)
    signed_start: SignedStart | None = None
    started_at: str = ""
    """When the workflow started, in ISO 8601."""


class RequiredApproval(Model):
    """The approval that a run needs before its merge."""

    required: int = 0
    """How many different people; 0 means that no approval is needed."""
    starter: str = ""
    """Who may not be one of them, where four eyes are asked for."""
    signed: bool = False
    """Whether approvers have keys, so that decisions are signed."""
    timeout: float = 24 * 3600.0
    """How long they have, in seconds."""
    why: str = ""
    """Why so many, where the pipeline alone does not say it."""


@dataclass(frozen=True)
class ApprovalRule:
    """Tables for which a worker demands approval whatever a pipeline says, and by how many people."""

    pattern: str
    required: int

    def matches(self, table: str) -> bool:
        """Return whether a table is one of them. Case makes no difference, and `*` stands for dots too."""
        return fnmatchcase(table.casefold(), self.pattern.casefold())


def parse_approval_rules(text: str) -> list[ApprovalRule]:
    """Return the rules of SLUICE_REQUIRE_APPROVAL: `finance.*=2, nyc.flights`.

    Raises:
        BadEnvironment: a part is something else.
    """
    rules = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _RULE.fullmatch(part)
        if match is None:
            raise BadEnvironment(
                f"SLUICE_REQUIRE_APPROVAL: {part!r} is not a pattern of tables: write `namespace.*`, or "
                "`namespace.table=2` for the approval of two people, separated by commas"
            )
        rules.append(ApprovalRule(match["pattern"], int(match["required"] or 1)))
    return rules


def required_approval(
    terms: ApprovalTerms,
    rules: Sequence[ApprovalRule],
    changed: Collection[str],
    *,
    signed: bool,
    verified_starter: str,
    at_least: int = 0,
) -> RequiredApproval:
    """Decide which approval a run needs.

    Four eyes, asked for by the pipeline or implied by a demand of the worker: where approvers have keys, the starter is
    who signed the start. A start that nobody signed may be any approver's, so that one more approval is needed, and
    nobody is excluded: enough people approved beside the starter in any case.

    Args:
        changed: the tables that the run really changed.
        signed: whether approvers have keys.
        verified_starter: the listed name of who signed the start, or "".
        at_least: so many people are needed whatever pipeline and worker ask for, as to waive a check.
    """
    approval = terms.approval
    demands: dict[str, int] = {}
    for table in sorted(changed):
        if matching := [rule.required for rule in rules if rule.matches(table)]:
            demands[table] = max(matching)
    asked, demanded = approval.required if approval else 0, max(demands.values(), default=0)
    required, four_eyes = max(asked, demanded, at_least), bool(demanded) or bool(approval and approval.four_eyes)
    if not required:
        return RequiredApproval()
    more = f" and {len(demands) - _SHOWN_TABLES} more" if len(demands) > _SHOWN_TABLES else ""
    why = [f"the worker demands it for {', '.join(list(demands)[:_SHOWN_TABLES])}{more}"] if demanded else []
    starter = ""
    if four_eyes and not signed:
        starter = terms.starter
    elif four_eyes and verified_starter:
        starter = verified_starter
    elif four_eyes:
        required += 1
        why.append("one more because nobody listed signed the start: set SLUICE_APPROVAL_KEY_FILE when starting")
    timeout = approval.timeout if approval else RequiredApproval().timeout
    return RequiredApproval(required=required, starter=starter, signed=signed, timeout=timeout, why="; ".join(why))
