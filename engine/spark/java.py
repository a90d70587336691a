"""Find a Java that Spark runs on."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from sluice.errors import BadEnvironment

OLDEST, NEWEST = 17, 23
"""Range of suitable Java versions. Spark 4.1 needs 17. Java 24 removed the security manager, which Hadoop's client
needs."""
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_USUAL_FOLDERS = ("/usr/lib/jvm/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


_versions: dict[Path, int] = {}
"""Cache of Java versions by Java home, since each look-up starts a process, and each Spark job needs the version."""


def java_version(home: Path) -> int | None:
    """Return the major version of the Java at `home`, or None if there is none."""
    if home in _versions:
        return _versions[home]
    try:
        command = [str(home / "bin" / "java"), "-version"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(result.stderr + result.stdout)
    if match:
        _versions[home] = int(match[1])
    return _versions.get(home)


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the home of a Java for Spark: JAVA_HOME if set, else the Java on the PATH, else one in a usual folder.

    Raises:
        BadEnvironment: JAVA_HOME is set to an unsuitable Java, or no Java is suitable.
    """
    java_home = environment.get("JAVA_HOME")
    if java_home:
        version = java_version(Path(java_home))
        if not _is_suitable(version):
            actual = f"Java {version}" if version else "not a Java installation"
            raise BadEnvironment(
                f"Spark 4.1 needs Java 17 or 21, but JAVA_HOME={java_home} is {actual}: "
                "point JAVA_HOME at a suitable one, or unset it"
            )
        return Path(java_home)
    unsuitable = []
    for home in _candidates(environment):
        version = java_version(home)
        if _is_suitable(version):
            return home
        unsuitable.append(f"{home} is {f'Java {version}' if version else 'not a Java installation'}")
    candidates = "; ".join(unsuitable) or "none was found"
    raise BadEnvironment(f"Spark 4.1 needs Java 17 or 21 ({candidates}): install one, or set JAVA_HOME")


def _is_suitable(version: int | None) -> bool:
    return version is not None and OLDEST <= version <= NEWEST


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in _USUAL_FOLDERS:
        root = Path(pattern[: pattern.index("*")])
        if root.is_dir():
            yield from sorted(root.glob(pattern[len(str(root)) + 1 :]))
