"""Counts what calls took: for each operation, device, shape and element type the kernel, or the fallback's reason."""

import json
from collections.abc import Mapping
from itertools import count
from threading import Lock
from typing import NamedTuple

REPORT_VERSION = 1
"""Version of the form of a report of what an adopting program ran."""


class CallKind(NamedTuple):
    """What a kind of calls takes."""

    op: str
    device: str
    dtype: str
    shape: tuple[tuple[str, int], ...]
    backend: str
    """`plan`, `source` or `fallback`."""
    kernel_id: str | None
    sha256: str | None
    """Digest of the kernel's source."""
    reason: str | None
    """Reason of a fallback."""


class Counter:
    """A number that several threads raise without a lock: one step of `itertools.count` can't be interrupted."""

    __slots__ = ("_count", "add")

    def __init__(self) -> None:
        self._count = count()
        self.add = self._count.__next__

    @property
    def value(self) -> int:
        """Return how often `add` was called."""
        return int(repr(self._count)[len("count(") : -1])


class TallyLine:
    """The counts of one kind of calls."""

    __slots__ = ("captured", "detail", "hits", "shadow_breaches", "shadowed", "taken")

    def __init__(self, taken: CallKind) -> None:
        self.taken = taken
        self.hits, self.captured, self.shadowed, self.shadow_breaches = Counter(), Counter(), Counter(), Counter()
        self.detail = ""

    def document(self) -> dict[str, object]:
        """Return the line as plain data."""
        fields = self.taken._asdict() | {"shape": dict(self.taken.shape)}
        return fields | {
            "hits": self.hits.value,
            "captured": self.captured.value,
            "shadowed": self.shadowed.value,
            "shadow_breaches": self.shadow_breaches.value,
            "detail": self.detail,
        }


class Tally:
    """All lines of an adoption. They outlive a change of the registry."""

    def __init__(self) -> None:
        self._lines: dict[CallKind, TallyLine] = {}
        self._lock = Lock()

    def after_fork(self) -> None:
        """Replace the lock, which another thread may have held."""
        self._lock = Lock()

    def line(self, taken: CallKind, detail: str = "") -> TallyLine:
        """Return the line of a kind of calls; `detail` replaces what was said before."""
        with self._lock:
            found = self._lines.get(taken)
            if found is None:
                found = self._lines[taken] = TallyLine(taken)
            found.detail = detail
            return found

    def documents(self) -> list[dict[str, object]]:
        """Return every line that was counted, in order."""
        with self._lock:
            lines = list(self._lines.values())
        shown = [line.document() for line in lines]
        return sorted((one for one in shown if one["hits"]), key=str)


class Report:
    """What an adoption's calls took, as plain data, JSON and a table."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self.document = dict(document)

    @property
    def lines(self) -> list[dict[str, object]]:
        """Return an entry for each kind of calls: what it was, what answered it, and how often."""
        found: list[dict[str, object]] = self.document["lines"]  # type: ignore[assignment]  # made by Adopted.report
        return found

    def json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.document, indent=1)

    def table(self) -> str:
        """Return the report as text, one line for each kind of calls."""
        return "\n".join("  ".join(row).rstrip() for row in table_rows(self.lines))


def kernel_or_reason(line: Mapping[str, object]) -> str:
    """Return the kernel that answered, or why none did; in words where the model's own function stays."""
    return str(line["kernel_id"] or (line["detail"] if line["reason"] == "own_function" else line["reason"]))


def table_rows(lines: list[dict[str, object]]) -> list[tuple[str, ...]]:
    """Return the rows of a report's table, of equal widths, the heading first."""
    rows = [("operation", "device", "shape", "calls", "took", "kernel or reason")]
    for one in lines:
        shape: Mapping[str, int] = one["shape"]  # type: ignore[assignment]  # a line's document
        sizes = ",".join(f"{axis}={size}" for axis, size in shape.items())
        device, what = f"{one['device']} {one['dtype']}", kernel_or_reason(one)
        rows.append((str(one["op"]), device, sizes, str(one["hits"]), str(one["backend"]), what))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [tuple(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
