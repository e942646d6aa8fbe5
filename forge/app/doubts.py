"""Records doubts about kernels, as adopted programs report them, and says which of them aren't answered yet.

A doubt decides nothing. It is answered by a later verification of the same candidate, by a person's word, or by the
kernel's end.
"""

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from forge.app.audit.answer import Answer
from forge.app.kernels import require_kernel
from forge.app.promotions import find_promotion
from forge.app.workspace import Workspace
from forge.domain.digest import Digest
from forge.domain.task import Name
from forge.domain.tensors import Shape
from forge.errors import AlreadyDecided, UsageError
from forge.events import (
    CandidateVerified,
    HumanDecided,
    KernelDeprecated,
    KernelDoubted,
    KernelPromoted,
    KernelRevoked,
    Recorded,
)

Data = dict[str, object]
REPORT_BYTES = 1 << 20
"""Largest report, in bytes. One of 64 operands has less than 20,000."""
REASON_CHARACTERS = 1000
"""Longest reason that a person gives to dismiss a doubt, in characters. The same as for the reason of a decision."""
COLUMNS = ("seq", "recorded_at", "kernel_id", "shape", "output", "excess", "reported_by")


class DoubtReport(BaseModel):
    """What an adopted program writes after a wrong answer; other fields are kept and not read."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")
    schema_version: Literal[1]
    kind: Literal["kernel_doubt"]
    kernel_id: Annotated[str, Field(max_length=200)]
    sha256: Digest
    """Digest of the kernel's source."""
    generation: Digest
    shape: Shape
    output: Name
    excess: float | None


def record_doubt(workspace: Workspace, path: Path) -> Data:
    """Record the report in a file; raise UsageError for none, UnknownName for an unknown kernel, AlreadyDecided."""
    content = _read(path)
    report = _parsed(path, content)
    promotion = _promotion(workspace, report.kernel_id)
    sources = {file.sha256 for file in promotion.event.files}
    if report.sha256 not in sources:
        raise UsageError(
            f"{str(path)!r} is about {report.kernel_id!r} with a source of digest {report.sha256}, which wasn't "
            "promoted here: expected a report about a kernel of this workspace"
        )
    event = KernelDoubted(
        kernel_id=report.kernel_id,
        family=promotion.event.family,
        shape=report.shape,
        output=report.output,
        excess=report.excess if report.excess is not None and math.isfinite(report.excess) else None,
        generation=report.generation,
        report_sha256=workspace.blobs.put(content),
    )
    stream = event.stream()
    version = workspace.ledger.stream_version(stream)
    for recorded in workspace.ledger.read(stream=stream):
        if recorded.event == event:
            raise AlreadyDecided(f"this report is recorded already (event {recorded.seq}): nothing was recorded")
    appended = workspace.ledger.append(
        (event,), actor=workspace.actor, correlation_id=stream, expected={stream: version}
    )
    workspace.catch_up()
    return {"seq": appended.first_seq, "kernel_id": report.kernel_id, "report_sha256": event.report_sha256}


def keep(workspace: Workspace, kernel_id: str, *, reason: str) -> Data:
    """Record a person's word that a kernel stays although it was doubted; raise UsageError if no doubt is open."""
    if not (reason.strip() and len(reason) <= REASON_CHARACTERS and reason.isprintable()):
        raise UsageError(f"bad reason {reason[:100]!r}: expected 1 to {REASON_CHARACTERS} printable characters")
    _promotion(workspace, kernel_id)
    if not any(one.kernel_id == kernel_id for _, one in _open(workspace)):
        raise UsageError(f"no open doubt about {kernel_id!r}: expected a kernel of forge audit doubts")
    stream = f"doubt:{kernel_id}"
    event = HumanDecided(subject_stream=stream, subject=kernel_id, choice="keep", reason=reason)
    version = workspace.ledger.stream_version(stream)
    appended = workspace.ledger.append(
        (event,), actor=workspace.actor, correlation_id=stream, expected={stream: version}
    )
    workspace.catch_up()
    return {"seq": appended.first_seq, "kernel_id": kernel_id, "choice": "keep"}


def doubts(workspace: Workspace) -> Answer:
    """Return the doubts that neither a verification nor a person has answered."""
    found = _open(workspace)
    rows = []
    for seq, event in found:
        recorded = next(workspace.ledger.read(after_seq=seq - 1, limit=1))
        sizes = ",".join(f"{axis}={size}" for axis, size in sorted(event.shape.items()))
        row = (seq, recorded.recorded_at, event.kernel_id, sizes, event.output, event.excess, recorded.actor)
        rows.append(row)
    note = "A doubt was handed in by a program, and decides nothing: verify the candidate again, or answer it."
    return Answer("Open doubts about kernels", COLUMNS, tuple(rows), notes=(note,))


def _promotion(workspace: Workspace, kernel_id: str) -> Recorded[KernelPromoted]:
    """Return a kernel's promotion; raise UnknownName if there is no such kernel."""
    with workspace.publication.tables() as connection:
        require_kernel(connection, kernel_id)
    return find_promotion(workspace, kernel_id)


def _open(workspace: Workspace) -> list[tuple[int, KernelDoubted]]:
    """Return the doubts without an answer, by their events' numbers."""
    if workspace.ledger.newest("KernelDoubted") is None:
        return []
    found: dict[int, KernelDoubted] = {}
    candidates: dict[str, str] = {}
    types = (
        "CandidateVerified", "HumanDecided", "KernelDeprecated", "KernelDoubted", "KernelPromoted", "KernelRevoked",
    )  # fmt: skip
    for recorded in workspace.ledger.read(types=types):
        match recorded.event:
            case KernelPromoted(kernel_id=kernel_id, candidate=candidate):
                candidates[kernel_id] = candidate
            case KernelDoubted() as event:
                found[recorded.seq] = event
            case KernelRevoked(kernel_id=kernel_id) | KernelDeprecated(kernel_id=kernel_id):
                found = {seq: one for seq, one in found.items() if one.kernel_id != kernel_id}
            case HumanDecided(subject_stream=stream):
                found = {seq: one for seq, one in found.items() if one.stream() != stream}
            case CandidateVerified(candidate=candidate):
                found = {seq: one for seq, one in found.items() if candidates.get(one.kernel_id) != candidate}
            case _:
                pass
    return sorted(found.items())


def _read(path: Path) -> bytes:
    try:
        if not path.is_file() or path.stat().st_size > REPORT_BYTES:
            raise UsageError(f"bad report {str(path)!r}: expected a file of at most {REPORT_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"the report {str(path)!r} can't be read: {error}") from error


def _parsed(path: Path, content: bytes) -> DoubtReport:
    try:
        return DoubtReport.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise UsageError(
            f"{str(path)!r} is no report of a doubt: {where}: {first['msg']}; expected a forge-doubt-*.json that an "
            "adopted program wrote"
        ) from error
