"""Makes a workspace that continues from a backup, as a new epoch.

The backup is checked before anything is made. It is also compared with what the signer of this folder signed last,
because an older backup would remove signed events.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from forge.app.kernels.decisions import NOT_RECORDED
from forge.app.ledger.backup import MANIFEST, Backup, Data
from forge.app.ledger.recovery import RECOVERY
from forge.app.stored.keys_place import KEYS_FOLDER, keys_folder
from forge.app.stored.policy_file import load_policy
from forge.app.stored.policy_stamp import POLICY_FILE
from forge.app.user.home import LEDGER_FILE, REGISTRY_FOLDER, RUNS_FOLDER
from forge.app.user.user import command_line_actor
from forge.app.user.user_paths import read_regular
from forge.app.workspace import Workspace, new_id, now
from forge.domain.misfit import misfit
from forge.errors import CheckpointRefused, LedgerCorrupt, UsageError, WorkspaceNotFound
from forge.events.ledger import LedgerRestored
from forge.ledger.audit.history import audit
from forge.ledger.audit.report import AuditProblem, AuditReport
from forge.ledger.create import built_aside
from forge.ledger.durable import make_folder, write_durably
from forge.ledger.failures import storage_errors
from forge.ledger.runs.directory import make_read_only
from forge.ledger.runs.names import OPEN_PREFIX
from forge.ledger.signatures.checkpoints import adopt, signing_state
from forge.ledger.signatures.keyring import FOLDER, PRIVATE, Keyring
from forge.ledger.signatures.signing import SEED_BYTES
from forge.ledger.store import Ledger
from forge.ledger.transfer.copies import Progress, copy_blobs, copy_database, copy_run, open_copy, run_folder, runs_in
from forge.projections.reader_refusals import STOPS_READERS, refusals

EPOCH_BYTES = 6
"""Number of random bytes in an epoch's name. They are 48 bits: a thousand restores have an equal name with a chance
of 2e-9."""
PART_LIMIT_BYTES = 1 << 20
"""Size of a backup's description, in bytes, at most. It has less than a thousandth of it."""


def restore(source: Path, home: Path, *, accept_loss: bool, progress: Progress, dry_run: bool = False) -> Data:
    """Make a workspace at `home` from the backup at `source`, and record where it continues.

    `accept_loss` restores a backup that lacks signed events; a new key then signs. A dry run makes nothing.
    Raises UsageError if there is a workspace already, LedgerCorrupt if the backup isn't whole, CheckpointRefused if
    it lacks signed events.
    """
    if os.path.lexists(home / LEDGER_FILE):
        raise UsageError(
            f"{str(home)!r} is a workspace already, and a ledger is never replaced; restore into an empty folder, or "
            f"move {LEDGER_FILE}* away first"
        )
    progress("checking the backup")
    report = _whole(source)
    load_policy(source)
    if dry_run:
        _require_makable(home)
        return _foreseen(source, home, report, accept_loss=accept_loss, progress=progress)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't make a workspace at {str(home)!r} ({error.strerror}): expected a folder") from error
    event, lost = _build(source, home, accept_loss=accept_loss, progress=progress)
    return {
        "home": str(home),
        "ledger_id": event.ledger_id,
        "from_size": report.events,
        "root": report.root,
        "epoch": event.epoch,
        "lost_signed_events": lost,
        "signs": _go_on(home),
    }


def _require_makable(home: Path) -> None:
    """Raise UsageError unless `home` is a folder that may be written to, or can be made."""
    nearest = next(path for path in (home, *home.parents) if os.path.lexists(path))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(
            f"can't make a workspace at {str(home)!r}: {str(nearest)!r} isn't a folder that you may write to; "
            "expected a folder"
        )


def _foreseen(source: Path, home: Path, report: AuditReport, *, accept_loss: bool, progress: Progress) -> Data:
    """Return what a restore would make, from a copy of the database that is removed again."""
    with tempfile.TemporaryDirectory(prefix="forge-restore-") as folder:
        aside = Path(folder) / LEDGER_FILE
        with closing(open_copy(source / LEDGER_FILE)) as connection:
            copy_database(connection, aside, progress=progress)
        with Ledger.open(aside, now=now, new_id=new_id) as ledger:
            state = signing_state(ledger)
            keyring, theirs = _keyrings(source, home, state.name)
            lost = _require_extension(ledger, theirs or keyring, accept_loss=accept_loss)
            return NOT_RECORDED | {
                "home": str(home),
                "ledger_id": ledger.ledger_id,
                "from_size": report.events,
                "root": report.root,
                "lost_signed_events": lost,
                "signs": lost > 0 or (state.public is not None and (theirs or keyring).has(state.public)),
                "unchecked": str(home / RUNS_FOLDER) if (home / RUNS_FOLDER).exists() else None,
            }


def _keyrings(source: Path, home: Path, name: str) -> tuple[Keyring, Keyring | None]:
    """Return the folder's own keyring, and the backup's if the folder has no key of this log."""
    keyring = Keyring(keys_folder(home), name)
    return keyring, None if _has_keys(keyring) else keyring.in_folder(source / KEYS_FOLDER)


def _build(source: Path, home: Path, *, accept_loss: bool, progress: Progress) -> tuple[LedgerRestored, int]:
    """Copy the parts, database last; return where the new epoch begins, and how many signed events it lacks."""
    with storage_errors(home), built_aside(home / LEDGER_FILE) as aside:
        with closing(open_copy(source / LEDGER_FILE)) as connection:
            copy_database(connection, aside, progress=progress)
        with Ledger.open(aside, now=now, new_id=new_id) as ledger:
            keyring, theirs = _keyrings(source, home, signing_state(ledger).name)
            lost = _require_extension(ledger, theirs or keyring, accept_loss=accept_loss)
            _copy_files(source, home, progress=progress)
            _require_whole(audit(source / LEDGER_FILE, runs=home / RUNS_FOLDER).problems, home)
            if theirs is not None:
                _copy_keys(theirs, keyring)
            event = _restored(ledger, keyring)
            if lost:
                keyring.set_aside()
                adopt(ledger, keyring, os.urandom(SEED_BYTES), actor=command_line_actor())
    return event, lost


def _whole(source: Path) -> AuditReport:
    """Audit a backup; raise unless it is whole and agrees with its own description."""
    if not (source / LEDGER_FILE).is_file():
        raise WorkspaceNotFound(
            f"no {LEDGER_FILE} in {str(source)!r}: expected a folder that `forge ledger backup` made",
            hint="forge ledger backup --help",
        )
    report = audit(source / LEDGER_FILE, runs=source / RUNS_FOLDER)
    _require_whole(report.problems, source)
    refused = refusals(source / LEDGER_FILE, after=report)
    _require_whole([problem for problem in refused if problem.what in STOPS_READERS], source)
    if (source / MANIFEST).exists():
        try:
            said = Backup.model_validate_json(_part_of(source / MANIFEST))
        except ValidationError as error:
            raise LedgerCorrupt(
                f"{source / MANIFEST} can't be read ({misfit(error, Backup)}): take another backup"
            ) from error
        if (said.size, said.root_hash, said.head_hash) != (report.events, report.root, report.head):
            raise LedgerCorrupt(
                f"{str(source)!r} was made with {said.size} events and root {said.root_hash}, it has {report.events} "
                f"and {report.root}: it was changed since; take another backup",
            )
    return report


def _part_of(path: Path) -> bytes:
    """Return a small file of a backup; raise LedgerCorrupt if it can't be read."""
    try:
        return read_regular(path, limit_bytes=PART_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise LedgerCorrupt(f"{path} can't be read ({error}): take another backup") from error


def _require_whole(problems: Sequence[AuditProblem], folder: Path) -> None:
    if problems:
        first = problems[0]
        raise LedgerCorrupt(
            f"{str(folder)!r} isn't whole: event {first.seq}, {first.what}: expected {first.expected}, found "
            f"{first.found}; nothing was restored: take another backup",
            hint="forge ledger backup --help",
        )


def _has_keys(keyring: Keyring) -> bool:
    return keyring.last is not None or bool(keyring.files())


def _copy_keys(theirs: Keyring, mine: Keyring) -> None:
    """Copy the backup's private keys and what they signed last, if it has any."""
    keys = theirs.files()
    if not keys:
        return
    with storage_errors(mine.folder):
        make_folder(mine.folder)
        mine.folder.chmod(FOLDER)
        for key in keys:
            write_durably(mine.folder / key.name, _part_of(key), mode=PRIVATE)
    if theirs.last is not None:
        mine.remember(theirs.last.note)


def _require_extension(ledger: Ledger, keyring: Keyring, *, accept_loss: bool) -> int:
    """Return how many signed events the backup lacks; raise CheckpointRefused if any, unless that is accepted."""
    last = keyring.last
    if last is None:
        return 0
    with ledger.tree() as tree:
        size = tree.size
        same = last.size > size or tree.root(last.size) == last.root
    if not same:
        raise CheckpointRefused(
            f"the first {last.size} events of this backup aren't those that {str(keyring.folder)!r} signed: it is "
            "another continuation of this ledger. Take another backup, or restore into an empty folder",
            hint="forge ledger restore --help",
        )
    if last.size > size and not accept_loss:
        raise CheckpointRefused(
            f"this backup has {size} events, and {last.size} were signed here: {last.size - size} events would be "
            "lost, and others may hold a checkpoint of them. Take a newer backup, or accept the loss (a new key then "
            "signs)",
            hint="forge ledger restore --help",
        )
    return max(0, last.size - size)


def _copy_files(source: Path, home: Path, *, progress: Progress) -> None:
    """Copy blobs, run folders and the policy; existing files stay, and the audit checks all of it."""
    copy_blobs(source / RUNS_FOLDER, home / RUNS_FOLDER, progress=progress)
    for run_id, sealed in runs_in(source / LEDGER_FILE).items():
        folder = run_folder(source / RUNS_FOLDER, run_id)
        if folder is not None and run_folder(home / RUNS_FOLDER, run_id) is None:
            target = home / RUNS_FOLDER / (run_id if sealed else f"{OPEN_PREFIX}{run_id}")
            copy_run(folder, target, sealed=sealed)
            if sealed:
                make_read_only(target)
    if (source / POLICY_FILE).exists() and not (home / POLICY_FILE).exists():
        write_durably(home / POLICY_FILE, _part_of(source / POLICY_FILE), mode=0o644)


def _restored(ledger: Ledger, keyring: Keyring) -> LedgerRestored:
    """Record where this continuation begins, with a name that no other continuation has."""
    last = keyring.last
    with ledger.tree() as tree:
        event = LedgerRestored(
            ledger_id=ledger.ledger_id,
            from_size=tree.size,
            root_hash=tree.root().hex(),
            epoch=os.urandom(EPOCH_BYTES).hex(),
            signed_size=last.size if last else 0,
        )
    ledger.append((event,), actor=RECOVERY, correlation_id=event.stream(), idempotency_key=f"epoch:{event.epoch}")
    return event


def _go_on(home: Path) -> bool:
    """Sign and publish what was restored; return whether this workspace can sign."""
    shutil.rmtree(home / REGISTRY_FOLDER, ignore_errors=True)  # derived from the ledger that was here before
    with Workspace.open(home) as workspace:
        workspace.catch_up()
        public = signing_state(workspace.ledger).public
        return public is not None and workspace.keyring.has(public)
