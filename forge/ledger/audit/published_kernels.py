"""Checks the published files of one kernel: its sources, the listing of what was built, and what that lists."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forge.errors import UsageError
from forge.ledger.audit.report import AuditProblem
from forge.proof.files import read

_LISTING = "artifact.json"
"""Name of the published list of built files; the promotion names its digest."""


def kernel_problems(folder: Path, seq: int, promotion: Mapping[str, Any]) -> Iterator[AuditProblem]:  # Any: JSON
    """Yield a problem for each file of a kernel's folder that isn't the one that event `seq` promoted."""
    if not folder.is_dir():
        return
    wanted = [(str(file["path"]), str(file["sha256"])) for file in promotion["files"]]
    listing = promotion.get("artifact_sha256")
    if listing is not None:
        wanted += [(_LISTING, str(listing)), *_listed(folder, listing)]
    for name, digest in wanted:
        found = digest_at(folder / name)
        if found != digest:
            yield AuditProblem(seq, f"published kernels/{folder.name}/{name}", digest, found)


def _listed(folder: Path, listing: object) -> Iterator[tuple[str, str]]:
    """Yield name and digest of each built file; none if the listing isn't the promotion's, which is told anyway."""
    if digest_at(folder / _LISTING) != listing:
        return
    try:
        files = [(str(file["path"]), str(file["sha256"])) for file in json.loads(read(folder / _LISTING))["files"]]
    except (LookupError, RecursionError, TypeError, UsageError, ValueError):
        return  # the check of the event's stored bytes tells it
    yield from files


def digest_at(path: Path) -> str:
    """Return the digest of a published file; `missing` if it can't be read."""
    try:
        return hashlib.sha256(read(path)).hexdigest()
    except UsageError:
        return "missing"
