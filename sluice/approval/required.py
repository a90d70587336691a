"""The approval that a run needs, from its pipeline, the rules of a worker, and the person who started it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.errors import BadEnvironment
from sluice.pipeline.model import Approval
from sluice.sizes import format_list

_RULE = re.compile(r"(?P<pattern>[\w.*?-]+)(?:=(?P<required>[1-9]\d?))?", re.ASCII)

_SHOWN_TABLES = 5


class StartStatement(WireMessage):
    """The fields of a run's start that a person signs. They identify a run by its work, not by its name alone."""

    workflow_id: str = ""
    pipeline_digest: str = ""
    input_digest: str = ""
    continues: str = ""
    """Digest of the rows or versions that a release or roll-back begins with; empty for other runs."""


class SignedStart(WireMessage):
    """A person's signature on the start of a run."""

    at: str
    """Time of the signature, in ISO 8601."""
    signature: str


class ApprovalTerms(WireMessage):
    """Statements of a run about its approval and its start. The worker verifies them before it relies on them."""

    approval: Approval | None = None
    """The approval that its pipeline requires."""
    starter: str = ""
    """The person who started it, according to its request."""
    start: StartStatement = Field(default_factory=StartStatement)
    signed_start: SignedStart | None = None
    started_at: str = ""
    """Start time of the workflow, in ISO 8601."""


class RequiredApproval(WireMessage):
    """The approval that a run needs before its merge."""

    required: int = 0
    """Number of different people who must approve; 0 if no approval is needed."""
    starter: str = ""
    """The person who started the run and may not decide about it, if four eyes are required."""
    signed: bool = False
    """True if approvers have keys, so that decisions are signed."""
    timeout: float = 24 * 3600.0
    """Time to decide, in seconds."""
    why: str = ""
    """Reason for the required number, if the pipeline alone does not explain it."""


@dataclass(frozen=True)
class ApprovalRule:
    """A pattern of tables for which a worker requires approval, with the number of people.

    The rule applies regardless of the pipeline.
    """

    pattern: str
    required: int

    def matches(self, table: str) -> bool:
        """Return True if a table matches the pattern. Case makes no difference, and `*` matches dots, too."""
        return fnmatchcase(table.casefold(), self.pattern.casefold())


def parse_approval_rules(text: str) -> list[ApprovalRule]:
    """Parse the rules of SLUICE_REQUIRE_APPROVAL, such as `finance.*=2, nyc.flights`.

    Raises:
        BadEnvironment: a part has another form.
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
    """Return the approval that a run needs.

    The pipeline can require four eyes; a demand of the worker always does. The starter may then not approve. If
    approvers have keys, the starter is the person who signed the start. If no listed person signed it, any approver may
    have started the run: nobody is excluded, and one more approval is needed. So enough people other than the starter
    approve in any case.

    Args:
        changed: the tables that the run really changed.
        signed: True if approvers have keys.
        verified_starter: the listed name of the person who signed the start, or "".
        at_least: minimum number of people in any case. Waiving a check needs one.
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
    why = [f"the worker demands it for {format_list([*demands], _SHOWN_TABLES)}"] if demanded else []
    starter = ""
    if four_eyes and not signed:
        starter = terms.starter
    elif four_eyes and verified_starter:
        starter = verified_starter
    elif four_eyes:
        required += 1
        why.append("one more because no listed person signed the start: set SLUICE_APPROVAL_KEY_FILE when starting")
    timeout = approval.timeout if approval else RequiredApproval().timeout
    return RequiredApproval(required=required, starter=starter, signed=signed, timeout=timeout, why="; ".join(why))
