"""The steps of the set-up, their dependencies, and the steps that each purpose needs."""

import os
import shutil
import sys
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path

from devstack.set_up.registry import uv_settings
from devstack.set_up.step import Stamp, Step, bytes_in, bytes_written_by, fingerprint, steps_to_run
from devstack.temporal_cli import find_users_cli
from engine.spark.java import find_java

_GOALS = {
    "python": ("packages",),
    "use": ("packages", "temporal", "spark-jars", "nessie", "data"),
    "develop": ("packages", "temporal", "spark-jars", "nessie", "time-skipping", "iceberg-rest", "data"),
    "s3": ("packages", "s3-jars"),
    "store": ("packages", "s3-jars", "store"),
}
PURPOSES = {
    "python": "run lint, types and unit tests",
    "use": "run pipelines on this machine",
    "develop": "run every test",
    "s3": "read and write S3",
    "store": "read and write S3 on this machine",
}
"""Descriptions of the purposes of set-up, by their names in the commands of `make`."""
WITH_SPARK_JARS = frozenset(purpose for purpose, goals in _GOALS.items() if {"spark-jars", "s3-jars"} & {*goals})
"""The purposes that install jars of Spark. Spark needs another archive with other jars."""
_DEVELOPMENT = frozenset({"python", "develop"})
_JARS = {
    "spark-jars": ("spark", "Iceberg's runtime for Spark, and SQLite's driver (60 MB)"),
    "nessie": ("nessie", "the Nessie server (245 MB)"),
    "time-skipping": ("timeskip", "Temporal's test server that skips time (39 MB)"),
    "iceberg-rest": ("iceberg-rest", "Iceberg's REST reference server, for tests (20 MB)"),
    "s3-jars": ("s3", "what Spark needs for S3 (70 MB)"),
}
_STORED = "--build-option=--compression=stored"
"""Build option that stores files uncompressed. PySpark is built from source, and compressing its 480 MB of jars takes
long."""


class Plan:
    """The steps for one copy of the project, its home (`.sluice`), and one purpose."""

    def __init__(self, root: Path, home: Path, purpose: str) -> None:
        self._root, self._home, self._purpose = root, home, purpose
        self._venv, self._tool = root / ".venv", home / "uv"
        self._python, self._uv = self._venv / "bin" / "python", self._tool / "bin" / "uv"
        self._version = "{}.{}".format(*sys.version_info)

    def missing(self) -> list[Step]:
        """Return the steps that are not done yet.

        Raises:
            BadEnvironment: there is no suitable Java. This is checked before 700 MB are downloaded.
        """
        missing = steps_to_run(self.steps(), _GOALS[self._purpose])
        if any(step.name in _JARS for step in missing):
            find_java()
        return missing

    def steps(self) -> list[Step]:
        """Return all steps, done or not."""
        jars = [self._jars(name) for name in _JARS]
        return [
            self._installer(),
            self._packages(),
            self._temporal(),
            *jars,
            self._store(),
            self._data(),
        ]

    def _installer(self) -> Step:
        lock = self._lock("uv")
        pip = (str(self._tool / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check")
        return Step(
            name="installer",
            title="uv, which installs the rest (24 MB)",
            commands=(
                (sys.executable, "-m", "venv", "--clear", str(self._tool)),
                (*pip, "--no-compile", "--require-hashes", "-r", str(lock)),
            ),
            stamp=Stamp(self._tool / "installed", partial(fingerprint, lock, self._version)),
            output=self._uv,
        )

    def _packages(self) -> Step:
        """Return the step that fills `.venv` with the packages for users, or with these and the development tools.

        A complete `.venv` for users gets the development tools added. Any other `.venv` is cleared first, so that a
        partly filled folder is never continued. uv keeps its downloads in its cache.
        """
        users, developers = (fingerprint(self._lock(name), self._version) for name in ("local", "dev"))
        develop = self._purpose in _DEVELOPMENT
        stamp = Stamp(self._venv / "installed", lambda: developers if develop else users, (developers,))
        whole = Stamp(stamp.file, lambda: users).is_valid() and self._python.exists()
        return Step(
            name="packages",
            title=f"Python packages{' and development tools' if develop else ''}, Spark among them (700 MB)",
            commands=(
                *(() if develop and whole else self._create_venv()),
                self._install("--python", str(self._python), lock="dev" if develop else "local"),
            ),
            stamp=stamp,
            needs=("installer",),
            output=self._python,
            environment=lambda: self._uv_environment,
            size=bytes_written_by,
        )

    def _create_venv(self) -> tuple[tuple[str, ...], ...]:
        create = (str(self._uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(self._venv))
        # Clearing the target of a link would delete somebody else's environment.
        return (("rm", str(self._venv)), create) if self._venv.is_symlink() else (create,)

    def _install(self, *target: str, lock: str) -> tuple[str, ...]:
        uv = (str(self._uv), "pip", "install", "--no-deps", "--require-hashes", f"--config-setting={_STORED}")
        return (*uv, "--build-constraints", str(self._lock("build")), *target, "-r", str(self._lock(lock)))

    @cached_property
    def _uv_environment(self) -> Mapping[str, str]:
        settings = uv_settings(self._tool / "bin" / "python", os.environ)
        return {"UV_PYTHON_DOWNLOADS": "never", **settings}

    def _temporal(self) -> Step:
        unpacked, lock = self._home / "bin" / "unpacked", self._lock("temporal")
        install = (sys.executable, "-m", "devstack.temporal_cli", str(self._home))
        return Step(
            name="temporal",
            title="Temporal's command line, which is the development server too (50 MB)",
            commands=((*install, *self._install("--target", str(unpacked), lock="temporal")),),
            stamp=Stamp(self._home / "bin" / "installed", partial(fingerprint, lock)),
            needs=("installer",),
            output=self._home / "bin" / "temporal",
            environment=lambda: self._uv_environment,
            unnecessary=lambda: find_users_cli() is not None,
        )

    def _jars(self, name: str) -> Step:
        purpose, title = _JARS[name]
        cache = self._home / "ivy-cache" / purpose
        description = self._root / "devstack" / "jars.xml"
        return Step(
            name=name,
            title=title,
            commands=(self._program("jars", self._home, purpose),),
            stamp=Stamp(self._home / "jars" / purpose / "installed", partial(fingerprint, description)),
            needs=("packages",),
            size=lambda _: bytes_in(cache),
        )

    def _store(self) -> Step:
        program = self._home / "bin" / "versitygw"
        return Step(
            name="store",
            title="versitygw, a server that keeps S3 in a folder, built by Go",
            commands=(self._program("object_store", self._home),),
            stamp=Stamp(self._home / "bin" / "store-installed", lambda: "versitygw"),
            needs=("packages",),
            unnecessary=lambda: bool(shutil.which("versitygw")) or program.exists(),
        )

    def _data(self) -> Step:
        data = self._root / "data"
        return Step(
            name="data",
            title="the flights of the demo, one file a month, and film permits",
            commands=(self._program("landing", data),),
            stamp=Stamp(data / "done", lambda: "flights and permits, and a list of them"),
            needs=("packages",),
        )

    def _program(self, module: str, *arguments: Path | str) -> tuple[str, ...]:
        return (str(self._python), "-m", f"devstack.{module}", *map(str, arguments))

    def _lock(self, name: str) -> Path:
        return self._root / "locks" / f"{name}.txt"
