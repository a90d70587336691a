"""Watch the folders of landing zones: a file written there makes its zone list its files soon.

One thread watches all folders with one watch of the system (inotify on Linux). Every few seconds it checks for folders
that did not exist, were deleted or were replaced. If the system has no watch left, only the zones' own listings find
files.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from watchfiles import Change, watch

from lakehouse.source_files import is_hidden, part_matches, path_matches
from runtime.arrivals.notifications.known_zones import KnownZones
from runtime.arrivals.notifications.receiver_thread import run_in_thread
from runtime.arrivals.notifications.signal_sender import SignalSender
from runtime.arrivals.notifications.timing import TIMING, ReceiverTiming, pause_after
from sluice.arrivals.notified_zones import NamedFiles, NotifiedZones

_STEP_MS = 200
_ANY_FOLDERS = "**"
_COLLECT_MS = 1000
_CHANGED_EVERY = 10.0
"""Minimum interval between two signals about existing files, in seconds: a growing file changes often."""

Pattern = tuple[str, ...]
Folders = Mapping[str, set[tuple[str, Pattern]]]
"""Folders with their landing zones: the workflow id of each, and the parts of its pattern below the folder."""
Identity = dict[str, tuple[str, int, int]]
"""Existing folders, each with its real path, device and inode number: a recreated folder has another number."""

log = logging.getLogger("sluice.notifications")


async def watch_folders(
    known: KnownZones, sender: SignalSender, own: Sequence[str] = (), timing: ReceiverTiming = TIMING
) -> None:
    """Watch the folders of the landing zones until this is cancelled.

    Args:
        own: folders that workers write to, such as SLUICE_HOME: a change there is not the arrival of a file.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()

    def request(zones: NamedFiles, *every: float) -> None:
        if not stop.is_set():
            loop.call_soon_threadsafe(partial(sender.request, zones, *every))

    def wanted() -> Folders:
        return folders_of(known.zones)

    watcher = FolderWatcher(wanted, request, stop, own, timing)
    await run_in_thread(watcher.run, "folders of landing zones", stop)


class FolderWatcher:
    """Watches folders in a thread. `folders` returns the wanted folders, `request` makes zones list their files."""

    def __init__(
        self,
        folders: Callable[[], Folders],
        request: Callable[..., None],
        stop: threading.Event,
        own: Sequence[str] = (),
        timing: ReceiverTiming = TIMING,
    ) -> None:
        self._folders, self._request, self._stop, self._timing = folders, request, stop, timing
        self._own = tuple(f"{os.path.realpath(each)}/" for each in own)
        self._failures = 0
        self._skips_denied = False
        """True if unreadable folders are left out. The option also leaves out, silently, folders that get no watch."""

    def run(self) -> None:
        """Watch until `stop` is set."""
        while not self._stop.is_set():
            folders = self._folders()
            present = identify(folders)
            if not present:
                self._stop.wait(self._timing.folder_check)
                continue
            try:
                self._watch(folders, present)
            except PermissionError as error:
                if self._skips_denied:
                    self._pause_after(error)
                else:
                    log.warning("a folder below a landing zone cannot be read, and is not watched: %s", error)
                self._skips_denied = True
            except Exception as error:  # the system raises several types, for example for a folder just deleted
                self._pause_after(error)

    def _watch(self, folders: Folders, present: Identity) -> None:
        """Watch folders as long as they are the existing and wanted ones."""
        zones: dict[str, set[tuple[str, Pattern]]] = {}
        for folder, (real, _, _) in present.items():
            zones.setdefault(real, set()).update(folders[folder])
        stated = {id: (real, folder) for folder, (real, _, _) in present.items() for id, _ in folders[folder]}
        changes = watch(
            *zones,
            watch_filter=None,
            debounce=_COLLECT_MS,
            step=_STEP_MS,
            stop_event=self._stop,
            rust_timeout=int(self._timing.folder_check * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=self._skips_denied,
        )
        is_started, check_at = False, time.monotonic() + self._timing.folder_check
        for changed in changes:
            if not is_started:  # the changes do not contain files written before the watch began
                is_started, self._failures = True, 0
                self._request({id: set() for each in zones.values() for id, _ in each})
            self._take(zones, stated, changed)
            if time.monotonic() >= check_at:
                if self._folders() != folders or identify(folders) != present:
                    return
                check_at = time.monotonic() + self._timing.folder_check

    def _take(
        self, zones: Folders, stated: Mapping[str, tuple[str, str]], changed: Iterable[tuple[Change, str]]
    ) -> None:
        """Request a listing from the zones of changed files, with paths below the folder that each zone states."""

        def request(concerned: NamedFiles, *every: float) -> None:
            spelled = {id: {_spelled(path, *stated[id]) for path in paths} for id, paths in concerned.items()}
            if spelled:
                self._request(spelled, *every)

        changed = [(change, path) for change, path in changed if not path.startswith(self._own)]
        added = {path for change, path in changed if change == Change.added}
        grown = {path for change, path in changed if change == Change.modified} - added
        request(zones_above(zones, added))
        request(zones_above(zones, grown), _CHANGED_EVERY)

    def _pause_after(self, error: Exception) -> None:
        if not self._failures:
            log.warning("folders of landing zones are not watched now, only listings find files there: %s", error)
        self._failures += 1
        self._stop.wait(pause_after(self._timing.folder_pauses, self._failures))


def _spelled(path: str, real: str, folder: str) -> str:
    """Return the path of a file below a folder as stated, which may be a symbolic link or lie behind one."""
    return f"{folder}{path.removeprefix(real)}"


def folders_of(zones: NotifiedZones) -> Folders:
    """Return the folders to watch; for a zone that is one file, the folder that contains it."""
    folders: dict[str, set[tuple[str, Pattern]]] = {}
    for zone in zones.watchable():
        folder, pattern = zone.folder, zone.pattern
        if not pattern and os.path.isfile(folder):  # noqa: PTH113  # it raises no error
            folder, _, name = folder.rpartition("/")
            pattern = (name,)
        folders.setdefault(folder, set()).add((zone.workflow_id, pattern))
    return folders


def zones_above(zones: Folders, paths: Iterable[str]) -> NamedFiles:
    """Return the zones that list one of the paths, with these paths.

    A path may also be a folder. The zones that list files in it get an empty set, which stands for the whole zone.
    """
    concerned: dict[str, set[str]] = {}
    whole: set[str] = set()
    for path in paths:
        parts = path.split("/")
        for depth in range(len(parts) - 1, 0, -1):
            below = parts[depth:]
            for id, pattern in zones.get("/".join(parts[:depth]), ()):
                if id in whole:
                    continue
                if _leads_to(below, pattern, path):
                    whole.add(id)
                elif path_matches(below, pattern):
                    concerned.setdefault(id, set()).add(path)
    return concerned | {id: set() for id in whole}


def _leads_to(parts: Sequence[str], pattern: Pattern, path: str) -> bool:
    """Return True if a path is a folder in which a pattern may match: it may have arrived with its files."""
    fixed = pattern.index(_ANY_FOLDERS) if _ANY_FOLDERS in pattern else len(pattern)
    if fixed == len(pattern) and len(parts) >= len(pattern):
        return False
    is_on_the_way = all(map(part_matches, parts, pattern[:fixed])) and not any(map(is_hidden, parts[fixed:]))
    return is_on_the_way and os.path.isdir(path)  # noqa: PTH112  # it raises no error


def identify(folders: Iterable[str]) -> Identity:
    """Return the folders that exist, each with its identity."""
    present: Identity = {}
    for folder in folders:
        try:
            real = Path(folder).resolve()
            now = real.stat()
        except (OSError, ValueError, RuntimeError):
            continue
        if real.is_dir() and str(real) != real.anchor:  # never watch the whole file system
            present[folder] = (str(real), now.st_dev, now.st_ino)
    return present
