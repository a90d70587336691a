"""The object store of the local stack: versitygw on 127.0.0.1, with a source bucket and a lake bucket."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import requests
from pyarrow import fs

from devstack.errors import StackError
from devstack.identities import write_private
from runtime.store_access import CREDENTIALS_FILE

GO_PACKAGE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
BUCKETS = {"SOURCE_BUCKET": "source", "LAKE_BUCKET": "lake"}
"""Default names of the buckets, by the environment variable that sets the name."""
_QUICK_BUILD = ("-gcflags=all=-l", "-ldflags=-s -w")
"""Options of `go install` for a build without inlining and symbols, in less than half of the processor time."""
_REGION = "us-east-1"
_PROGRAM = "versitygw"


def find_store_program(home: Path) -> Path | None:
    """Return the store's program from the PATH, or the one that set-up built, or None."""
    built = home.absolute() / "bin" / _PROGRAM
    on_path = shutil.which(_PROGRAM)
    return Path(on_path) if on_path else built if built.exists() else None


def build_store_program(home: Path) -> Path:
    """Build the store's program with Go in `home`/bin, unless there is one already.

    Raises:
        StackError: there is no Go, or the build failed.
    """
    if program := find_store_program(home):
        return program
    go = shutil.which("go")
    if go is None:
        raise StackError(
            f"there is no {_PROGRAM} on the PATH, and no Go to build it: install it "
            "(https://github.com/versity/versitygw/releases), or install Go 1.24 or later"
        )
    folder = home.absolute() / "bin"
    print(f"Building {_PROGRAM} with Go (a minute or two)", flush=True)
    built = subprocess.run(
        [go, "install", *_QUICK_BUILD, GO_PACKAGE],
        env={**os.environ, "GOBIN": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    program = find_store_program(home)
    if program is None:
        raise StackError(f"`go install {GO_PACKAGE}` failed: {(built.stdout + built.stderr).strip()[-300:]}")
    return program


def store_command(home: Path, folder: Path, variables: Mapping[str, str]) -> list[str]:
    """Return the command that serves a folder's subfolders as buckets. It reads its credentials from variables.

    Raises:
        StackError: set-up has not built the program.
    """
    program = find_store_program(home)
    if program is None:
        raise StackError(f"there is no {_PROGRAM}: run `make store`")
    for name in BUCKETS:
        (folder / variables[name]).mkdir(parents=True, exist_ok=True)
    address = variables["AWS_ENDPOINT_URL_S3"].removeprefix("http://")
    return [str(program), "--quiet", "--port", address, "posix", str(folder)]


def store_variables(home: Path, address: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that programs need to find the store. They contain no secret.

    Args:
        environment: the user's variables, which may name the buckets.
    """
    return {
        "AWS_ENDPOINT_URL_S3": f"http://{address}",
        "AWS_REGION": _REGION,
        **{name: environment.get(name) or usual for name, usual in BUCKETS.items()},
        CREDENTIALS_FILE: str(home / "identity" / "store.json"),
    }


def make_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """Write the store's credentials and address to a file that only its owner can read; return them as variables.

    Existing credentials are kept.
    """
    file = Path(variables[CREDENTIALS_FILE])
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else {}
    written = {
        "AWS_ENDPOINT_URL_S3": variables["AWS_ENDPOINT_URL_S3"],
        "AWS_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": known.get("AWS_ACCESS_KEY_ID") or f"sluice{secrets.token_hex(6)}",
        "AWS_SECRET_ACCESS_KEY": known.get("AWS_SECRET_ACCESS_KEY") or secrets.token_urlsafe(30),
    }
    write_private(file, json.dumps(written, indent=1))
    return written


def server_variables(credentials: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the store's credentials. As arguments, they would be visible to every user."""
    return {
        "ROOT_ACCESS_KEY_ID": credentials["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_ACCESS_KEY": credentials["AWS_SECRET_ACCESS_KEY"],
    }


def store_answers(url: str) -> bool:
    """Return True if the store answers, even if the answer is a refusal because credentials are missing."""
    try:
        return requests.get(url, timeout=2).status_code < 500
    except requests.RequestException:
        return False


def upload(variables: Mapping[str, str], files: Iterable[tuple[Path, str]]) -> None:
    """Write local files to the source bucket, each under its key."""
    store = _open_store(variables)
    for file, key in files:
        with store.open_output_stream(f"{variables['SOURCE_BUCKET']}/{key}") as written:
            written.write(file.read_bytes())


def remove_keys(variables: Mapping[str, str], prefix: str, names: str) -> None:
    """Delete the objects below a prefix of the source bucket whose names begin with `names`."""
    store = _open_store(variables)
    below = fs.FileSelector(f"{variables['SOURCE_BUCKET']}/{prefix}", True)  # True: the prefix may be missing
    for each in store.get_file_info(below):
        if each.base_name.startswith(names):
            store.delete_file(each.path)


def _open_store(variables: Mapping[str, str]) -> fs.S3FileSystem:
    access = json.loads(Path(variables[CREDENTIALS_FILE]).read_text())
    scheme, address = access["AWS_ENDPOINT_URL_S3"].split("://")
    return fs.S3FileSystem(
        access_key=access["AWS_ACCESS_KEY_ID"],
        secret_key=access["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=address,
        scheme=scheme,
        region=_REGION,
    )


if __name__ == "__main__":
    try:
        build_store_program(Path(sys.argv[1]))
    except StackError as error:
        sys.exit(f"sluice: {error}")
