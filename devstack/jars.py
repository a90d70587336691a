"""Getting the jars, with the Ivy that PySpark brings along: no Maven, no address of a repository."""

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

from devstack.errors import StackError
from engine.spark.java import find_java

_DESCRIPTION = Path(__file__).with_name("jars.xml")
LOCAL = ("spark", "nessie", "timeskip")
_SIZE = "about 330 MB in all"
_STAMP = "installed"
_PATTERN = "[conf]/[artifact]-[revision](-[classifier]).[ext]"


def install_jars(home: Path, purposes: Sequence[str] = LOCAL) -> None:
    """Put the jars of these purposes in `jars.xml` under `home`/jars, unless exactly those are there already.

    Raises:
        StackError: they cannot be had.
    """
    wanted = hashlib.sha256(_DESCRIPTION.read_bytes()).hexdigest()
    missing = [each for each in purposes if not _installed(home / "jars" / each, wanted)]
    if not missing:
        return
    print(f"Fetching jars for {', '.join(missing)} (once, {_SIZE})", flush=True)
    cache, target = home / "ivy-cache", home / "jars"
    for each in missing:
        shutil.rmtree(target / each, ignore_errors=True)
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    command = [str(find_java() / "bin" / "java"), "-jar", str(ivy), "-ivy", str(_DESCRIPTION), "-cache", str(cache)]
    fetched = subprocess.run(
        [*command, "-warn", "-confs", *missing, "-retrieve", str(target / _PATTERN)],
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode != 0 or not all((target / each).is_dir() for each in missing):
        raise StackError(f"the jars could not be fetched:\n{(fetched.stdout + fetched.stderr)[-2000:]}")
    shutil.rmtree(cache, ignore_errors=True)
    for each in missing:
        (target / each / _STAMP).write_text(wanted)


def _installed(folder: Path, wanted: str) -> bool:
    stamp = folder / _STAMP
    return stamp.exists() and stamp.read_text() == wanted
