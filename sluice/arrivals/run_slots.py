"""Decide which landing zone may start a run next, oldest batch first, within a limit for all zones together."""

from collections.abc import Collection

from sluice.contracts.arrival_runs import OpenGrant, RunGrant, RunSlotsState, WantedRun, ZoneRuns

_ANSWER_LIMIT = 600.0
"""Time without an answer after which a grant goes to another landing zone, in seconds."""


class RunSlots:
    """Slots of an installation: the reports of landing zones, and the grants since."""

    def __init__(self, state: RunSlotsState) -> None:
        self._limit, self._latest = state.limit, state.latest
        self._zones = {zone.zone: zone for zone in state.zones}
        self._grants = {each.grant.number: each for each in state.grants}

    @property
    def state(self) -> RunSlotsState:
        """State from which another instance continues."""
        zones, grants = list(self._zones.values()), list(self._grants.values())
        return RunSlotsState(limit=self._limit, zones=zones, grants=grants, latest=self._latest)

    @property
    def is_empty(self) -> bool:
        """True if nothing runs and no landing zone wants a run."""
        return not self._zones and not self._grants

    @property
    def is_short(self) -> bool:
        """True if a batch waits for a slot."""
        return any(self._waiting(zone) for zone in self._zones.values())

    @property
    def running(self) -> list[str]:
        """Workflow ids that have a slot, as landing zones reported them."""
        return [id for zone in self._zones.values() for id in zone.running]

    @property
    def ids_to_check(self) -> list[str]:
        """Workflow ids to check. Landing zones come first, since a zone that has ended starts nothing after that."""
        grants = self._grants.values()
        return [*{each.zone: None for each in grants}, *(each.run for each in grants), *self.running]

    def report(self, zone: ZoneRuns, limit: int) -> None:
        """Record the report of a landing zone, which replaces its earlier one.

        An answered grant gives its slot back, unless the zone reports its run as running.
        """
        known = self._zones.get(zone.zone)
        if known and zone.at < known.at:
            return
        self._limit = limit
        self._zones.pop(zone.zone, None)
        if not zone.is_empty:
            self._zones[zone.zone] = zone
        self._remove_grants(
            [each for each in self._grants.values() if each.zone == zone.zone and each.grant.number <= zone.answered]
        )

    def next(self, now: float) -> OpenGrant | None:
        """Grant a slot for the oldest batch that waits, if one is free."""
        if len(self.running) + len(self._grants) >= self._limit:
            return None
        waiting = [
            (run.since, zone.zone, run.batch, run.run) for zone in self._zones.values() for run in self._waiting(zone)
        ]
        if not waiting:
            return None
        _, zone_id, batch, run_id = min(waiting)
        self._latest = max(self._latest + 1, int(now * 1000))
        granted = OpenGrant(zone=zone_id, grant=RunGrant(number=self._latest, batch=batch), run=run_id, at=now)
        self._grants[self._latest] = granted
        return granted

    def zone_ended(self, zone_id: str) -> None:
        """Forget the wanted runs of a landing zone that no longer exists. The runs that it started keep their slots."""
        zone = self._zones.pop(zone_id, None)
        if zone and zone.running:
            self._zones[zone_id] = zone.model_copy(update={"wanted": []})
        self._remove_grants([each for each in self._grants.values() if each.zone == zone_id])

    def check(self, ended: Collection[str], now: float) -> None:
        """Free the slots of workflows that ended, and of grants that landing zones do not answer.

        A zone that does not answer gets no further slot until it reports again. If the granted run was started
        nevertheless, it keeps its slot.

        Args:
            ended: those of `ids_to_check` that do not run.
        """
        for each in list(self._grants.values()):
            if each.zone in ended or each.at + _ANSWER_LIMIT <= now:
                zone = self._zones.get(each.zone) or ZoneRuns(zone=each.zone, at=each.at, answered=0)
                self._zones[each.zone] = zone.model_copy(update={"running": [*zone.running, each.run], "wanted": []})
                self._remove_grants([each])
        for zone in list(self._zones.values()):
            left = zone.model_copy(update={"running": [id for id in zone.running if id not in ended]})
            if left.is_empty:
                del self._zones[zone.zone]
            else:
                self._zones[zone.zone] = left

    def _waiting(self, zone: ZoneRuns) -> list[WantedRun]:
        granted = {each.grant.batch for each in self._grants.values() if each.zone == zone.zone}
        return [run for run in zone.wanted if run.batch not in granted]

    def _remove_grants(self, grants: Collection[OpenGrant]) -> None:
        for each in grants:
            del self._grants[each.grant.number]
