"""The file of people on Slack, which gives the name of the person who pressed a button.

Each person has a line: `U012AB3CD ana`, the id of a member on Slack and the name of the person. A member without a line
cannot decide.
"""

import re

from sluice.approval.decisions import person
from sluice.errors import BadEnvironment

_MEMBER = re.compile(r"[UW][A-Z0-9]{2,30}")


def parse_slack_people(text: str, file: str) -> dict[str, str]:
    """Return the names of people by their ids on Slack.

    Raises:
        BadEnvironment: a line has another form, or an id is listed twice.
    """
    people: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _MEMBER.fullmatch(words[0]) or not person(words[1]):
            raise BadEnvironment(f"{file}:{number}: write the id of a member on Slack and a name, as `U012AB3CD ana`")
        if words[0] in people:
            raise BadEnvironment(f"{file}:{number}: {words[0]} is listed twice: one member is one person")
        people[words[0]] = words[1]
    return people
