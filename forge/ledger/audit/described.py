"""Checks what a snapshot says of operations: the newest description of each, and files with those digests."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from forge.ledger.audit.published_kernels import digest_at
from forge.ledger.audit.report import AuditProblem

_FILES = {"description": "json", "reference": "py"}
"""Field of a snapshot -> ending of the published file."""


class DescribedOperations:
    """The descriptions that the ledger's events name, against those of a registry's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events: list[tuple[int, Mapping[str, str]]] = []

    def take(self, seq: int, event: Mapping[str, str]) -> None:
        """Remember an OperationDescribed, event `seq`, to hold published operations against."""
        self._events.append((seq, event))

    def problems(self, name: str, stated: Mapping[str, Mapping[str, str]], seq: int) -> Iterator[AuditProblem]:
        """Yield a problem for each operation that differs from the events up to `seq`."""
        expected = {
            event["op"]: {what: event[f"{what}_sha256"] for what in _FILES}
            for place, event in self._events
            if place <= seq
        }
        for op in sorted(expected.keys() | stated.keys()):
            wanted, found = expected.get(op), stated.get(op)
            if wanted is None or wanted != found:
                said = "no event describes it" if wanted is None else str(wanted)
                yield AuditProblem(None, f"published {name}: ops.{op}", said, str(found))
                continue
            for what, ending in _FILES.items():
                digest = digest_at(self._folder / "ops" / f"{op}.{ending}")
                if digest != wanted[what]:
                    yield AuditProblem(None, f"published ops/{op}.{ending}", wanted[what], digest)
