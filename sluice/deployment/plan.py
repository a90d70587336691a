"""The plan of a deploy: what is created, changed or removed so that an installation is as the files say."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sluice.errors import InvalidPipeline

Action = Literal["create", "change", "remove", "unchanged"]


@dataclass(frozen=True)
class DeploySet:
    """The things that are deployed together: a deploy removes what is no longer in its set, and nothing else."""

    name: str
    folder: str
    """The folder that is deployed, absolute."""
    stated: bool = False
    """Whether a person named the set. Otherwise it is called after its folder, as other folders may be."""


@dataclass(frozen=True)
class DeployedItem:
    """One thing that is deployed, or to be deployed: the schedule of a pipeline."""

    kind: str
    pipeline: str
    file: str
    set_name: str
    folder: str
    properties: dict[str, str] = field(default_factory=dict)
    """What it is: two of the same properties are the same thing."""
    paused: str | None = None
    """Why it is paused; None if it is not."""


@dataclass(frozen=True)
class Change:
    """One line of a plan."""

    action: Action
    item: DeployedItem
    """As it will be; for `remove`, as it is."""
    differences: list[str] = field(default_factory=list)
    paused: str | None = None
    """Why it is paused, and stays so; None if it is not."""

    @property
    def is_work(self) -> bool:
        """Whether there is something to do."""
        return self.action != "unchanged"


def plan_changes(wanted: Sequence[DeployedItem], present: Sequence[DeployedItem], deployed: DeploySet) -> list[Change]:
    """Return what is to be done, and what stays as it is, by pipeline.

    Raises:
        InvalidPipeline: what is there belongs to another set, or to another folder of the same name.
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
    """Return why a deploy of this set may not change a thing that is there; empty if it may."""
    if item.set_name != deployed.name:
        return (
            f"the {item.kind} of {item.pipeline!r} belongs to the set {item.set_name!r}, deployed from {item.folder}: "
            f"this is the set {deployed.name!r}. Remove it there, or deploy with --set {item.set_name}"
        )
    if not deployed.stated and item.folder != deployed.folder:
        return (
            f"the {item.kind} of {item.pipeline!r} was deployed from {item.folder}, another folder of the name "
            f"{deployed.name!r}: if it is the same set, say so by --set {deployed.name}; if not, name this one "
            "otherwise"
        )
    return ""
