"""Find out if another run published files or rows of a run meanwhile, before a rebase, a merge or a release."""

from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.replacing_loads import find_replacing_load
from sluice.contracts.input import PublicationCheck
from sluice.errors import BadEnvironment
from sluice.input.selection import describe_other_content, describe_overlap, describe_replacing_load


def input_overlap(loaded_files: LoadedFiles | None, check: PublicationCheck | None, run_id: str) -> str:
    """Describe the files of a run's input that main contains now, with the runs that loaded them.

    If there are none, describe a later load that may have brought the same rows, or younger ones. Return "" if there is
    no such load either, or if the input may be published again.

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
    if overwritten := loaded_files.find_overwritten(check, run_id):
        return describe_other_content(overwritten)
    header = loaded_files.manifests.read(check.manifest).header if check.manifest else None
    replacing = find_replacing_load(loaded_files, header) if header else None
    return describe_replacing_load(replacing) if replacing else ""
