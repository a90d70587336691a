"""The class-data archive: used if it fits, else omitted."""

import os
from pathlib import Path

import pytest

from engine.job import SparkJob
from engine.spark.class_data_archive import archive_option, create_archive, discard_if_crashed, find_archive
from engine.spark.submit import SMALL_INPUT, compiler_option, environment
from sluice.errors import BadEnvironment
from sluice.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    jars = tmp_path / "jars" / "spark"
    jars.mkdir(parents=True)
    (jars / "iceberg.jar").write_text("jar")
    return Settings.of(sluice_home=tmp_path)


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java home with a release file and nothing more."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text("17")
    return home


@pytest.fixture
def archive(settings: Settings, java: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive as the warm-up job leaves it, without running the job."""

    def warm_up(_: list[str], env: dict[str, str], **__: object) -> None:
        option = next(word for word in env["SPARK_SUBMIT_OPTS"].split() if "ArchiveClassesAtExit" in word)
        Path(option.split("=")[1]).write_text("classes")

    monkeypatch.setattr("engine.spark.class_data_archive.subprocess.run", warm_up)
    return create_archive(settings.spark_jobs, java, {})


def test_an_archive_fits_one_java_and_one_class_path(settings: Settings, java: Path, archive: Path) -> None:
    assert find_archive(settings.storage, java) == archive == create_archive(settings.spark_jobs, java, {})
    jar = settings.storage.sluice_home / "jars" / "spark" / "iceberg.jar"
    was = jar.stat()
    os.utime(jar, (1, 1))
    assert find_archive(settings.storage, java) is None
    os.utime(jar, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert find_archive(settings.storage, java) == archive
    (java / "release").write_text("21.0")
    assert find_archive(settings.storage, java) is None


def test_a_damaged_archive_is_not_used(settings: Settings, java: Path, archive: Path) -> None:
    archive.chmod(0o600)
    archive.write_text("class")
    assert find_archive(settings.storage, java) is None


@pytest.mark.parametrize(("code", "used"), [(0, True), (1, True), (137, True), (134, False), (139, False)])
def test_a_crash_of_the_jvm_is_the_archives_last(
    settings: Settings, java: Path, archive: Path, code: int, used: bool
) -> None:
    discard_if_crashed(archive, code)
    assert (find_archive(settings.storage, java) is not None) == used


def test_a_warm_up_job_that_fails_says_so(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match=r"no class-data archive could be made .* see .*warm-up\.log"):
        create_archive(settings.spark_jobs, tmp_path, {})


def test_options_come_after_those_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xss4m")
    option = archive_option(tmp_path / "a.jsa")
    assert environment(Settings().spark_jobs, tmp_path, option)["SPARK_SUBMIT_OPTS"] == f"-Xss4m {option}"


@pytest.mark.parametrize(("size", "quick"), [(None, False), (0, True), (SMALL_INPUT, False)])
def test_only_a_small_job_does_without_the_second_compiler(size: int | None, quick: bool, tmp_path: Path) -> None:
    job = SparkJob(program=tmp_path, folder=tmp_path, branch="b", catalog={}, input_bytes=size)
    assert bool(compiler_option(job)) == quick


def test_an_archive_of_another_user_is_discarded_for_this_process(
    settings: Settings, java: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark worker with a system user of its own cannot change the archive that was installed for all."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    discard_if_crashed(archive, 134)
    assert find_archive(settings.storage, java) is None and archive.exists()
