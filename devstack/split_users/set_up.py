"""Set up two users, their folders and settings, and the lake that they share."""

import grp
import json
import os
import shlex
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.errors import StackError
from devstack.split_users import probe
from devstack.split_users.system import (
    Account,
    check_names,
    check_user,
    ensure_folder,
    ensure_group,
    ensure_user,
    run_as,
    write_file,
)
from devstack.split_users.worker_settings import env_file, environment_file, given_to, temporal_credentials
from engine.spark.java import find_java
from runtime.installation.identity import with_installation
from sluice.secrets import read_secret
from sluice.setting_groups import StorageSettings
from sluice.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parents[2]
_TOKENS = {"control": "NESSIE_PUBLISHER_TOKEN_FILE", "spark": "NESSIE_WRITER_TOKEN_FILE"}
_SECRET_FILES = (
    *("NESSIE_PUBLISHER_TOKEN_FILE", "SLUICE_CODEC_KEY_FILE", "SLUICE_APPROVAL_KEY_FILE", "SLUICE_CODEC_TOKEN_FILE"),
    "TEMPORAL_TLS_CLIENT_KEY_PATH",
)
_PARTS_OF_LAKE = {
    "sluice-audits": ("control", 0o2700),
    "sluice-inputs": ("control", 0o2750),
    "sluice": ("control", 0o2750),
    "sluice-scans": ("spark", 0o2750),
}
"""Role and mode of the lake's folders with one writer: reports, input manifests, audit results, answers of scans."""
_UMASKS = {"control": "0027", "spark": "0007"}
"""Umask of each worker. Each reads the other's files in the lake; the control worker also writes to tables' folders."""
_ENVIRONMENT = "spark.environment"
"""Name of root's file with the environment of the Spark worker."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HADOOP_UMASK = "spark.hadoop.fs.permissions.umask-mode 007\n"
"""Spark property from which Hadoop sets the modes of Spark's files, whatever the umask of the process is."""


@dataclass(frozen=True)
class Request:
    """The arguments of the command."""

    control: str
    spark: str
    group: str
    folder: Path
    env: Path
    given: Mapping[str, str]
    """The settings of the installation, from `env` and from the running local stack."""
    python: Path


def set_up(asked: Request, tell: Callable[[str], None]) -> dict[str, str]:
    """Create missing users, folders and settings, check them, and return the commands that start the two workers.

    Raises:
        StackError: the set-up fails, or would not keep the two users apart.
        BadEnvironment: the settings are wrong.
    """
    settings = read_settings({**asked.given})
    tokens = {role: read_secret(asked.given.get(name, ""), name) for role, name in _TOKENS.items()}
    if not all(tokens.values()) or len({*tokens.values()}) < 2:
        raise StackError(
            f"{' and '.join(_TOKENS.values())} must name two different tokens: with the publisher's, or with none, "
            "jobs of any user could change main (docs/operations.md, Identities)"
        )
    environment, java = environment_file(temporal_credentials(asked.given)), find_java({**os.environ, **asked.given})
    names = {"control": asked.control, "spark": asked.spark}
    check_names(asked.control, asked.spark, asked.group)
    for role, name in names.items():
        check_user(name, asked.folder / role / "sluice")
    _check_owner(asked.folder)

    if ensure_group(asked.group):
        tell(f"created the group {asked.group}")
    accounts: dict[str, Account] = {}
    for role, name in names.items():
        accounts[role], is_new = ensure_user(name, asked.folder / role / "sluice", asked.group)
        if is_new:
            tell(f"created the user {name}")
    ensure_folder(asked.folder, 0, 0, 0o755)
    lake = _lake(asked, settings.storage)
    if "://" not in lake:
        _share_lake(Path(lake), accounts, asked.group)
    settings = with_installation(settings)
    for role, account in accounts.items():
        _fill_folder(asked.folder / role, role, account, settings, _variables(role, asked, settings, lake), tokens)
    if not (asked.folder / _ENVIRONMENT).exists():
        write_file(asked.folder / _ENVIRONMENT, environment, 0, 0o600)
    _check_access(asked, accounts, settings.storage, lake, java)
    tell(f"set up {asked.folder}; the lake is {lake}")
    if settings.encryption.sluice_codec_key_file:
        tell("SLUICE_CODEC_KEY_FILE: the Spark worker needs the key too, and its jobs can read it")
    return {role: _command(asked, role, java) for role in names}


def _check_owner(folder: Path) -> None:
    """Check that only root can change or create the folder."""
    if not folder.parent.is_dir():
        raise StackError(f"{folder.parent} does not exist: create it, or name another --folder")
    for each in (folder, folder.parent):
        if not each.exists():
            continue
        status = each.stat()
        open_to_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid or open_to_others:
            raise StackError(f"users other than root can change {each}: name another --folder")


def _lake(asked: Request, settings: StorageSettings) -> str:
    """Return the lake of the settings, else the existing lake of the home, else a new one in the folder."""
    local = settings.sluice_home.absolute() / "lake"
    so_far = local if local.is_dir() and any(local.iterdir()) else asked.folder / "lake"
    lake = settings.warehouse.removeprefix("file://") or str(so_far)
    return lake if "://" in lake else str(Path(lake).absolute())


def _share_lake(lake: Path, accounts: Mapping[str, Account], group: str) -> None:
    """Create the lake's folder, to which both users write, and the folders in it to which one user writes.

    In a folder with the sticky bit, a user cannot rename or delete another user's files.
    """
    control, gid = accounts["control"], grp.getgrnam(group).gr_gid
    if lake.exists() and lake.stat().st_uid != control.uid:
        commands = [f"chown -R {control.name}:{group} {lake}", f"chmod -R g+rwX,o-rwx {lake}"]
        parts = [(lake / name, accounts[role].name) for name, (role, _) in _PARTS_OF_LAKE.items()]
        commands += [f"chown -R {name} {part} && chmod -R g-w {part}" for part, name in parts if part.is_dir()]
        raise StackError(
            f"{lake} exists and does not belong to {control.name}. To let both users use this lake, "
            "end all workers, run\n  " + " &&\n  ".join(commands) + "\nand this command again"
        )
    ensure_folder(lake, control.uid, gid, 0o3770)
    for name, (role, mode) in _PARTS_OF_LAKE.items():
        ensure_folder(lake / name, accounts[role].uid, gid, mode)


def _variables(role: str, asked: Request, settings: Settings, lake: str) -> dict[str, str]:
    folder = asked.folder / role
    variables = {
        **given_to(role, asked.given),
        "SLUICE_WORKER_ROLE": role,
        "SLUICE_HOME": str(folder / "sluice"),
        "SLUICE_INSTALLATION": settings.installation.sluice_installation,
        "WAREHOUSE": lake,
        _TOKENS[role]: str(folder / "nessie.token"),
    }
    if settings.encryption.sluice_codec_key_file:
        variables["SLUICE_CODEC_KEY_FILE"] = str(folder / "codec.key")
    if role == "spark":
        variables["SPARK_PROPERTIES_FILE"] = str(folder / "spark.properties")
    return variables


def _fill_folder(
    folder: Path,
    role: str,
    account: Account,
    settings: Settings,
    variables: Mapping[str, str],
    tokens: Mapping[str, str],
) -> None:
    """Create a worker's folder. The worker reads root's files in it, and writes to the folders below.

    Root also owns the links to the tools, so that the sticky bit keeps jobs from replacing the jars of the next job.
    """
    ensure_folder(folder, 0, account.gid, 0o750)
    ensure_folder(folder / "tmp", account.uid, account.gid, 0o700)
    home = ensure_folder(folder / "sluice", 0, account.gid, 0o1770)
    for tool in ("jars", "cds"):
        target = (settings.storage.sluice_home.absolute() / tool).resolve()
        if target.is_dir() and (home / tool).resolve() != target:
            (home / tool).unlink(missing_ok=True)
            (home / tool).symlink_to(target)
    files = {"nessie.token": f"{tokens[role]}\n", ".env": env_file(role, variables)}
    if codec_key := read_secret(settings.encryption.sluice_codec_key_file, "SLUICE_CODEC_KEY_FILE"):
        files["codec.key"] = f"{codec_key}\n"
    if role == "spark":
        more = settings.spark.spark_properties_file
        files["spark.properties"] = (Path(more).read_text().rstrip("\n") + "\n" if more else "") + _HADOOP_UMASK
    for name, text in files.items():
        write_file(folder / name, text, account.gid, 0o640)


def _check_access(
    asked: Request, accounts: Mapping[str, Account], settings: StorageSettings, lake: str, java: Path
) -> None:
    """Check, as each user, that the user can read what it needs and cannot reach the other user's files.

    Raises:
        StackError: a check failed. The message lists all problems.
    """
    named = {
        role: [value for name, value in given_to(role, asked.given).items() if name.endswith(("_FILE", "_PATH"))]
        for role in accounts
    }
    secret = [asked.env, *(asked.given[name] for name in _SECRET_FILES if asked.given.get(name))]
    for_spark = [java / "bin" / "java", (settings.sluice_home.absolute() / "jars").resolve()]
    fixed = [ROOT, asked.folder / "control", *named["control"]]
    questions: dict[str, dict[str, list[Any]]] = {
        "control": {"readable": named["control"], "secret": [], "fixed": []},
        "spark": {"readable": [*named["spark"], *for_spark], "secret": secret, "fixed": fixed},
    }
    wrong = []
    for role, account in accounts.items():
        question = json.dumps({**questions[role], "but": [asked.folder, lake, *ROOT.glob(".*")]}, default=str)
        done = run_as(account, asked.group, str(asked.python), probe.__file__, question)
        try:
            wrong += [f"{account.name} {problem}" for problem in json.loads(done)]
        except ValueError:
            wrong.append(
                f"{account.name} cannot run {probe.__file__} with {asked.python} ({done}): install Sluice and its "
                "Python where all users can read them, or name another --python"
            )
    if wrong:
        raise StackError(
            "the two users are not ready:\n  " + "\n  ".join(wrong) + "\nFix this, and run the command again"
        )


def _command(asked: Request, role: str, java: Path) -> str:
    """Return the command that starts a worker as its user, without the environment of the shell that starts it."""
    folder, name = asked.folder / role, getattr(asked, role)
    variables = {"HOME": folder / "sluice", "USER": name, "LOGNAME": name, "PATH": _PATH, "LANG": "C.UTF-8"}
    variables |= {"TMPDIR": folder / "tmp", "JAVA_HOME": java}
    # Root's shell reads the file, whose lines become environment variables of the worker.
    filled = ["sh", "-c", f'set -a; . {shlex.quote(str(asked.folder / _ENVIRONMENT))}; exec "$@"', "sh"]
    words = [
        *("env", "-i", *(f"{variable}={value}" for variable, value in variables.items())),
        *(filled if role == "spark" else []),
        *("setpriv", f"--reuid={name}", f"--regid={asked.group}", "--init-groups", "--no-new-privs"),
        *(str(asked.python), str(ROOT / "worker.py")),
    ]
    return f"cd {shlex.quote(str(folder))} && umask {_UMASKS[role]} && exec {shlex.join(words)}"
