"""A class-data archive: what the JVM made of Spark's classes at one start, kept for every start after it.

It halves a cold start (docs/performance.md, ADR 16). Set-up makes it for exactly one Java and one class path;
a Spark that has others does without it. Source: JEP 350, dynamic class-data archives.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.spark.configuration import application, rehearsal_catalogs, write_properties
from engine.spark.jars import class_path
from engine.spark.submit import REHEARSAL, SPARK_HOME, environment, submit
from sluice.errors import BadEnvironment
from sluice.settings import Settings

_FOLDER = "cds"
_PATIENCE = 600
_QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
"""An archive that does not fit after all is not worth a word: the JVM goes on without it."""
_CRASHED = (134, 135, 139)
"""Exit codes of a JVM that was ended by SIGABRT, SIGBUS or SIGSEGV, which a damaged archive can be the reason for."""


def find_archive(settings: Settings, java: Path) -> Path | None:
    """Return the archive for this Java and class path, if there is a whole one."""
    archive = _place(settings, java)
    try:
        whole = archive.stat().st_size == int(_stamp(archive).read_text())
    except (OSError, ValueError):
        return None
    return archive if whole else None


def create_archive(settings: Settings, java: Path) -> Path:
    """Rehearse a job and keep what the JVM made of its classes, unless that is there; return the archive.

    Raises:
        BadEnvironment: the rehearsal failed; Spark works without it, only slower.
    """
    found = find_archive(settings, java)
    if found:
        return found
    archive = _place(settings, java)
    shutil.rmtree(archive.parent, ignore_errors=True)
    scratch = archive.parent / "rehearsal"
    scratch.mkdir(parents=True)
    fresh = scratch / "fresh.jsa"
    properties = application(settings, scratch) | rehearsal_catalogs(scratch)
    command = submit(write_properties(scratch / "spark.properties", properties), str(REHEARSAL), str(scratch))
    variables = environment(settings, java, f"-XX:ArchiveClassesAtExit={fresh}")
    log = scratch.parent / "rehearsal.log"
    with log.open("wb") as out:
        try:
            subprocess.run(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=_PATIENCE,
                check=True,
            )
            fresh.chmod(0o444)
            _stamp(archive).write_text(str(fresh.stat().st_size))
            fresh.replace(archive)
        except (OSError, subprocess.SubprocessError) as error:
            raise BadEnvironment(f"no class-data archive could be made ({error}); see {log}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return archive


def archive_option(archive: Path) -> str:
    """Return the options by which a JVM uses an archive, or goes on without it."""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def discard_if_crashed(archive: Path | None, code: int) -> None:
    """Do without an archive from now on if the JVM that used it crashed: the next attempt finds out."""
    if archive and code in _CRASHED:
        _stamp(archive).unlink(missing_ok=True)


def _place(settings: Settings, java: Path) -> Path:
    marks = hashlib.sha256("\n".join(_marks(settings, java)).encode()).hexdigest()
    return settings.sluice_home.absolute() / _FOLDER / f"{marks[:16]}.jsa"


def _marks(settings: Settings, java: Path) -> Iterator[str]:
    """Yield what an archive is bound to: the JVM, and every jar by place, size and time."""
    yield sys.platform
    for path in (java / "lib" / "server" / "libjvm.so", java / "release"):
        yield _mark(path)
    bundled = sorted((SPARK_HOME / "jars").glob("*.jar"))
    for path in (*bundled, *map(Path, class_path(settings))):
        yield _mark(path)


def _mark(path: Path) -> str:
    try:
        seen = path.stat()
    except OSError:
        return f"{path} is not there"
    return f"{path} {seen.st_size} {seen.st_mtime_ns}"


def _stamp(archive: Path) -> Path:
    return archive.with_suffix(".size")
