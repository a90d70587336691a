"""Find loads that replaced rows after the files of an append were selected."""

from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.loaded_files_tables import REPLACING
from sluice.input.held_files import LoadedFile
from sluice.input.manifest import ManifestHeader


def find_replacing_load(loaded_files: LoadedFiles, header: ManifestHeader) -> LoadedFile | None:
    """Return the latest load that its pipeline published after a run selected its files, if it may replace rows.

    This happens if a person edits the pipeline while a run waits. If the run itself replaces rows, the result is None.

    Args:
        header: the header of the run's input manifest.

    Raises:
        ManifestUnreadable: it is unknown which files a run loaded into one of the tables.
    """
    if header.order_matters:
        return None
    condition = REPLACING.format(", ".join("?" * len(header.tables)))
    known = [] if header.policy == "reload" else header.tables  # such a run is not asked what was loaded
    loads, _ = loaded_files.list_files(condition, [header.pipeline, header.base, *header.tables], 1, known)
    return loads[0].file if loads else None
