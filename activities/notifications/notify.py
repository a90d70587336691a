"""Send messages to people: about runs, landing zones, schedules and registrations."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.notifier import RoutedNotifier
from sluice.contracts.arrivals import ZoneNotice
from sluice.contracts.registration import FailedRegistration
from sluice.contracts.run import Notification
from sluice.contracts.schedules import ScheduleNotice
from sluice.notifications.message import (
    Message,
    message_of_landing_zone,
    message_of_registration,
    message_of_run,
    message_of_schedule,
)


@dataclass(frozen=True)
class NotifyActivities:
    """The activities that send messages. A message that cannot be sent changes nothing about its subject."""

    notifier: RoutedNotifier
    """Without routes, nobody gets a message."""
    runs: str
    """Address of the runs: on the page, or in the Temporal Web UI if there is no page."""

    @activity.defn(name="can_notify")
    def can_notify(self, notification: Notification) -> bool:
        """Return True if a route takes the message about a run."""
        message = self._of_run(notification)
        return any(route.takes(message) for route in self.notifier.routes)

    @activity.defn(name="notify")
    def notify(self, notification: Notification) -> None:
        """Send the message about a run that ended or waits for approval."""
        self._send(self._of_run(notification))

    @activity.defn(name="notify_landing_zone")
    def notify_landing_zone(self, input: ZoneNotice) -> None:
        """Send the message about a landing zone."""
        self._send(message_of_landing_zone(input))

    @activity.defn(name="notify_schedule")
    def notify_schedule(self, input: ScheduleNotice) -> None:
        """Send the message about a schedule."""
        self._send(message_of_schedule(input))

    @activity.defn(name="notify_registration")
    def notify_registration(self, input: FailedRegistration) -> None:
        """Send the message about a registration that failed."""
        self._send(message_of_registration(input))

    def _of_run(self, notification: Notification) -> Message:
        result = notification.result
        return message_of_run(notification, f"{self.runs}/{result.workflow_id}/{result.run_id}")

    def _send(self, message: Message) -> None:
        info = activity.info()
        self.notifier.send(message, f"{info.workflow_run_id}/{info.activity_id}")
