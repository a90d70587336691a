"""The errors of Sluice, as one tree.

SluiceError
├── Terminal                 a retry would fail in the same way: never retried
│   ├── InvalidPipeline      the pipeline, or a name in it, is wrong
│   │   └── NotDeployed      neither a schedule nor a landing zone of the pipeline is deployed
│   ├── InvalidInput         the files to load are missing, empty, broken or do not fit the table
│   │   ├── InputChanged     a file was replaced, changed or removed since the run was started
│   │   ├── NoFiles          there is no file to load
│   │   └── InputIncomplete  a file is empty, or cut off
│   ├── AlreadyPublished     main contains this input already
│   ├── ManifestUnreadable   the record of the files that a run loaded is missing, or was altered
│   ├── RunUnderWay          a run of the same input, started from another pipeline, has not ended
│   ├── NothingToDo          there is nothing to write, which is not a failure
│   ├── NothingWritten       the job exited with 0, but its branch has no snapshot of the attempt
│   ├── UnexpectedWrite      the branch contains a change that this attempt should not have made
│   ├── WriteRefused         a job tried to change something other than the branch of its run
│   ├── Unapproved           a merge lacks approvals, or its commit misstates them
│   ├── BadEnvironment       the machine lacks something that the work needs (Java, settings)
│   ├── NoSuchBranch         a branch does not exist: it was deleted, or never created
│   ├── CatalogRefused       the catalog understood a request and refused it
│   ├── CatalogChanged       the catalog is not the one that the run began with
│   ├── TableReplaced        a table is not the one that the run wrote to: it was dropped and created again
│   ├── RegistrationRefused  a target refuses a publication permanently
│   └── MessageRefused       a service refuses a message to people permanently
└── Transient                a retry may succeed: retried
    ├── ServiceUnavailable   the catalog, or a service behind it, does not answer
    │   └── CredentialsExpired   an object store refuses expired credentials
    ├── DiskFull             the worker's machine has too little free space to begin
    ├── SparkServerCrashed   the Spark server that jobs shared crashed while this job used it
    ├── JobFailed            a Spark job failed, for a reason that may be temporary
    └── CommandFailed        a command that runs after a publication failed

A workflow sees only the name of an error of an activity: `error_class` returns the class.
"""

from typing import ClassVar, Literal

from sluice.causes import Cause

Blame = Literal["job", "worker", "service", "shared server"]
"""The part to which a failed attempt is attributed. Only failures of the job count in a pipeline's `attempts`."""


class SluiceError(Exception):
    """Base of every error that Sluice raises on purpose."""

    is_retryable: ClassVar[bool] = True
    """True if a retry may succeed."""
    cause: ClassVar[Cause] = "error"
    """Cause of a run that ends with this error."""
    blame: ClassVar[Blame] = "job"
    """Part that failed if this error ends an attempt."""


class Terminal(SluiceError):
    """Base of errors that a retry would raise again."""

    is_retryable = False


class Transient(SluiceError):
    """Base of errors after which a retry may succeed."""

    is_retryable = True


class InvalidPipeline(Terminal, ValueError):
    """Raised when a pipeline, or a name in it, is wrong. It is a ValueError, so that pydantic reports the position."""

    cause = "invalid"


class NotDeployed(InvalidPipeline):
    """Raised when no schedule and no landing zone of a pipeline is deployed."""


class InvalidInput(Terminal):
    """Raised when the input is missing, empty, broken, or does not fit the table."""

    cause: ClassVar[Cause] = "invalid"


class InputChanged(InvalidInput):
    """Raised when a file to load was replaced, changed or removed after the run was started, or while it was read."""

    cause = "input_changed"

    def __init__(self, message: str, change: str = "") -> None:
        """Create the error. `change` describes the change without its time, for messages that state another time."""
        super().__init__(message)
        self.change = change or message


class InputIncomplete(InvalidInput):
    """Raised when a file to load is empty or cut off: the program that writes it may not have finished."""


class NoFiles(InvalidInput):
    """Raised when there is no file to load. In a landing zone, none may have arrived yet."""


class AlreadyPublished(Terminal):
    """Raised when main already contains the input of a run, or a file of it."""

    cause = "already_published"


class ManifestUnreadable(Terminal):
    """Raised when the record of the files that a run loaded is missing, or was altered."""

    cause = "invalid"


class RunUnderWay(Terminal):
    """Raised when a run of the same input, started from another pipeline or with other options, has not ended."""


class NothingToDo(Terminal):
    """Raised when a job finds that its work is already done."""

    cause = "nothing_to_do"


class NothingWritten(Terminal):
    """Raised when a job exits with 0 but the branch has no snapshot of its attempt."""

    cause = "invalid"


class UnexpectedWrite(Terminal):
    """Raised when the branch contains a change that this attempt should not have made."""


class WriteRefused(Terminal):
    """Raised when the server refuses a job's change of something other than the branch of its run."""

    cause = "invalid"


class Unapproved(Terminal):
    """Raised when a merge lacks required approvals or waivers, or when its commit misstates them."""


class BadEnvironment(Terminal):
    """Raised when the machine lacks something that the work needs."""

    cause = "invalid"


class NoSuchBranch(Terminal):
    """Raised when a branch does not exist: it was deleted, or never created."""


class CatalogRefused(Terminal):
    """Raised when the catalog understands a request and refuses it."""


class CatalogChanged(Terminal):
    """Raised when the catalog is not the one that the run began with."""


class TableReplaced(Terminal):
    """Raised when the table to which a run wrote was dropped on main, and another one has its name now."""


class RegistrationRefused(Terminal):
    """Raised when a target cannot register a table of main, or accepts no more events."""


class MessageRefused(Terminal):
    """Raised when a service refuses a message to people."""


class ServiceUnavailable(Transient):
    """Raised when a service cannot be reached or answers that it cannot serve."""

    cause = "unreachable"
    blame = "service"


class CredentialsExpired(ServiceUnavailable):
    """Raised when an object store refuses credentials because they expired; a retry succeeds once they are renewed."""


class DiskFull(Transient):
    """Raised when the worker's machine has too little free space for a job to begin."""

    blame = "worker"


class SparkServerCrashed(Transient):
    """Raised when a Spark server crashes while jobs share it. Any of these jobs may be the cause."""

    blame = "shared server"


class JobFailed(Transient):
    """Raised when a Spark job fails for a reason that may be temporary."""


class CommandFailed(Transient):
    """Raised when a command that runs after a publication fails or takes too long."""


_CLASSES = {
    name: each for name, each in [*globals().items()] if isinstance(each, type) and issubclass(each, SluiceError)
}


def error_class(name: str) -> type[SluiceError]:
    """Return the class of this name, or `SluiceError` if no error of Sluice has it."""
    return _CLASSES.get(name, SluiceError)
