"""Kernels as documents: the list, the registry's entry, the files, the proof."""

import orjson

from forge.app.audit.answer import named_rows
from forge.app.desk.paging import page, parse_cursor
from forge.app.desk.view import View
from forge.app.desk.withheld import without_hidden_of_runs
from forge.app.kernels.answers import find_kernel, find_promotion
from forge.errors import NotFound
from forge.events import KernelPromoted
from forge.ledger.signatures.checkpoints import newest_checkpoint, signing_state
from forge.ledger.signatures.proofs import Signed, prove

Data = dict[str, object]
LISTED = """
    SELECT kernel_id, status, op, gpu, dtype, language, shape, speedup, low, high, baseline, candidate, task_id,
           run_id, promoted_seq, candidate_median_ns
    FROM kernels
    WHERE (:before IS NULL OR promoted_seq < :before) AND (:op IS NULL OR op = :op) AND (:gpu IS NULL OR gpu = :gpu)
      AND (:dtype IS NULL OR dtype = :dtype) AND (:status IS NULL OR status = :status)
    ORDER BY promoted_seq DESC LIMIT :limit
"""


def all_kernels(
    view: View,
    *,
    op: str | None = None,
    gpu: str | None = None,
    dtype: str | None = None,
    status: str | None = None,
    after: str | None = None,
    limit: int,
) -> Data:
    """Return a page of kernels, the newest first.

    `limit` is the largest number of kernels.
    """
    before = parse_cursor(view, after)
    asked = {"before": before, "op": op, "gpu": gpu, "dtype": dtype, "status": status, "limit": limit + 1}
    with view.workspace.publication.tables() as history:
        found = [one | {"shape": orjson.loads(str(one["shape"]))} for one in named_rows(history, LISTED, asked)]
    return page(found, limit=limit, view=view, seq_of=lambda one: int(str(one["promoted_seq"])))


def kernel_document(view: View, kernel_id: str) -> Data:
    """Return a kernel's entry in the registry; raise UnknownName."""
    return without_hidden_of_runs(view.workspace, find_kernel(view.workspace, kernel_id))


def kernel_file(view: View, kernel_id: str, name: str) -> str:
    """Return the text of one of a kernel's files; raise NotFound."""
    files = _promoted(view, kernel_id).files
    found = next((file for file in files if file.path == name), None)
    if found is None:
        names = ", ".join(file.path for file in files)
        raise NotFound(f"kernel {kernel_id!r} has no file {name[:100]!r}: expected one of {names}")
    return _text(view, found.sha256)


def kernel_proof(view: View, kernel_id: str) -> str:
    """Return the proof of a kernel's promotion against the newest checkpoint; raise NotFound if none covers it."""
    find_kernel(view.workspace, kernel_id)
    recorded = find_promotion(view.workspace, kernel_id)
    newest = newest_checkpoint(view.workspace.ledger)
    if newest is None or newest.size < recorded.seq:
        raise NotFound(
            f"no checkpoint covers kernel {kernel_id!r}: expected one that was signed after its promotion",
            hint=f"forge ledger prove {kernel_id}",
        )
    event = recorded.event
    row = next(view.workspace.ledger.rows(after_seq=recorded.seq - 1, limit=1))
    listing = view.workspace.blobs.get(event.artifact_sha256).decode() if event.artifact_sha256 else None
    with view.workspace.ledger.tree() as tree:
        return prove(tree, row, Signed(newest.size, newest.note), listing=listing)


def verifier_key(view: View) -> str | None:
    """Return the key in force in the form that verifiers of proofs need; None without one."""
    return signing_state(view.workspace.ledger).verifier


def _promoted(view: View, kernel_id: str) -> KernelPromoted:
    find_kernel(view.workspace, kernel_id)
    return find_promotion(view.workspace, kernel_id).event


def _text(view: View, digest: str) -> str:
    return view.workspace.blobs.get(digest).decode(errors="replace")
