"""Checks the published measurements of models: each must be its event, word for word, and none may be missing."""

import json
from collections.abc import Iterator
from pathlib import Path

from forge.errors import UsageError
from forge.ledger.audit.differences import differences
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.samples import Document
from forge.proof.files import read

FILE = "models.json"


class PublishedModels:
    """The measurements that the ledger's events hold, against those of a registry's folder."""

    def __init__(self, folder: Path) -> None:
        try:
            self._content: bytes | None = read(folder / FILE)
        except UsageError:
            self._content = None
        self._events: dict[int, Document] = {}

    def take(self, seq: int, event: Document) -> None:
        """Remember a ModelMeasured, event `seq`, to hold published measurements against."""
        self._events[seq] = event

    def problems(self) -> Iterator[AuditProblem]:
        """Yield a problem for each measurement that differs from its event; a file of before is behind, not wrong."""
        if self._content is None:
            return
        try:
            document = json.loads(self._content)
            upto, listed = document["ledger"]["seq"], {one["seq"]: one for one in document["measurements"]}
            wanted = {seq for seq in self._events if seq <= upto}
            for seq in sorted(wanted ^ set(listed)):
                found = "is in it" if seq in listed else "isn't in it"
                yield AuditProblem(seq, f"published {FILE}", "the measurements that events hold", found)
            for seq in sorted(wanted & set(listed)):
                for field, expected, found in differences(self._events[seq], listed[seq], ""):
                    yield AuditProblem(seq, f"published {FILE}: {field}", expected[:500], found[:500])
        except (*MALFORMED_ERRORS, OSError) as error:
            yield AuditProblem(None, f"published {FILE}", "a document of its form", repr(error)[:200])
