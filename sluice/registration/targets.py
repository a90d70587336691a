"""Registration targets of an installation: receivers of events, and catalogs that register main's tables.

The operator lists them in the file of SLUICE_TARGETS_FILE. Pipelines only name them: an address, a command or a
credential in a pipeline would let its author use the worker's network and rights.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError
from ruamel.yaml import YAML

from sluice.base_model import StrictModel
from sluice.durations import STATED
from sluice.errors import BadEnvironment
from sluice.identifiers import suggestion
from sluice.located_yaml import UNREADABLE
from sluice.pipeline.target_names import target_name
from sluice.registration.target_kinds import AnyTarget, TableTarget
from sluice.validation_errors import plain_message

_MAX_FILE_BYTES = 1024**2


class Targets(StrictModel):
    """All targets of an installation, by name."""

    targets: dict[Annotated[str, AfterValidator(target_name)], AnyTarget] = Field(default_factory=dict)

    def problems(self, named: Collection[str], tables: Collection[str], lake: str) -> list[str]:
        """Return the reasons why a pipeline cannot register its publications, each as a sentence.

        Args:
            named: the targets that the pipeline names.
            tables: the tables that the pipeline may change.
            lake: the location of new tables.
        """
        unknown = [name for name in named if name not in self.targets]
        known = f"known targets: {', '.join(sorted(self.targets))}" if self.targets else "it lists none"
        problems = [
            f"after_publish: the installation has no target {name!r}{suggestion(name, self.targets)}: "
            f"the file of SLUICE_TARGETS_FILE lists targets; {known}"
            for name in unknown
        ]
        holding = {name: self.targets[name] for name in named if name in self.targets}
        for name, target in holding.items():
            if isinstance(target, TableTarget):
                of_tables = [f"{table}: {why}" for table in tables if (why := target.table_problem(table))]
                of_lake = [f"{why}; new tables are written to {lake}"] if (why := target.location_problem(lake)) else []
                problems += [f"after_publish: {name}: {why}" for why in (*of_tables, *of_lake)]
        return problems

    def of_publication(self, named: Collection[str], tables: Collection[str]) -> list[str]:
        """Return the names of all targets of a publication: those of the pipeline, and those whose patterns match."""
        wanting = [name for name, target in self.targets.items() if target.wants(tables)]
        return list(dict.fromkeys([*named, *wanting]))


NO_TARGETS = Targets()


def read_targets(file: str) -> Targets:
    """Read the targets of an installation. There are none if no file is named.

    Raises:
        BadEnvironment: the file cannot be read, or is not valid. The message has every error.
    """
    if not file:
        return NO_TARGETS
    try:
        path = Path(file).expanduser()
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise BadEnvironment(f"SLUICE_TARGETS_FILE={file}: the file is larger than {_MAX_FILE_BYTES:,} bytes")
        tree = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
        return Targets.model_validate(tree, context=STATED)
    except ValidationError as error:
        raise BadEnvironment("; ".join(f"SLUICE_TARGETS_FILE={file}: {line}" for line in _lines(error))) from None
    except BadEnvironment:
        raise
    except (OSError, RuntimeError, *UNREADABLE) as error:
        why = getattr(error, "strerror", None) or getattr(error, "problem", None) or "it cannot be read as YAML"
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        raise BadEnvironment(f"SLUICE_TARGETS_FILE={file}:{line} {why}") from None  # the error may quote the file


def _lines(error: ValidationError) -> list[str]:
    """Return each error with its location, without the content of the file there."""
    lines = []
    for each in error.errors(include_input=False, include_url=False):
        location = ".".join(str(part) for part in each["loc"] if part != "[key]")
        lines.append(f"{location or 'the file'}: {plain_message(each)}")
    return lines
