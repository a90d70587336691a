"""Send one publication to one target, or point one table of a target at main's current version."""

import os
from dataclasses import dataclass

from temporalio import activity

from lakehouse.targets.command import run_command
from lakehouse.targets.mirror import MirrorWriter
from lakehouse.targets.open_mirror import open_mirror
from lakehouse.targets.webhook import send_event
from sluice.contracts.registration import RegisterInput
from sluice.errors import RegistrationRefused
from sluice.registration.target_kinds import CommandTarget, TableTarget, WebhookTarget
from sluice.registration.targets import Targets


@dataclass(frozen=True)
class RegisterPublicationActivity:
    """The activity `register_publication`. Needs the installation's targets, its id, and the mirror writer."""

    targets: Targets
    installation: str
    mirrors: MirrorWriter

    @activity.defn(name="register_publication")
    def register_publication(self, input: RegisterInput) -> str:
        """Register once; return a one-line summary. A repeat does the same, and an event keeps its id."""
        target = self.targets.targets.get(input.target)
        if isinstance(target, WebhookTarget) and input.event:
            return send_event(target, input.event, self.installation, os.environ)
        if isinstance(target, CommandTarget) and input.event:
            return run_command(target, input.event, self.installation, os.environ)
        if isinstance(target, TableTarget) and input.table:
            return self.mirrors.bring_to_main(target, open_mirror(target), input.table)
        raise RegistrationRefused(
            f"the installation no longer has a target {input.target!r} of this kind: add it to the file that "
            "SLUICE_TARGETS_FILE names"
        )
