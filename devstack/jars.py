"""Getting the jars, with the Ivy that PySpark brings along: no Maven, no address of a repository."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pyspark

from devstack.errors import StackError
from engine.java import find_java

_DESCRIPTION = Path(__file__).with_name("jars.xml")
_PATTERN = "[conf]/[artifact]-[revision](-[classifier]).[ext]"


def install_jars(home: Path) -> None:
    """Put the jars of `jars.xml` under `home`/jars, unless exactly those are there already.

    Raises:
        StackError: they cannot be had.
    """
    target, stamp = home / "jars", home / "jars" / "installed"
    wanted = hashlib.sha256(_DESCRIPTION.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("Fetching the jars of Iceberg, Nessie and Temporal's test server (once, about 330 MB)", flush=True)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    cache = home / "ivy-cache"
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    command = [str(find_java() / "bin" / "java"), "-jar", str(ivy), "-ivy", str(_DESCRIPTION), "-cache", str(cache)]
    fetched = subprocess.run(
        [*command, "-warn", "-retrieve", str(target / _PATTERN)], capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0 or not all((target / each).is_dir() for each in ("spark", "nessie", "timeskip")):
        raise StackError(f"the jars could not be fetched:\n{(fetched.stdout + fetched.stderr)[-2000:]}")
    shutil.rmtree(cache, ignore_errors=True)
    stamp.write_text(wanted)
