"""Routes of messages: which messages go to which service."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from ruamel.yaml import YAML

from sluice.base_model import StrictModel
from sluice.durations import STATED, Duration
from sluice.errors import BadEnvironment
from sluice.located_yaml import UNREADABLE
from sluice.notifications.message import EVENTS, SEVERITIES, Message, Severity
from sluice.validation_errors import plain_message

SLACK = "slack"
"""The route to the channel of `SLACK_TOKEN` and `SLACK_CHANNEL`."""
_SCHEME = re.compile(r"([A-Za-z0-9]{1,32})://")
_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_as_list)]


class Route(StrictModel):
    """Messages that go to one service. A message takes a route if it fulfils each key that is stated."""

    to: str = Field(min_length=1)
    """`slack`, or an address of Apprise, such as `mailto://…`, with variables as `${NAME}`."""
    events: Names = Field(default_factory=list)
    pipelines: Names = Field(default_factory=list)
    """Patterns such as `orders-*`. A message without a pipeline does not take the route."""
    tables: Names = Field(default_factory=list)
    """Patterns such as `sales.*`. A message about another table, or about none, does not take the route."""
    severity: Severity = "info"
    """The mildest severity."""
    quiet: Duration | None = None
    """Time during which a message with the same title is not sent again, in seconds."""

    @field_validator("events")
    @classmethod
    def _known_events(cls, events: list[str]) -> list[str]:
        if unknown := [event for event in events if event not in EVENTS]:
            raise ValueError(f"{unknown[0]!r} is not an event. Events are: {', '.join(EVENTS)}")
        return events

    @property
    def service(self) -> str:
        """Name of the service, such as `slack` or `mailto`."""
        return service_name(self.to)

    def takes(self, message: Message) -> bool:
        """Return True if the message goes this way."""
        return (
            (not self.events or message.event in self.events)
            and SEVERITIES.index(message.severity) >= SEVERITIES.index(self.severity)
            and _matches(self.pipelines, [message.pipeline] if message.pipeline else [])
            and _matches(self.tables, message.tables)
        )


DEFAULT = (Route(to=SLACK),)
"""The routes without a file: everything goes to Slack, if it is set up."""


def service_name(to: str) -> str:
    """Return the service of an address without the rest, which may be a secret."""
    scheme = _SCHEME.match(to)
    return scheme[1] if scheme else SLACK if to == SLACK else "…"


def parse_routes(text: str, name: str, environment: Mapping[str, str]) -> tuple[Route, ...]:
    """Return the routes of a file, with the values of its variables.

    Args:
        text: YAML, a list of routes.
        name: the name of the file, for messages.

    Raises:
        BadEnvironment: the file is not a list of routes, or names a variable that is not set.
    """
    try:
        stated = YAML(typ="safe").load(text)
    except UNREADABLE as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        why = getattr(error, "problem", None) or "it cannot be read"
        raise BadEnvironment(f"{name} is not YAML:{line} {why}") from None  # the error may quote a secret
    if not isinstance(stated, list) or not stated:
        raise BadEnvironment(f"{name} must be a list of routes, such as `- {{to: slack, severity: warning}}`")
    return tuple(_parse(number, route, name, environment) for number, route in enumerate(stated, 1))


def _parse(number: int, stated: object, name: str, environment: Mapping[str, str]) -> Route:
    try:
        route = Route.model_validate(stated, context=STATED)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        keys = ", ".join(Route.model_fields)
        message = plain_message(first)
        raise BadEnvironment(f"{name}: route {number}: {where}: {message}. Keys of a route: {keys}") from None
    if missing := [each for each in _VARIABLE.findall(route.to) if not environment.get(each)]:
        raise BadEnvironment(f"{name}: route {number}: the variable {missing[0]} of `to` is not set")
    return route.model_copy(update={"to": _VARIABLE.sub(lambda match: environment[match[1]], route.to)})


def _matches(patterns: list[str], names: list[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
