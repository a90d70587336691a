"""Classes of the endless workflows for versioned workers. They always continue on the current worker version.

Other workflows stay on the version that they began with. A worker without a version must not declare a versioning
behavior, so it uses the base classes.
"""

from temporalio import workflow
from temporalio.common import VersioningBehavior

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.arrival_runs import RunSlotsState
    from sluice.contracts.arrivals import LandingZoneInput
    from workflows.arrivals.arrival_runs import ArrivalRuns
    from workflows.arrivals.landing_zone import LandingZone


@workflow.defn(name="LandingZone", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class AutoUpgradeLandingZone(LandingZone):
    """The workflow of a landing zone on versioned workers."""

    @workflow.init
    def __init__(self, input: LandingZoneInput) -> None:
        super().__init__(input)

    @workflow.run
    async def run(self, input: LandingZoneInput) -> None:
        """Run the landing zone."""
        await super().run(input)


@workflow.defn(name="ArrivalRuns", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class AutoUpgradeArrivalRuns(ArrivalRuns):
    """The workflow of the slots for runs of landing zones, on versioned workers."""

    @workflow.init
    def __init__(self, state: RunSlotsState) -> None:
        super().__init__(state)

    @workflow.run
    async def run(self, state: RunSlotsState) -> None:
        """Grant the slots."""
        await super().run(state)


AUTO_UPGRADE: dict[type, type] = {LandingZone: AutoUpgradeLandingZone, ArrivalRuns: AutoUpgradeArrivalRuns}
"""By workflow class, the class that a versioned worker hosts instead."""
