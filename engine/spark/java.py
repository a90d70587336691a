"""Finding a Java that Spark runs on."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from sluice.errors import BadEnvironment

OLDEST, NEWEST = 17, 23
"""Spark 4.1 needs 17; from 24 on the security manager is gone, and Hadoop's client with it."""
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_USUAL = ("/usr/lib/jvm/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


_known: dict[Path, int] = {}
"""What Javas said: asking costs a process, and each Spark job needs to know."""


def java_version(home: Path) -> int | None:
    """Return the major version of the Java at `home`, or None where none answers."""
    if home in _known:
        return _known[home]
    try:
        command = [str(home / "bin" / "java"), "-version"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(said.stderr + said.stdout)
    if match:
        _known[home] = int(match[1])
    return _known.get(home)


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the home of a Java for Spark: JAVA_HOME if set, else that of the PATH, else a usual place.

    Raises:
        BadEnvironment: JAVA_HOME is set to an unsuitable Java, or none is suitable.
    """
    demanded = environment.get("JAVA_HOME")
    if demanded:
        version = java_version(Path(demanded))
        if not _suits(version):
            found = f"Java {version}" if version else "no Java"
            raise BadEnvironment(
                f"Spark 4.1 needs Java 17 or 21, but JAVA_HOME={demanded} is {found}: "
                "point JAVA_HOME at a suitable one, or unset it"
            )
        return Path(demanded)
    seen = []
    for home in _candidates(environment):
        version = java_version(home)
        if _suits(version):
            return home
        seen.append(f"{home} is {f'Java {version}' if version else 'no Java'}")
    looked = "; ".join(seen) or "none was found"
    raise BadEnvironment(f"Spark 4.1 needs Java 17 or 21 ({looked}): install one, or set JAVA_HOME")


def _suits(version: int | None) -> bool:
    return version is not None and OLDEST <= version <= NEWEST


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in _USUAL:
        root = Path(pattern[: pattern.index("*")])
        if root.is_dir():
            yield from sorted(root.glob(pattern[len(str(root)) + 1 :]))
