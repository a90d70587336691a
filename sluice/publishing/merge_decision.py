"""Decision whether a run is merged, from what main contains right before the merge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluice.contracts.input import PublicationCheck
from sluice.errors import AlreadyPublished
from sluice.publishing.written_tables import check_no_repeated_files


@dataclass(frozen=True)
class MainBeforeMerge:
    """State of main right before a merge, as far as it affects the run."""

    conflicts: Sequence[str] = ()
    """Tables of the run that main changed after the base. If there are any, nothing else was read."""
    overlap: str = ""
    """Description of the input that main contains already, or "". If there is one, nothing below was read."""
    repeated_files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Files that a table would list more than once after the merge, by table."""
    changed_watched_tables: Sequence[str] = ()
    """Tables read by checks that main changed after the base. The merge itself does not compare them."""


def decide_merge(main: MainBeforeMerge, published: PublicationCheck | None) -> list[str]:
    """Return the tables in conflict; the run is merged if there are none.

    Args:
        published: identity of the run's input; None if it may be loaded again.

    Raises:
        AlreadyPublished: main contains the whole input. A rewrite would publish it, too.
        UnexpectedWrite: the merge would add a file that a table contains already.
    """
    if main.conflicts:
        return list(main.conflicts)
    if main.overlap:
        if published is None or published.digest:
            raise AlreadyPublished(f"{main.overlap}. To publish it again, add --again")
        return published.tables  # a rewrite leaves out the files that main contains
    check_no_repeated_files(main.repeated_files)
    return list(main.changed_watched_tables)
