"""Decide which landing zone may start a run next: so many at a time over all of them, the oldest batch first."""

from collections.abc import Collection

from sluice.contracts.arrival_runs import OpenGrant, RunGrant, RunSlotsState, WantedRun, ZoneRuns

_ANSWER_LIMIT = 600.0
"""Seconds after which a grant without an answer is given to another landing zone."""


class RunSlots:
    """The slots of an installation: what landing zones report, and what was granted since."""

    def __init__(self, state: RunSlotsState) -> None:
        self._limit, self._latest = state.limit, state.latest
        self._zones = {zone.zone: zone for zone in state.zones}
        self._grants = {each.grant.number: each for each in state.grants}

    @property
    def state(self) -> RunSlotsState:
        """What another one continues with."""
        zones, grants = list(self._zones.values()), list(self._grants.values())
        return RunSlotsState(limit=self._limit, zones=zones, grants=grants, latest=self._latest)

    @property
    def is_empty(self) -> bool:
        """Whether nothing runs, and nobody wants a run."""
        return not self._zones and not self._grants

    @property
    def is_short(self) -> bool:
        """Whether a batch waits for a slot."""
        return any(self._waiting(zone) for zone in self._zones.values())

    @property
    def running(self) -> list[str]:
        """The workflow ids that have a slot, as landing zones reported them."""
        return [id for zone in self._zones.values() for id in zone.running]

    @property
    def ids_to_check(self) -> list[str]:
        """The workflow ids to ask about: landing zones first, since one that has ended starts nothing after that."""
        grants = self._grants.values()
        return [*{each.zone: None for each in grants}, *(each.run for each in grants), *self.running]

    def report(self, zone: ZoneRuns, limit: int) -> None:
        """Take what a landing zone runs and wants now. Its answers give slots back, or keep them as running ones."""
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
        """Forget what a landing zone wants that is not there any more. What it started goes on, with its slots."""
        zone = self._zones.pop(zone_id, None)
        if zone and zone.running:
            self._zones[zone_id] = zone.model_copy(update={"wanted": []})
        self._remove_grants([each for each in self._grants.values() if each.zone == zone_id])

    def check(self, ended: Collection[str], now: float) -> None:
        """Take slots back from what has ended, and from landing zones that do not answer, until they report again.

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
