"""Messages on Slack."""

from dataclasses import dataclass

from runtime.approval.shown_report import report_name, shown_report
from runtime.notifications.slack import SlackApi
from sluice.notifications.message import Message
from sluice.notifications.slack import slack_blocks, slack_text
from sluice.setting_groups import NotificationSettings


@dataclass(frozen=True)
class SlackNotifier:
    """The channel of `SLACK_TOKEN` and `SLACK_CHANNEL`."""

    settings: NotificationSettings

    def send(self, message: Message) -> None:
        """Post a message. The port says which errors are raised."""
        blocks = slack_blocks(message, self._report(message))
        layout = {"blocks": blocks} if blocks else {"mrkdwn": False}
        text = slack_text(message)
        SlackApi(self.settings).call("chat.postMessage", channel=self.settings.slack_channel, text=text, **layout)

    def _report(self, message: Message) -> str:
        """Return the name of the report that the buttons of a message decide about; empty if it has no buttons."""
        if not self.settings.slack_signing_secret or message.run is None:
            return ""
        return report_name(shown_report(message.run.result))
