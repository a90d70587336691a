"""Roles of people on the page, who has which, and which roles see rows."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

ShowRows = Literal["all", "approvers", "nobody"]
"""People who see rows of a pipeline's runs on the page."""
_STRICTNESS: list[ShowRows] = ["all", "approvers", "nobody"]
EVERYBODY = "*"
"""Name in a list of roles that stands for everybody."""
_ENTRY = re.compile(r"(?P<name>\S(?:.*\S)?)\s*=\s*(?P<role>\S+)")


class Role(IntEnum):
    """Permission of a person on the page. Each role includes those before it."""

    VIEWER = 1
    """Reads."""
    APPROVER = 2
    """Decides about runs that wait."""
    OPERATOR = 3
    """Starts, cancels and changes everything that the page can."""

    @property
    def word(self) -> str:
        """The role in settings and messages."""
        return self.name.lower()


ROLES: Mapping[str, Role] = {role.word: role for role in Role}


@dataclass(frozen=True)
class RoleList:
    """Roles of people, or of the groups that they belong to."""

    roles: Mapping[str, Role]

    def role_of(self, names: Collection[str]) -> Role | None:
        """Return the highest role of a person, or None for a person without a role.

        Names are compared exactly, because two accounts may differ in case alone.

        Args:
            names: the name of the person, or the groups of the person.
        """
        return max((role for name, role in self.roles.items() if name == EVERYBODY or name in names), default=None)


def parse_roles(text: str) -> RoleList:
    """Parse roles written as `platform=operator, data-owners=approver, *=viewer`.

    Raises:
        ValueError: an entry is not valid, or a name occurs twice.
    """
    roles: dict[str, Role] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _ENTRY.fullmatch(entry)
        if match is None or match["role"] not in ROLES:
            raise ValueError(f"{entry[:100]!r} gives no role: write NAME=ROLE, the role one of {', '.join(ROLES)}")
        if match["name"] in roles:
            raise ValueError(f"{match['name'][:100]!r} has two roles: write one")
        roles[match["name"]] = ROLES[match["role"]]
    return RoleList(roles)


def strictest(several: Iterable[ShowRows]) -> ShowRows:
    """Return the value of `show_rows` for rows of several pipelines together: the one that shows them to the fewest."""
    return max(several, key=_STRICTNESS.index, default="all")


def role_refusal(needed: Role, role: Role, action: str) -> str:
    """Return the reason why a role does not permit an action; empty if it does.

    Args:
        action: the action as a verb with its object, `cancel a run`.
    """
    if role >= needed:
        return ""
    sufficient = " or ".join(each.word for each in Role if each >= needed)
    return (
        f"To {action}, you need the role {sufficient}, and you have the role {role.word}. "
        "The administrator of this page gives roles, in SLUICE_PAGE_ROLES."
    )


def rows_refusal(show_rows: ShowRows | None, role: Role) -> str:
    """Return the reason why rows of a run are hidden from a role; empty if they are shown.

    Args:
        show_rows: the key of the run's pipeline; None if the pipeline of the run is not known.
    """
    if show_rows is None:
        return "The rows are hidden: Temporal does not have the pipeline that says who may see them."
    if show_rows == "all" or (show_rows == "approvers" and role >= Role.APPROVER):
        return ""
    says = f"The rows are hidden: the pipeline says `show_rows: {show_rows}`."
    return says if show_rows == "nobody" else f"{says} {role_refusal(Role.APPROVER, role, 'see them')}"
