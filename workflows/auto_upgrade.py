"""Host the workflows without an end on versioned workers: they go on with the current version of these.

Other workflows stay with the version that they began with. A worker without a version must not state this, so these
are classes of their own.
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
    """A landing zone on versioned workers."""

    @workflow.init
    def __init__(self, input: LandingZoneInput) -> None:
        super().__init__(input)

    @workflow.run
    async def run(self, input: LandingZoneInput) -> None:
        """Do what the landing zone does."""
        await super().run(input)


@workflow.defn(name="ArrivalRuns", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class AutoUpgradeArrivalRuns(ArrivalRuns):
    """The slots for runs of landing zones on versioned workers."""

    @workflow.init
    def __init__(self, state: RunSlotsState) -> None:
        super().__init__(state)

    @workflow.run
    async def run(self, state: RunSlotsState) -> None:
        """Do what the slots do."""
        await super().run(state)


AUTO_UPGRADE: dict[type, type] = {LandingZone: AutoUpgradeLandingZone, ArrivalRuns: AutoUpgradeArrivalRuns}
"""What a versioned worker hosts instead of a workflow."""
