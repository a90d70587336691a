"""Download the jars with PySpark's own Ivy, without Maven and without the address of a repository."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from devstack.errors import StackError
from engine.spark.java import find_java
from sluice.errors import SluiceError

_DESCRIPTION = Path(__file__).with_name("jars.xml")
_STAMP = "installed"
_PATTERN = "[conf]/[artifact]-[revision](-[classifier]).[ext]"


def install_jars(home: Path, purposes: Sequence[str]) -> None:
    """Install the jars of these purposes in `jars.xml` under `home`/jars, unless exactly they are there already.

    Raises:
        StackError: the jars cannot be downloaded.
    """
    wanted = hashlib.sha256(_DESCRIPTION.read_bytes()).hexdigest()
    for purpose in purposes:
        if not _is_installed(home / "jars" / purpose, wanted):
            _install(home, purpose)
            (home / "jars" / purpose / _STAMP).write_text(wanted)


def _install(home: Path, purpose: str) -> None:
    """Download the jars for one purpose. After a failure, the cache keeps the complete downloads for the next try."""
    cache, target = home / "ivy-cache" / purpose, home / "jars"
    shutil.rmtree(target / purpose, ignore_errors=True)
    command = [str(find_java() / "bin" / "java"), "-jar", str(_ivy()), "-ivy", str(_DESCRIPTION), "-cache", str(cache)]
    fetched = subprocess.run(
        [*command, "-confs", purpose, "-retrieve", str(target / _PATTERN)], capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0 or not (target / purpose).is_dir():
        raise StackError(f"the jars for {purpose} could not be fetched:\n{(fetched.stdout + fetched.stderr)[-2000:]}")
    shutil.rmtree(cache, ignore_errors=True)


def _ivy() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark and pyspark.origin
    return next((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))


def _is_installed(folder: Path, wanted: str) -> bool:
    stamp = folder / _STAMP
    return stamp.exists() and stamp.read_text() == wanted


if __name__ == "__main__":
    try:
        install_jars(Path(sys.argv[1]), sys.argv[2:])
    except (StackError, SluiceError) as error:
        sys.exit(f"sluice: {error}")
