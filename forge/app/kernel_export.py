"""Exports a promoted kernel as a folder of files that can be used elsewhere: every byte comes from the store.

The folder holds what the promotion's own event names, by digest. No working directory is read, and not the
published registry. A folder appears whole or not at all.
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import orjson

from forge.app.kernels.answers import find_kernel, find_promotion
from forge.app.phases.phase_inputs import artifact_of
from forge.app.user.user_paths import folder_aside
from forge.app.workspace import Workspace
from forge.domain.digest import sha256
from forge.errors import LedgerCorrupt, UsageError
from forge.events import KernelPromoted
from forge.ledger.durable import write_durably
from forge.ledger.transfer.copies import make_durable

ENTRY_FILE, README_FILE = "registry_entry.json", "README.txt"
WITHDRAWN = ("revoked", "evidence_invalid", "not_replicated", "evidence_stale")
"""Statuses with which no lookup answers; such kernels are exported only on request."""
READABLE = 0o644
"""Mode of an exported file. It is 0644: its owner may write it, and everyone may read it."""
Data = dict[str, object]
README = """\
{kernel_id}

Status:      {status}
Entry point: {entry_point} in kernel.py
Candidate:   {candidate}
Artifact:    {artifact}
Promoted:    event {seq} of ledger {ledger_id}
Event hash:  {event_hash}

{entry_file} is what the registry says of it: where it was verified and measured, on what evidence.
Whether it still stands is the ledger's to say: forge kernel show {kernel_id}

Digests (sha256sum --check README.txt):

{digests}
"""


def export_kernel(workspace: Workspace, kernel_id: str, target: Path, *, revoked_too: bool) -> Data:
    """Write a kernel's sources, its built files, its launch plan, and its registry entry.

    Raises UnknownName, UsageError if `target` isn't free or the kernel was withdrawn, BlobCorrupt.
    """
    entry = find_kernel(workspace, kernel_id)
    status = str(entry["status"])
    if status in WITHDRAWN and not revoked_too:
        raise UsageError(
            f"kernel {kernel_id!r} is {status} ({entry['status_reason']}): nothing should run it; "
            "to have its files all the same, add --revoked-too",
            hint=f"forge kernel history {kernel_id}",
        )
    target = Path(os.path.abspath(target))
    _require_free(target)
    promoted = find_promotion(workspace, kernel_id)
    files = _files(workspace, promoted.event) | {ENTRY_FILE: orjson.dumps(entry, option=orjson.OPT_INDENT_2)}
    digests = {name: sha256(content) for name, content in sorted(files.items())}
    readme = README.format(
        kernel_id=kernel_id,
        status=f"{status} ({entry['status_reason']})" if entry["status_reason"] else status,
        entry_point=promoted.event.entry_point,
        candidate=promoted.event.candidate,
        artifact=promoted.event.artifact_sha256 or "none: its sources are all there is",
        seq=promoted.seq,
        ledger_id=workspace.ledger.ledger_id,
        event_hash=promoted.event_hash,
        entry_file=ENTRY_FILE,
        digests="\n".join(f"{digest}  {name}" for name, digest in digests.items()),
    )
    _write_aside(target, {**files, README_FILE: readme.encode()})
    return {"kernel_id": kernel_id, "folder": str(target), "status": status, "files": digests}


def _files(workspace: Workspace, event: KernelPromoted) -> dict[str, bytes]:
    files = {file.path: workspace.blobs.get(file.sha256) for file in event.files}
    for built in artifact_of(workspace, event.artifact_sha256):
        plain = PurePosixPath(built.name).name == built.name and not built.name.startswith(".")
        if not plain or built.name in {*files, ENTRY_FILE, README_FILE}:
            raise LedgerCorrupt(f"{event.kernel_id!r} has a file called {built.name!r}, expected a plain, free name")
        files[built.name] = built.content
    return files


def _require_free(target: Path) -> None:
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageError(f"{str(target)!r} exists and isn't an empty folder: give a name that is free")


def _write_aside(target: Path, files: Mapping[str, bytes]) -> None:
    """Fill a folder beside `target` that takes its name once everything is on disk."""
    with folder_aside(target) as aside:
        for name, content in files.items():
            write_durably(aside / name, content, mode=READABLE)
        aside.chmod(0o755)
        make_durable(aside)
