"""Removes what killed processes left: unfinished files, and folders that were being filled.

Only files that can't be a person's work are removed. The caller has checked that no other process is at work
(`crash_marker`).
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from forge.ledger.durable import PART_PREFIX, fsync_folder
from forge.ledger.failures import storage_errors
from forge.ledger.runs.directory import RunDirectory, open_runs
from forge.ledger.runs.names import BRIEFS, CAS


def sweep(home: Path, runs_root: Path, *, known_runs: Collection[str], only_look: bool = False) -> list[str]:
    """Remove unfinished files, and empty folders of runs that never began; return their names, relative to `home`.

    A folder that holds anything is kept. `only_look` removes nothing.
    """
    with storage_errors(home):
        found = [*_parts(home, runs_root), *_never_begun(runs_root, known_runs)]
        for path in () if only_look else found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            fsync_folder(path.parent)
    return sorted(path.relative_to(home).as_posix() for path in found)


def unknown_runs(runs_root: Path, known_runs: Collection[str]) -> list[str]:
    """Return open runs on disk that the ledger doesn't know: a newer copy of the ledger or a person made them."""
    return [run_id for run_id in open_runs(runs_root) if run_id not in known_runs]


def _parts(home: Path, runs_root: Path) -> Iterator[Path]:
    """Yield files and folders with a name that only unfinished ones have."""
    folders = [home, home / "keys", runs_root, runs_root / CAS, runs_root / BRIEFS]
    folders += [entry for entry in _entries(runs_root / CAS) if entry.is_dir() and not entry.is_symlink()]
    open_folders = [RunDirectory(runs_root, run_id).open_path for run_id in open_runs(runs_root)]
    for folder in folders:
        yield from (entry for entry in _entries(folder) if entry.name.startswith(PART_PREFIX))
    for folder in open_folders:
        yield from (entry for entry in folder.rglob(f"{PART_PREFIX}*") if stat.S_ISREG(os.lstat(entry).st_mode))


def _never_begun(runs_root: Path, known_runs: Collection[str]) -> Iterator[Path]:
    for run_id in unknown_runs(runs_root, known_runs):
        folder = RunDirectory(runs_root, run_id).open_path
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            yield folder


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
