"""Files of the batches of a landing zone, by content and by path."""

from collections.abc import Collection, Mapping, Sequence

from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.source_files import identify_input
from sluice.contracts.arrivals import ArrivedFile, BatchRef, BatchState
from sluice.contracts.run_request import InputFile, run_workflow_id
from sluice.input.held_files import HeldFile, WantedFile


def wanted(file: ArrivedFile) -> WantedFile:
    """Return an arrived file as a file to be loaded: whole, and for no scheduled time."""
    return WantedFile(file.path, file.identity, is_sent_again=file.is_sent_again)


class HeldFiles:
    """Files of the zone's batches that are not loaded on main yet.

    A path is registered from the creation of its batch until the batch is removed. Meanwhile, other content of the path
    waits, so that a file overwritten during its run is judged by what the run published. A batch that a person set
    aside blocks its content, but not its paths.
    """

    def __init__(self, batches: BatchStore, held: Sequence[BatchRef], states: Mapping[str, BatchState]) -> None:
        self._files = {ref.id: batches.read(ref) for ref in held}
        self._identities: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._expected = set[str]()
        self._states = states
        for id, files in self._files.items():
            self._index(id, files)

    @property
    def ids(self) -> list[str]:
        """Ids of the batches."""
        return [*self._files]

    @property
    def kept_out(self) -> list[str]:
        """Ids of the batches that wait for a person's decision."""
        return self._in_state("kept out")

    @property
    def set_aside(self) -> list[str]:
        """Ids of the batches that a person set aside."""
        return self._in_state("set aside")

    @property
    def files(self) -> list[WantedFile]:
        """Files of all batches."""
        return [wanted(file) for files in self._files.values() for file in files]

    def paths_to_load(self, loaded: Collection[WantedFile]) -> list[str]:
        """Return the paths of batches that are not set aside, except those of files loaded on main."""
        done = {file.path for files in self._files.values() for file in files if wanted(file) in loaded}
        return [path for path in self._paths if path not in done]

    def add(self, id: str, files: Sequence[ArrivedFile]) -> None:
        """Add a new batch."""
        self._index(id, files)

    def expect(self, file: ArrivedFile) -> None:
        """Expect a new batch with a file that this listing found."""
        self._expected.add(file.identity)

    def batch_of(self, file: ArrivedFile) -> str:
        """Return the id of the batch with the content of a file; empty if there is none."""
        return self._identities.get(file.identity, "")

    def batch_with_content(self, identities: Sequence[str]) -> str:
        """Return the id of a batch, not set aside, with one of these contents; empty if there is none."""
        batches = (self._identities.get(identity, "") for identity in identities)
        return next((id for id in batches if id and self._states.get(id) != "set aside"), "")

    def has_others(self, file: ArrivedFile) -> bool:
        """Return True if a batch that is not set aside, or a new one, has other content than that of a file."""
        return not self._expected <= {file.identity} or any(
            each.identity != file.identity
            for id, files in self._files.items()
            if self._states.get(id) != "set aside"
            for each in files
        )

    def is_copy(self, file: ArrivedFile, held: HeldFile | None) -> bool:
        """Return True if a batch, or main, has the content of a file under another path.

        Args:
            file: the file.
            held: its load on main; None if there is none.
        """
        if held and not held.is_partly and held.load.path != file.path:
            return True
        return file.identity in self._identities and self._paths.get(file.path) != self._identities[file.identity]

    def batch_with_path(self, file: ArrivedFile) -> str:
        """Return the id of the batch, not set aside, with the path of a file; empty if there is none."""
        return self._paths.get(file.path, "")

    def loaded(self, loaded: Collection[WantedFile]) -> list[str]:
        """Return the ids of the batches whose files are all loaded on main."""
        return [id for id, files in self._files.items() if all(wanted(file) in loaded for file in files)]

    def runs(self, pipeline: str) -> dict[str, str]:
        """Return the workflow id of each batch's run, by the id of the batch."""
        inputs = {
            id: [InputFile(path="", size=0, identity=file.identity) for file in files]
            for id, files in self._files.items()
        }
        return {id: run_workflow_id(pipeline, identify_input(files).digest) for id, files in inputs.items()}

    def _in_state(self, state: BatchState) -> list[str]:
        return [id for id in self._files if self._states.get(id) == state]

    def _index(self, id: str, files: Sequence[ArrivedFile]) -> None:
        self._identities |= {file.identity: id for file in files}
        if self._states.get(id) != "set aside":
            self._paths |= {file.path: id for file in files}
