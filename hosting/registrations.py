"""The activities that tell targets what was published."""

from activities.notifications.notify_registration import NotifyRegistrationActivity
from activities.registration.check_registrations import CheckRegistrationsActivity
from activities.registration.register_publication import RegisterPublicationActivity
from hosting.shared import Activity, Shared
from lakehouse.targets.mirror import MirrorWriter


def registration_activities(shared: Shared) -> list[Activity]:
    """Return those that tell targets of publications, and compare them with main."""
    mirrors = MirrorWriter(shared.catalog, shared.io)
    return [
        shared.registrations.start_registrations,
        CheckRegistrationsActivity(shared.catalog, mirrors, shared.registrations).check_registrations,
        RegisterPublicationActivity(shared.targets, shared.installation, mirrors).register_publication,
        NotifyRegistrationActivity(shared.settings).notify_registration,
    ]
