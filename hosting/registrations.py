"""The activities that register publications with targets."""

from activities.registration.check_registrations import CheckRegistrationsActivity
from activities.registration.register_publication import RegisterPublicationActivity
from hosting.shared import Activity, Shared
from lakehouse.targets.mirror import MirrorWriter


def registration_activities(shared: Shared) -> list[Activity]:
    """Return the activities that register publications with targets, and compare targets with main."""
    mirrors = MirrorWriter(shared.catalog, shared.io)
    return [
        shared.registrations.start_registrations,
        CheckRegistrationsActivity(shared.catalog, mirrors, shared.registrations).check_registrations,
        RegisterPublicationActivity(shared.targets, shared.installation, mirrors).register_publication,
        shared.notify.notify_registration,
    ]
