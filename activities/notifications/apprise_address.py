"""Messages to any service that Apprise knows: e-mail, Teams, PagerDuty, Discord, a webhook and many others."""

import importlib
import logging
from dataclasses import dataclass
from typing import Any

from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.notifications.message import Message
from sluice.notifications.routes import service_name

_INSTALL = ".sluice/uv/bin/uv pip install --python .venv/bin/python --require-hashes -r locks/notifications.txt"
_KINDS = {"info": "info", "warning": "warning", "error": "failure"}
"""By severity, the kind of notification in Apprise."""


@dataclass(frozen=True)
class AppriseNotifier:
    """One address of Apprise."""

    service: Any
    """`apprise.Apprise` with this address."""

    @classmethod
    def open(cls, address: str) -> "AppriseNotifier":
        """Return the notifier of an address, such as `mailto://…`.

        Raises:
            BadEnvironment: Apprise is not installed, or does not know this kind of address.
        """
        try:
            apprise = importlib.import_module("apprise")
        except ImportError:
            raise BadEnvironment(f"a route of messages needs Apprise: {_INSTALL}") from None
        service = apprise.Apprise()
        log = logging.getLogger("apprise")
        disabled, log.disabled = log.disabled, True  # services quote keys that they refuse
        try:
            is_known = service.add(address)
        finally:
            log.disabled = disabled
        if not is_known:
            raise BadEnvironment(f"Apprise does not support addresses of this form: {service_name(address)}://…")
        return cls(service)

    def send(self, message: Message) -> None:
        """Send a message. The port says which errors are raised. Apprise does not say why a message was refused."""
        body = "\n".join([*message.lines, *([message.link] if message.link else [])]) or message.title
        kind = _KINDS[message.severity]
        sent = self.service.notify(title=message.title, body=body, notify_type=kind, body_format="text")
        if not sent:
            name = self.service[0].service_name
            raise ServiceUnavailable(f"{name} did not accept the message; the log of the worker says why")
