"""What killed processes leave behind: files that were being written, folders that were being filled.

Only what can't be anybody's work is removed. The caller knows that no one else is at work (`presence`).
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from forge.ledger.durable import PART_PREFIX, fsync_folder
from forge.ledger.failures import storage_errors
from forge.ledger.runs.directory import CAS, RunDirectory, open_runs


def sweep(home: Path, runs_root: Path, *, known_runs: Collection[str]) -> list[str]:
    """Remove half-written files and empty folders of runs that never began; their names, relative to `home`.

    A folder that holds something stays, whoever it belongs to.
    """
    with storage_errors(home):
        found = [*_parts(home, runs_root), *_never_begun(runs_root, known_runs)]
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            fsync_folder(path.parent)
    return sorted(path.relative_to(home).as_posix() for path in found)


def unknown_runs(runs_root: Path, known_runs: Collection[str]) -> list[str]:
    """Open runs on the disk that the ledger knows nothing of: left by a newer copy of it, or put there by hand."""
    return [run_id for run_id in open_runs(runs_root) if run_id not in known_runs]


def _parts(home: Path, runs_root: Path) -> Iterator[Path]:
    """Files and folders under the name that only unfinished ones have."""
    folders = [home, home / "keys", runs_root, runs_root / CAS]
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
