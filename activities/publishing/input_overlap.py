"""Finding out, before a rebase, a merge or a release, whether another run published the same files meanwhile."""

from lakehouse.loaded_files import LoadedFiles
from sluice.contracts.input import PublicationCheck
from sluice.errors import BadEnvironment
from sluice.input.selection import describe_other_content, describe_overlap


def input_overlap(loaded_files: LoadedFiles | None, check: PublicationCheck | None, run_id: str) -> str:
    """Return what main holds of the input of a run by now, and by which run; empty if nothing, or if it may.

    Before a rebase or a release, ask when the base of the new branch is known: what is published after that changes
    the same tables, so that the merge is a conflict, and the next attempt asks again.

    Args:
        run_id: the run that asks: what it published itself does not count.
    """
    if check is None:
        return ""
    if loaded_files is None:
        raise BadEnvironment("this process cannot tell which files main holds")
    if overlap := loaded_files.find_overlap(check, run_id):
        return describe_overlap(overlap)
    overwritten = loaded_files.find_overwritten(check, run_id)
    return describe_other_content(overwritten) if overwritten else ""
