"""Open the services of the routes of an installation."""

from pathlib import Path

from activities.notifications.apprise_address import AppriseNotifier
from activities.notifications.notifier import Notifier, RoutedNotifier
from activities.notifications.slack import SlackNotifier
from sluice.environment_files import read_environment
from sluice.errors import BadEnvironment
from sluice.notifications.routes import DEFAULT, SLACK, Route, parse_routes
from sluice.setting_groups import NotificationSettings


def open_notifier(settings: NotificationSettings) -> RoutedNotifier:
    """Return the notifier of an installation. It opens a service when its first message is sent.

    Raises:
        BadEnvironment: the file of routes cannot be read, or is not valid.
    """

    def open_service(to: str) -> Notifier:
        return SlackNotifier(settings) if to == SLACK else AppriseNotifier.open(to)

    return RoutedNotifier(read_routes(settings), open_service)


def read_routes(settings: NotificationSettings) -> tuple[Route, ...]:
    """Return the routes of an installation, those to Slack only if it is set up.

    Raises:
        BadEnvironment: the file of routes cannot be read, or is not valid.
    """
    routes: tuple[Route, ...] = DEFAULT
    if file := settings.sluice_notifications_file:
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise BadEnvironment(f"SLUICE_NOTIFICATIONS_FILE={file}: {why}") from None
        routes = parse_routes(text, f"SLUICE_NOTIFICATIONS_FILE={file}", read_environment())
    is_set_up = bool(settings.slack_token and settings.slack_channel)
    return tuple(route for route in routes if route.to != SLACK or is_set_up)
