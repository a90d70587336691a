"""Find files that were loaded again with other content after the runs that quarantined some of their rows."""

from collections.abc import Collection, Sequence

from lakehouse.catalog import BranchCatalog
from lakehouse.loaded_files import LoadedFiles
from sluice.input.held_files import LoadedFile
from sluice.input.publications import read_input_record
from sluice.publishing.commit_properties import RELEASED_RUN, RUN_ID


def find_corrected_files(
    catalog: BranchCatalog, loaded_files: LoadedFiles, tables: Sequence[str], runs: Collection[str]
) -> list[LoadedFile]:
    """Return the latest load of other content of each file of some runs, if it came after the run.

    A pipeline that loads its files again each time, and a landing zone that loads each content of a path, want both
    contents. Their runs have no corrected files.

    Args:
        tables: tables of the runs.
        runs: ids of published runs. Runs of a joint publish are not on main under their own ids, and have no result.

    Raises:
        ManifestUnreadable: it is unknown which files one of the runs, or a later run, loaded.
    """
    missing = {*runs}
    corrected: dict[str, LoadedFile] = {}
    for commit in catalog.history(catalog.main):
        if not missing:
            break
        published = missing & {commit.properties.get(each, "") for each in (RUN_ID, RELEASED_RUN)}
        missing -= published
        record = read_input_record(commit.properties) if published else None
        if record is None or record.manifest is None:
            continue
        manifest = loaded_files.manifests.read(record.manifest)
        if manifest.header.loads_all_contents or manifest.header.policy == "reload":
            continue
        loads = loaded_files.find_other_content(tables, manifest.loaded, of_scope=True, since=commit.hash)
        corrected.update({load.path: load for load in loads})
    return list(corrected.values())
