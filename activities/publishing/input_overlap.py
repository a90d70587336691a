"""Find files of a run that another run published meanwhile, before a rebase, a merge or a release."""

from lakehouse.loaded_files import LoadedFiles
from sluice.contracts.input import PublicationCheck
from sluice.errors import BadEnvironment
from sluice.input.selection import describe_other_content, describe_overlap


def input_overlap(loaded_files: LoadedFiles | None, check: PublicationCheck | None, run_id: str) -> str:
    """Describe the files of a run's input that main contains now, with the runs that loaded them.

    Returns "" if there are none, or if the input may be published again.

    Before a rebase or a release, call this when the base of the new branch is known. Any later publication of the files
    changes the same tables. The merge is then a conflict, and the next attempt checks again.

    Args:
        run_id: the run itself. Its own publications do not count.
    """
    if check is None:
        return ""
    if loaded_files is None:
        raise BadEnvironment(
            "this process has no index of loaded files, so it cannot check whether main contains the input"
        )
    if overlap := loaded_files.find_overlap(check, run_id):
        return describe_overlap(overlap)
    overwritten = loaded_files.find_overwritten(check, run_id)
    return describe_other_content(overwritten) if overwritten else ""
