"""The parts that Sluice uses of Slack's interactive requests. Source: Slack's reference of interaction payloads."""

from pydantic import Field

from sluice.base_model import WireMessage


class SlackMember(WireMessage):
    """A member of a workspace."""

    id: str


class SlackAction(WireMessage):
    """A button that was pressed."""

    action_id: str
    value: str = ""


class SlackContainer(WireMessage):
    """The message with the buttons."""

    message_ts: str = ""
    channel_id: str = ""


class SlackInput(WireMessage):
    """A field of a form that was sent."""

    value: str | None = None


class SlackState(WireMessage):
    """The fields of a form, by block and action."""

    values: dict[str, dict[str, SlackInput]] = Field(default_factory=dict)


class SlackView(WireMessage):
    """A form that was sent."""

    callback_id: str = ""
    private_metadata: str = ""
    state: SlackState = SlackState()


class SlackPayload(WireMessage):
    """One interactive request."""

    type: str
    user: SlackMember
    trigger_id: str = ""
    container: SlackContainer = SlackContainer()
    actions: list[SlackAction] = Field(default_factory=list)
    view: SlackView = SlackView()
