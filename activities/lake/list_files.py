"""List source files with the run that loaded them, the table, and the outcome."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.input.file_listing import list_files
from lakehouse.input.loaded_files import LoadedFiles
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult, check_result_size


@dataclass(frozen=True)
class ListFilesActivity:
    """The activity `list_files`. Needs the catalog and the index of loaded files."""

    catalog: BranchCatalog
    loaded_files: LoadedFiles

    @activity.defn(name="list_files")
    def list_files(self, input: ListFilesInput) -> ListFilesResult:
        """Return the files of runs that are published, under way or quarantined."""
        result = list_files(self.catalog, self.loaded_files, input)
        check_result_size(len(result.model_dump_json().encode()), "list fewer files with --limit")
        return result
