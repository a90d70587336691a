"""Plan the load of landing zone files named by a person, by the rules of the zone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lakehouse.arrivals.file_loads import FileLoads
from lakehouse.arrivals.held_files import HeldFiles, wanted
from lakehouse.arrivals.identify_arrived import identify_arrived
from lakehouse.arrivals.zone_files import RememberedFile
from lakehouse.source_files import OnProgress
from sluice.arrivals.batching import WaitingFile
from sluice.arrivals.judging import LOADED_BEFORE, describe_overwritten
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.arrivals import ArrivedFile
from sluice.contracts.zone_loads import PlannedFile
from sluice.input.selection import describe_overtaken, describe_partly
from sluice.pipeline.arrival import Arrival
from sluice.pipeline.source import Source

_NOT_LISTED = "it is not in the landing zone, or its name begins with _ or ."
_OVERWRITTEN = "overwritten: "


@dataclass(frozen=True)
class _Reason:
    """The reason that a loadable file was not loaded yet."""

    text: str
    was_rolled_back: bool = False
    may_be_older: bool = False


class NamedLoad:
    """Rules for named files: a person may load rolled-back or overwritten files, but no incomplete ones."""

    def __init__(self, source: Source, arrival: Arrival, loads: FileLoads, held: HeldFiles, now: float) -> None:
        self._source, self._arrival, self._loads, self._held, self._now = source, arrival, loads, held, now

    def plan(
        self,
        paths: Sequence[str],
        known: Callable[[Sequence[str]], Mapping[str, RememberedFile]],
        identify: Callable[[WaitingFile], str],
        copies: Mapping[str, Sequence[str]],
        on_progress: OnProgress,
    ) -> tuple[list[PlannedFile], list[ArrivedFile]]:
        """Return the plan for each path, and the files that can be loaded.

        Args:
            paths: the named files.
            known, identify: as in `FileLoads.with_sent_again`, after a listing.
            copies: identities of the content that paths had as copies of loaded files, by path.
        """
        listed = known(paths)
        problems = {path: self._problem(listed.get(path)) for path in dict.fromkeys(paths)}
        settled = [listed[path].waiting for path, problem in problems.items() if not problem]
        identified, refused = identify_arrived(self._source, settled, on_progress)
        identified = self._loads.with_sent_again(identified, known, identify, self._arrival.settle)
        problems |= {each.path: each.reason for each in refused}
        by_path = {file.path: file for file in identified}
        reasons: dict[str, _Reason] = {}
        if identified:
            reasons, more = self._judge(identified, copies)
            problems |= more
        chosen = {by_path[path].identity: by_path[path] for path in reversed([*reasons])}
        planned = []
        for path, problem in problems.items():
            reason = reasons.get(path) or _Reason(problem or "it is still changing: try again later")
            planned.append(
                PlannedFile(
                    path=path,
                    size=listed[path].size if path in listed else 0,
                    is_loadable=path in reasons,
                    reason=reason.text,
                    was_rolled_back=reason.was_rolled_back,
                    may_be_older=reason.may_be_older,
                )
            )
        return planned, [*chosen.values()][::-1]

    def _problem(self, file: RememberedFile | None) -> str:
        """Return why a file cannot be loaded, as far as that is known without reading it."""
        if file is None:
            return _NOT_LISTED
        if file.status in ("ignored", "refused") and not file.detail.startswith((_OVERWRITTEN, LOADED_BEFORE)):
            return file.detail
        remaining = file.changed_at + self._arrival.settle - self._now
        return f"it settles for {remaining:.0f} s more: try again after that" if remaining > 0 else ""

    def _judge(
        self, files: Sequence[ArrivedFile], copies: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, _Reason], dict[str, str]]:
        """Return, by path, why loadable files were not loaded yet, and why other files cannot be loaded."""
        by_identity = self._loads.by_identity([file.identity for file in files])
        copied = self._loads.other_content(files, copies)
        by_path = copied | self._loads.by_path([file.path for file in files])
        held = self._loads.held([*map(wanted, files)])
        reasons: dict[str, _Reason] = {}
        problems: dict[str, str] = {}
        for file in files:
            load, earlier = by_identity.get(file.identity), by_path.get(file.path)
            held_file = held.get(wanted(file))
            if held_file and held_file.overtaken_by:
                text = f"{describe_overtaken(held_file)}; only {OVER_YOUNGER} loads it"
                reasons[file.path] = _Reason(text, may_be_older=True)
            elif held_file and held_file.is_partly:
                problems[file.path] = describe_partly(held_file)
            elif held_file:
                problems[file.path] = f"main contains it: run {held_file.load.workflow_id} loaded it"
            elif id := self._held.batch_of(file) or self._held.batch_with_path(file):
                remedy = f"`--retry {id}` loads it" if id in self._held.set_aside else "wait for its end, or decide"
                problems[file.path] = f"batch {id} contains it: {remedy}"
            elif load and not load.in_effect:
                text = f"run {load.file.workflow_id} loaded it, and was rolled back"
                reasons[file.path] = _Reason(text, was_rolled_back=True)
            elif earlier and earlier.in_effect:
                copied_from = earlier.file.path if earlier.file.path != file.path else ""
                text = f"{describe_overwritten(earlier.file.workflow_id, copied_from)}, and its rows stay"
                later = self._loads.find_later(earlier)
                if later:
                    text += f". Its rows may be older than those of {later.path}, which run {later.workflow_id} loaded "
                    text += f"since; only {OVER_YOUNGER} loads it"
                reasons[file.path] = _Reason(text, may_be_older=later is not None)
            else:
                reasons[file.path] = _Reason("it is settled, and waits for its batch")
        return reasons, problems
