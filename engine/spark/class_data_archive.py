"""The class-data archive: a file with the classes that a Spark job loads, so that later jobs start faster.

It halves the time of a cold start (docs/performance.md, ADR 17). It is created after set-up, for exactly one Java and
one class path. Spark with another Java or class path starts without it. Source: JEP 350, dynamic class-data archives.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.spark.configuration import application, warm_up_catalogs, write_properties
from engine.spark.jars import class_path
from engine.spark.submit import FIRST_COMPILER, SPARK_HOME, WARM_UP, environment, submit
from sluice.errors import BadEnvironment
from sluice.setting_groups import SparkJobSettings, StorageSettings

_FOLDER = "cds"
_WARM_UP_TIMEOUT = 600
_QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
"""JVM options for an archive that does not fit after all: the JVM starts without it, and prints nothing."""
_CRASHED = (134, 135, 139)
"""Exit codes of a JVM that SIGABRT, SIGBUS or SIGSEGV ended, for example because its archive is damaged."""
_discarded: set[Path] = set()
"""Archives that crashed a JVM of this worker, and that this worker may not discard for others."""


def find_archive(settings: StorageSettings, java: Path) -> Path | None:
    """Return the archive for this Java and class path, or None if there is none or its size is wrong."""
    archive = _path(settings, java)
    if archive in _discarded:
        return None
    try:
        is_complete = archive.stat().st_size == int(_size_file(archive).read_text())
    except (OSError, ValueError):
        return None
    return archive if is_complete else None


def create_archive(settings: SparkJobSettings, java: Path, unreachable: Mapping[str, str]) -> Path:
    """Return the archive. If there is none, create it from the classes that the warm-up job loads.

    Args:
        unreachable: the configuration of a catalog that cannot be reached, of the kind that jobs use.

    Raises:
        BadEnvironment: the warm-up job failed. Spark works without an archive, but starts more slowly.
    """
    existing = find_archive(settings.storage, java)
    if existing:
        return existing
    archive = _path(settings.storage, java)
    shutil.rmtree(archive.parent, ignore_errors=True)
    scratch = archive.parent / "warm-up"
    scratch.mkdir(parents=True)
    fresh = scratch / "fresh.jsa"
    properties = application(settings, scratch) | warm_up_catalogs(scratch, unreachable)
    command = submit(write_properties(scratch / "spark.properties", properties), str(WARM_UP), str(scratch))
    variables = environment(settings, java, f"{FIRST_COMPILER} -XX:ArchiveClassesAtExit={fresh}")
    log = scratch.parent / "warm-up.log"
    with log.open("wb") as out:
        try:
            subprocess.run(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=_WARM_UP_TIMEOUT,
                check=True,
            )
            fresh.chmod(0o444)
            _size_file(archive).write_text(str(fresh.stat().st_size))
            fresh.replace(archive)
        except (OSError, subprocess.SubprocessError) as error:
            raise BadEnvironment(f"no class-data archive could be made ({error}); see {log}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return archive


def archive_option(archive: Path) -> str:
    """Return the options that make a JVM use an archive, or start without it if it does not fit."""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def discard_if_crashed(archive: Path | None, code: int) -> None:
    """Discard an archive if the JVM that used it crashed, so that the next attempt starts without it."""
    if archive and code in _CRASHED:
        try:
            _size_file(archive).unlink(missing_ok=True)
        except OSError:  # another user installed the archive, and this user may only read it
            _discarded.add(archive)


def _path(settings: StorageSettings, java: Path) -> Path:
    key = hashlib.sha256("\n".join(_key_parts(settings, java)).encode()).hexdigest()
    return settings.sluice_home.absolute() / _FOLDER / f"{key[:16]}.jsa"


def _key_parts(settings: StorageSettings, java: Path) -> Iterator[str]:
    """Yield the key of an archive: the JVM, and the path, size and modification time of every jar."""
    yield sys.platform
    for path in (java / "lib" / "server" / "libjvm.so", java / "release"):
        yield _file_version(path)
    bundled = sorted((SPARK_HOME / "jars").glob("*.jar"))
    for path in (*bundled, *map(Path, class_path(settings))):
        yield _file_version(path)


def _file_version(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return f"{path} is not there"
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _size_file(archive: Path) -> Path:
    return archive.with_suffix(".size")
