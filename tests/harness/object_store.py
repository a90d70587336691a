"""An S3-compatible store for tests: versitygw, if it is installed or can be built."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from unittest import mock

import pytest
from pyarrow import fs

from devstack.errors import StackError
from devstack.jars import install_jars
from devstack.object_store import build_store_program
from devstack.processes import start, wait_until
from devstack.stack import ROOT, Stack
from tests.harness.ports import unused_port
from tests.harness.system import link_tools

KEY, SECRET = "key", "secret"


def store_program() -> Path:
    """Return the store's program: from the PATH, from an earlier build, or built by Go now. Else skip the test.

    A build takes minutes. One test process builds, the others wait.
    """
    with _installation():
        try:
            return build_store_program(ROOT / ".sluice")
        except StackError as error:
            pytest.skip(str(error))


def _link_jars(home: Path) -> None:
    """Add the jars for S3 to the jars of a home. They are not installed among those of the checkout.

    There, Spark would start without its archive of classes in all other tests.
    """
    own, folder = ROOT / ".sluice" / "tests", home / "jars"
    with _installation():
        install_jars(own, ["s3"])
    folder.unlink()
    folder.mkdir()
    for jars in (ROOT / ".sluice" / "jars").glob("*"):
        if jars.name != "s3":
            (folder / jars.name).symlink_to(jars)
    (folder / "s3").symlink_to(own / "jars" / "s3")


@contextmanager
def _installation() -> Iterator[None]:
    """Let one process at a time install what tests need."""
    with (ROOT / ".sluice" / "store.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def stack_with_store(folder: Path, **variables: str) -> Iterator[Stack]:
    """Yield a test's own stack with an object store, not yet started; stop it afterwards."""
    home = folder / "home"
    home.mkdir()
    link_tools(home)
    store_program()
    _link_jars(home)
    stack = Stack(home, {**os.environ, **variables, "SLUICE_HOME": str(home)}, s3=True)
    with mock.patch.dict(os.environ):  # the stack writes the credentials of its store here
        try:
            yield stack
        finally:
            stack.down()


@contextmanager
def running_store(
    folder: Path, *buckets: str, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[dict[str, str]]:
    """Run a store with empty buckets and variables of its own; yield the variables by which programs find it."""
    for bucket in buckets:
        (folder / "store" / bucket).mkdir(parents=True)
    address = f"127.0.0.1:{unused_port()}"
    program = str(store_program())
    command = [program, "--quiet", "--access", KEY, "--secret", SECRET, "--port", address, "posix", f"{folder}/store"]
    daemon = start("versitygw", command, {**os.environ, **settings}, folder / "store.log")
    variables = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL_S3": f"http://{address}",
        "AWS_REGION": "us-east-1",
    }
    try:
        wait_until(lambda: _lists(variables, buckets[0]), daemon)
        yield variables
    finally:
        daemon.stop()


def store_files(variables: dict[str, str]) -> fs.S3FileSystem:
    """Return a store as PyArrow's file system, which reads and writes independently of Sluice."""
    scheme, address = variables["AWS_ENDPOINT_URL_S3"].split("://")
    return fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=address, scheme=scheme, region="us-east-1"
    )


def _lists(variables: dict[str, str], bucket: str) -> bool:
    try:
        return bool(store_files(variables).get_file_info(fs.FileSelector(bucket)) is not None)
    except OSError:
        return False
