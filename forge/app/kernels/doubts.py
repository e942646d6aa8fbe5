"""Records doubts about kernels, as adopted programs report them, and a person's word that dismisses one."""

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from forge.app.kernels.answers import find_promotion
from forge.app.kernels.decisions import REASON_LIMIT
from forge.app.kernels.open_doubts import open_doubts
from forge.app.known_kernel import require_kernel
from forge.app.plain_events import OfWorkspace
from forge.app.user.given_reason import require_reason
from forge.app.workspace import Workspace
from forge.domain.digest import Digest
from forge.domain.misfit import misfit
from forge.domain.task import Name
from forge.domain.tensors import Shape
from forge.errors import AlreadyDecided, UsageError
from forge.events import HumanDecided, KernelDoubted, KernelPromoted, Recorded

Data = dict[str, object]
REPORT_BYTES = 1 << 20
"""Largest report, in bytes. One of 64 operands has less than 20,000."""


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
            raise AlreadyDecided(
                f"this report is recorded already (event {recorded.seq}): expected a new one; nothing was recorded",
                hint=f"forge kernel history {event.kernel_id}",
            )
    appended = workspace.append_at(event, version)
    workspace.catch_up()
    return {"seq": appended.first_seq, "kernel_id": report.kernel_id, "report_sha256": event.report_sha256}


def keep(workspace: Workspace, kernel_id: str, *, reason: str) -> Data:
    """Record a person's word that a kernel stays although it was doubted; raise UsageError if no doubt is open."""
    require_reason(reason, longest=REASON_LIMIT)
    _promotion(workspace, kernel_id)
    if not any(one.event["kernel_id"] == kernel_id for one in open_doubts(OfWorkspace(workspace))):
        raise UsageError(f"no open doubt about {kernel_id!r}: expected a kernel of forge audit doubts")
    stream = f"doubt:{kernel_id}"
    event = HumanDecided(subject_stream=stream, subject=kernel_id, choice="keep", reason=reason)
    version = workspace.ledger.stream_version(stream)
    appended = workspace.append_at(event, version)
    workspace.catch_up()
    return {"seq": appended.first_seq, "kernel_id": kernel_id, "choice": "keep"}


def _promotion(workspace: Workspace, kernel_id: str) -> Recorded[KernelPromoted]:
    """Return a kernel's promotion; raise UnknownName if there is no such kernel."""
    with workspace.publication.tables() as connection:
        require_kernel(connection, kernel_id)
    return find_promotion(workspace, kernel_id)


def _read(path: Path) -> bytes:
    try:
        if not path.is_file() or path.stat().st_size > REPORT_BYTES:
            raise UsageError(f"bad report {str(path)!r}: expected a file of at most {REPORT_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the report {str(path)!r} can't be read: {error}; expected one that you may read"
        ) from error


def _parsed(path: Path, content: bytes) -> DoubtReport:
    try:
        return DoubtReport.model_validate_json(content)
    except ValidationError as error:
        raise UsageError(
            f"{str(path)!r} is no report of a doubt: {misfit(error, DoubtReport)}; expected a forge-doubt-*.json "
            "that an adopted program wrote"
        ) from error
