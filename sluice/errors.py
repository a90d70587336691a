"""What can go wrong, as one tree.

SluiceError
├── Terminal                 a retry would fail in the same way: never retried
│   ├── InvalidPipeline      the pipeline, or a name in it, is wrong
│   ├── InvalidInput         the files to load are missing, empty, broken or do not fit the table
│   │   ├── InputChanged     a file was replaced, changed or removed since the run was started
│   │   ├── NoFiles          there is no file to load
│   │   └── InputIncomplete  a file is empty, or cut off
│   ├── AlreadyPublished     main holds this input already
│   ├── ManifestUnreadable   the record of the files that a run loaded is missing, or was altered
│   ├── RunUnderWay          a run of the same input, started from another pipeline, has not ended
│   ├── NothingToDo          there was nothing to write, which is no failure
│   ├── NothingWritten       the job exited with 0, and its branch holds no snapshot of the attempt
│   ├── UnexpectedWrite      the branch holds what this attempt should not have written
│   ├── WriteRefused         a job tried to change what is not its run's
│   ├── Unapproved           an approval is not its author's
│   ├── BadEnvironment       the machine lacks what the work needs (Java, settings)
│   ├── NoSuchBranch         a branch is not there: it was deleted, or never created
│   ├── CatalogRefused       the catalog understood a request and refused it
│   ├── CatalogChanged       the catalog is not the one that the run began with
│   ├── TableReplaced        a table is not the one that the run wrote to: it was dropped and created again
│   └── RegistrationRefused  a target refuses a publication for good
└── Transient                a retry may succeed: retried
    ├── ServiceUnavailable   the catalog (or what is behind it) does not answer
    │   └── CredentialsExpired   an object store refuses credentials that are too old
    ├── DiskFull             the worker's machine has too little free space to begin
    ├── SparkServerCrashed   the Spark server that a job shared with others ended under it
    ├── JobFailed            a Spark job failed, for a reason that may be temporary
    └── CommandFailed        a command that is told of a publication failed
"""


class SluiceError(Exception):
    """Base of every error that Sluice raises on purpose."""


class Terminal(SluiceError):
    """Base of errors that a retry would raise again."""


class Transient(SluiceError):
    """Base of errors after which a retry may succeed."""


class InvalidPipeline(Terminal, ValueError):
    """Raised when a pipeline, or a name in it, is wrong. A ValueError, so that pydantic says where."""


class InvalidInput(Terminal):
    """Raised when the input is missing, empty, broken, or does not fit the table."""


class InputChanged(InvalidInput):
    """Raised when a file to load was replaced, changed or removed since the run was started, or while it was read."""


class InputIncomplete(InvalidInput):
    """Raised when a file to load is empty or cut off: the program that writes it may not have finished."""


class NoFiles(InvalidInput):
    """Raised when there is no file to load: in a landing zone, none may have arrived yet."""


class AlreadyPublished(Terminal):
    """Raised when the input of a run, or a file of it, is in main already."""


class ManifestUnreadable(Terminal):
    """Raised when the record of the files that a run loaded is missing, or was altered."""


class RunUnderWay(Terminal):
    """Raised when a run of the same input, started from another pipeline or with other options, has not ended."""


class NothingToDo(Terminal):
    """Raised when a job finds that what it is for is done already."""


class NothingWritten(Terminal):
    """Raised when a job exits with 0 and the branch holds no snapshot of it."""


class UnexpectedWrite(Terminal):
    """Raised when the branch holds a change that this attempt should not have made."""


class WriteRefused(Terminal):
    """Raised when a job tried to change something else than the branch of its run, and the server refused."""


class Unapproved(Terminal):
    """Raised when what is to be merged was not approved by those who must."""


class BadEnvironment(Terminal):
    """Raised when the machine lacks what the work needs."""


class NoSuchBranch(Terminal):
    """Raised when a branch is not there: it was deleted, or never created."""


class CatalogRefused(Terminal):
    """Raised when the catalog understands a request and refuses it."""


class CatalogChanged(Terminal):
    """Raised when the catalog is not the one that the run began with."""


class TableReplaced(Terminal):
    """Raised when main has another table of a name than the one that a run wrote to."""


class RegistrationRefused(Terminal):
    """Raised when a target cannot hold a table of main, or wants to be told of no publication any more."""


class ServiceUnavailable(Transient):
    """Raised when a service cannot be reached or answers that it cannot serve."""


class CredentialsExpired(ServiceUnavailable):
    """Raised when an object store refuses credentials because they expired; a retry succeeds once they are renewed."""


class DiskFull(Transient):
    """Raised when the worker's machine has too little free space for a job to begin."""


class SparkServerCrashed(Transient):
    """Raised when the Spark server that a job shared with others ended under it: any of them may be the cause."""


class JobFailed(Transient):
    """Raised when a Spark job fails for a reason that may be temporary."""


class CommandFailed(Transient):
    """Raised when a command that is told of a publication fails or takes too long."""
