"""The commands that make keys: one that signs decisions, one that encrypts what Temporal keeps."""

import getpass
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from runtime.codec import new_codec_key
from sluice.approval.signatures import new_approver_key


def approver_key(
    file: Annotated[Path, typer.Argument(help="Where the private key is to be kept; it must not be there yet.")],
    by: Annotated[str | None, typer.Option("--by", help="Whose key it is.", show_default="you")] = None,
) -> None:
    """Make a key that signs decisions, and print the line that lists its owner among those who may decide."""
    pem, public = new_approver_key()
    write_secret(file, pem)
    print(f"{by or getpass.getuser()} {public}")


def write_secret(file: Path, text: str) -> None:
    """Write a secret into a new file, for its owner's eyes alone.

    Leaves with 2 if the file is there already, or its folder is not.
    """
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        refuse(f"{file} is there already; a key is never overwritten")
    except OSError as error:
        refuse(f"{file}: {error.strerror}")
    file.write_text(text)


def refuse(why: str) -> NoReturn:
    """Leave with the exit code of wrong use, and one message."""
    print(f"sluice: {why}", file=sys.stderr)
    raise typer.Exit(2)


def codec_key(
    file: Annotated[Path, typer.Argument(help="Where the key is to be kept; it must not be there yet.")],
) -> None:
    """Make a key that encrypts what Temporal keeps. Without it, nobody can read that again: keep a copy."""
    write_secret(file, f"{new_codec_key()}\n")
    print(f"Set SLUICE_CODEC_KEY_FILE={file} for the worker, the front door and the codec server.")
