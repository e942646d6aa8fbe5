"""Copies a whole workspace while other processes write in it, and checks the copy.

A backup has the form of a workspace, so that `forge ledger verify --home BACKUP` checks it in place. It lacks derived
files (`kernel_registry/`) and, unless it is asked for, the private key.
"""

import os
import shutil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from forge.app.stored.keys_place import KEYS_FOLDER
from forge.app.stored.policy_stamp import POLICY_FILE
from forge.app.user.home import LEDGER_FILE, RUNS_FOLDER
from forge.app.user.user_paths import folder_aside
from forge.app.workspace import Workspace
from forge.domain.digest import Digest, Value, canonical
from forge.errors import LedgerCorrupt, UsageError
from forge.ledger.audit.history import audit
from forge.ledger.durable import write_durably
from forge.ledger.runs.names import OPEN_PREFIX
from forge.ledger.signatures.keyring import FOLDER, PRIVATE, SignedHead
from forge.ledger.transfer.copies import (
    Progress,
    copy_blobs,
    copy_database,
    copy_run,
    first_naming,
    make_durable,
    run_folder,
    runs_in,
)

MANIFEST = "backup.json"
"""Name of the file in which a backup describes itself."""
Data = dict[str, object]


class Backup(Value):
    """What a backup says of itself; only the audit confirms it."""

    format: Literal["forge.backup.v1"] = "forge.backup.v1"
    ledger_id: str
    size: Annotated[int, Field(ge=1)]
    """Number of events in it."""
    root_hash: Digest
    head_hash: Digest
    with_key: bool
    """True if it holds the private key."""


def back_up(workspace: Workspace, target: Path, *, with_key: bool, progress: Progress) -> Data:
    """Copy the ledger as it is at one moment, with all that its events name; nothing remains if the copy isn't whole.

    Raises UsageError if `target` exists, LedgerCorrupt if the audit of the copy finds any problem.
    """
    place = Path(os.path.abspath(target))
    _require_free(place)
    with folder_aside(place) as aside:
        signed = workspace.keyring.last  # read before the copy, which lacks events that are signed later
        with workspace.ledger.snapshot() as connection:
            copy_database(connection, aside / LEDGER_FILE, progress=progress)
        blobs, damaged = copy_blobs(workspace.runs_root, aside / RUNS_FOLDER, progress=progress)
        _require_unneeded(damaged, aside / LEDGER_FILE)
        runs = _copy_runs(workspace, aside)
        if (workspace.home / POLICY_FILE).exists():
            shutil.copyfile(workspace.home / POLICY_FILE, aside / POLICY_FILE)
        if with_key:
            _copy_keys(workspace, aside, signed)
        progress("checking the copy")
        made = _checked(aside, ledger_id=workspace.ledger.ledger_id, with_key=with_key)
        write_durably(aside / MANIFEST, canonical(made), mode=0o444)
        make_durable(aside)
    return {"backup": str(target), **made.model_dump(mode="json"), "blobs": blobs, "runs": runs}


def _require_free(target: Path) -> None:
    if os.path.lexists(target):
        raise UsageError(f"{str(target)!r} exists: a backup gets a folder of its own; give a name that is free")


def _copy_runs(workspace: Workspace, aside: Path) -> int:
    """Copy the folder of each run in the copied ledger, sealed or open as that ledger says."""
    count = 0
    for run_id, sealed in runs_in(aside / LEDGER_FILE).items():
        folder = run_folder(workspace.runs_root, run_id)
        if folder is not None:
            name = run_id if sealed else f"{OPEN_PREFIX}{run_id}"
            copy_run(folder, aside / RUNS_FOLDER / name, sealed=sealed)
            count += 1
    return count


def _copy_keys(workspace: Workspace, aside: Path, signed: SignedHead | None) -> None:
    keys = aside / KEYS_FOLDER
    keys.mkdir(mode=FOLDER)
    for key in workspace.keyring.files():
        write_durably(keys / key.name, key.read_bytes(), mode=PRIVATE)
    if signed is not None:
        workspace.keyring.in_folder(keys).remember(signed.note)


def _require_unneeded(damaged: list[str], database: Path) -> None:
    for digest in damaged:
        seq = first_naming(database, digest)
        if seq is not None:
            raise LedgerCorrupt(
                f"this workspace isn't whole: the blob {digest}, named by event {seq}, is damaged; nothing was made",
                hint="forge ledger verify",
            )


def _checked(aside: Path, *, ledger_id: str, with_key: bool) -> Backup:
    report = audit(aside / LEDGER_FILE, runs=aside / RUNS_FOLDER)
    if not report.ok or report.root is None or report.head is None:
        first = report.problems[0]
        raise LedgerCorrupt(
            f"this workspace isn't whole, and a backup of it wouldn't be: {first.what}: expected {first.expected}, "
            f"found {first.found}; no backup was made",
            hint="forge ledger verify",
        )
    return Backup(
        ledger_id=ledger_id, size=report.events, root_hash=report.root, head_hash=report.head, with_key=with_key
    )
