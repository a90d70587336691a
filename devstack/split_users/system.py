"""Create system users and groups, and folders and files with given owners and modes."""

import grp
import os
import pwd
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.errors import StackError

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,30}")


@dataclass(frozen=True)
class Account:
    """A system user; `gid` is the user's own group."""

    name: str
    uid: int
    gid: int


def check_names(control: str, spark: str, group: str) -> None:
    """Check that the names are valid and different, and that only these users are in an existing group.

    Raises:
        StackError: a name is invalid or used twice, or the group has other members, or none.
    """
    for name in (control, spark, group):
        if not _NAME.fullmatch(name) or name == "root":
            raise StackError(f"{name!r} cannot be the name: use small letters, digits, - and _, but not root")
    if len({control, spark, group}) < 3:
        raise StackError(f"{control}, {spark}, {group}: the users and the group need different names")
    known = {each.gr_name: each for each in grp.getgrall()}
    if group not in known:
        return
    members = {*known[group].gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == known[group].gr_gid)}
    if not members or members - {control, spark}:
        of = ", ".join(sorted(members - {control, spark})) or "nobody"
        raise StackError(
            f"the group {group} is there already, with members: {of}. They would read the lake, and the two workers "
            f"would read the group's files. Name another --group; if this command was interrupted before, run "
            f"`groupdel {group}`"
        )


def check_user(name: str, home: Path) -> bool:
    """Return True if a user exists.

    Raises:
        StackError: the existing user is root, or has another home, and so belongs to somebody else.
    """
    for user in pwd.getpwall():
        if user.pw_name == name:
            if user.pw_dir != str(home) or not user.pw_uid:
                raise StackError(f"the user {name} is there already, with the home {user.pw_dir}: choose another name")
            return True
    return False


def ensure_user(name: str, home: Path, group: str) -> tuple[Account, bool]:
    """Create a user without a login in its own group and in `group`; return the account, and True if it is new."""
    is_new = not check_user(name, home)
    if is_new:
        account = ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin"]
        _system("useradd", *account, "--groups", group, "--home-dir", str(home), name)
    elif name not in grp.getgrnam(group).gr_mem:
        _system("usermod", "--append", "--groups", group, name)
    user = pwd.getpwnam(name)
    return Account(name, user.pw_uid, user.pw_gid), is_new


def ensure_group(name: str) -> bool:
    """Create a group if it is missing; return True if it is new."""
    is_new = name not in {group.gr_name for group in grp.getgrall()}
    if is_new:
        _system("groupadd", "--system", name)
    return is_new


def ensure_folder(path: Path, uid: int, gid: int, mode: int) -> Path:
    """Create a folder, or change an existing one, so that it has this owner, group and mode.

    Raises:
        StackError: the folder cannot be created, or something else has its name.
    """
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        # Links are not followed, since a link in a folder to which jobs write could lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise StackError(f"the folder {path} cannot be created: {error.strerror}") from error
    try:
        os.fchown(descriptor, uid, gid)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    return path


def write_file(file: Path, text: str, gid: int, mode: int) -> None:
    """Write a file of root atomically, in a folder that only root can change."""
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        os.fchown(out.fileno(), 0, gid)
        os.fchmod(out.fileno(), mode)
        out.write(text)
    new.replace(file)


def run_as(account: Account, group: str, *command: str) -> str:
    """Run a command as a user in a group; return its output, or the last line of its error."""
    who: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": [grp.getgrnam(group).gr_gid]}
    try:
        done = subprocess.run(command, cwd="/", env={}, capture_output=True, text=True, check=False, **who)
    except OSError as error:
        return str(error)
    return (done.stderr.strip() or "it failed").splitlines()[-1] if done.returncode else done.stdout


def _system(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError as error:
        raise StackError(f"{command[0]} is needed to manage users, and cannot be run: {error.strerror}") from error
    if done.returncode:
        raise StackError(f"{' '.join(command)} failed: {done.stderr.strip() or done.returncode}")
