"""Plan of a deploy: the items to create, change or remove so that an installation matches the files."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sluice.deployment.files import PipelineFile
from sluice.errors import InvalidPipeline

_DIGITS = 12
Action = Literal["create", "change", "remove", "unchanged"]


@dataclass(frozen=True)
class DeploySet:
    """A set of items that are deployed together. A deploy removes only items that are no longer in its set."""

    name: str
    folder: str
    """Absolute path of the deployed folder."""
    stated: bool = False
    """True if a person named the set. Otherwise it has the name of its folder, which other folders may share."""


@dataclass(frozen=True)
class DeployedItem:
    """An item that is deployed or to be deployed: the schedule or landing zone of a pipeline."""

    kind: str
    pipeline: str
    file: str
    set_name: str
    folder: str
    properties: dict[str, str] = field(default_factory=dict)
    """Definition of the item. Items with equal properties are the same."""
    paused: str | None = None
    """Reason why it is paused; None if it is not."""


def wanted_item(
    kind: str,
    file: PipelineFile,
    stated: Mapping[str, str],
    deployed: DeploySet,
    *,
    working_directory: str,
    task_queue: str,
) -> DeployedItem:
    """Return the item that a file states. It changes with the file, its relative paths, and the task queue.

    Args:
        stated: the properties that only this kind of item has.
    """
    properties = {
        **stated,
        "pipeline": hashlib.sha256(file.text.encode()).hexdigest()[:_DIGITS],
        "file": file.name,
        "paths are relative to": working_directory,
        "task queue": task_queue,
    }
    return DeployedItem(kind, file.pipeline.name, file.name, deployed.name, deployed.folder, properties)


@dataclass(frozen=True)
class Change:
    """One line of a plan."""

    action: Action
    item: DeployedItem
    """The item after the change; for `remove`, the present item."""
    differences: list[str] = field(default_factory=list)
    paused: str | None = None
    """Reason why it is paused and stays so; None if it is not."""
    hint: str = ""
    """Effect that a person may not expect."""

    @property
    def is_work(self) -> bool:
        """True if there is something to do."""
        return self.action != "unchanged"


def plan_changes(wanted: Sequence[DeployedItem], present: Sequence[DeployedItem], deployed: DeploySet) -> list[Change]:
    """Return the changes to make and the unchanged items, sorted by pipeline.

    Raises:
        InvalidPipeline: a present item belongs to another set, or to another folder of the same name.
    """
    there = {(item.kind, item.pipeline): item for item in present}
    kept = {(item.kind, item.pipeline) for item in wanted}
    changes = [_change(item, there.get((item.kind, item.pipeline))) for item in wanted]
    removed = [item for key, item in there.items() if key not in kept and item.set_name == deployed.name]
    changes += [Change("remove", item, paused=item.paused) for item in removed]
    touched = [there[key] for key in kept if key in there] + removed
    if problems := sorted({problem for item in touched if (problem := _ownership_problem(item, deployed))}):
        raise InvalidPipeline("\n".join(problems))
    return sorted(changes, key=lambda change: (change.item.pipeline, change.item.kind))


def _change(wanted: DeployedItem, present: DeployedItem | None) -> Change:
    if present is None:
        return Change("create", wanted)
    keys = dict.fromkeys([*wanted.properties, *present.properties])
    differences = [
        f"{key}: {present.properties.get(key, 'none')} → {wanted.properties.get(key, 'none')}"
        for key in keys
        if wanted.properties.get(key) != present.properties.get(key)
    ]
    return Change("change" if differences else "unchanged", wanted, differences, present.paused)


def _ownership_problem(item: DeployedItem, deployed: DeploySet) -> str:
    """Return the reason why a deploy of this set may not change a present item; empty if it may."""
    if item.set_name != deployed.name:
        return (
            f"the {item.kind} of {item.pipeline!r} belongs to the set {item.set_name!r}, deployed from {item.folder}: "
            f"this is the set {deployed.name!r}. Remove it there, or deploy with --set {item.set_name}"
        )
    if not deployed.stated and item.folder != deployed.folder:
        return (
            f"the {item.kind} of {item.pipeline!r} was deployed from {item.folder}, another folder of the name "
            f"{deployed.name!r}: if it is the same set, say so by --set {deployed.name}; if not, give this one "
            "another name by --set"
        )
    return ""
