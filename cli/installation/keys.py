"""The commands that make keys: one key signs decisions, the other encrypts the data that Temporal stores."""

import getpass
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from runtime.codec import new_codec_key
from sluice.approval.signatures import new_approver_key


def approver_key(
    file: Annotated[Path, typer.Argument(help="The file for the private key; it must not exist yet.")],
    by: Annotated[
        str | None, typer.Option("--by", help="The person who signs with the key.", show_default="you")
    ] = None,
) -> None:
    """Make a key that signs decisions; print the line for the list of approvers."""
    pem, public = new_approver_key()
    write_secret(file, pem)
    print(f"{by or getpass.getuser()} {public}")


def write_secret(file: Path, text: str) -> None:
    """Write a secret into a new file that only its owner can read.

    Exits with code 2 if the file exists, or its folder does not.
    """
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        refuse(f"{file} exists, and a key is never overwritten: name another file")
    except OSError as error:
        refuse(f"{file}: {error.strerror}")
    file.write_text(text)


def refuse(why: str) -> NoReturn:
    """Print one message, and exit with the code of wrong use."""
    print(f"sluice: {why}", file=sys.stderr)
    raise typer.Exit(2)


def codec_key(
    file: Annotated[Path, typer.Argument(help="The file for the key; it must not exist yet.")],
) -> None:
    """Make a key that encrypts what Temporal stores. Data cannot be read without it: keep a copy."""
    write_secret(file, f"{new_codec_key()}\n")
    print(f"Set SLUICE_CODEC_KEY_FILE={file} for the worker, the command line and the codec server.")
