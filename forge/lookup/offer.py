"""One kernel of a snapshot, parsed, checked, and made ready for questions.

A snapshot's digest says that its bytes are those that were published, not that they make sense.
"""

from forge.lookup.answer import MEASURED, Evidence, Kernel
from forge.lookup.policy import REGIMES
from forge.lookup.published import KERNEL_NAME, is_digest, is_plain, is_text
from forge.lookup.sizes import LARGEST_SIZE, is_size, octaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    # a snapshot is JSON: this module turns it into typed values or raises
    from typing import Any

    Document = dict[str, Any]
    Slot = tuple[str, str, str]

TEXTS = ("kernel_id", "status", "op", "language", "gpu", "dtype", "entry_point", "abi_key", "measured_at")
DIGESTS = ("sha256", "env_sha256", "perf_key", "abi_key")
SEQS = ("verified_seq", "benchmark_seq", "promoted_seq")
QUANTITIES = ("median_ns", "baseline_median_ns", "speedup", "low", "high")


class Domain:
    """The shapes with the same axes in which a kernel was verified; sizes are in order of the axes' names."""

    __slots__ = ("least", "most", "verified")

    def __init__(self, columns: "list[list[int]]") -> None:
        self.verified = frozenset(zip(*columns, strict=True))
        self.least, self.most = tuple(map(min, columns)), tuple(map(max, columns))

    def __contains__(self, sizes: tuple[int, ...]) -> bool:
        """Whether each size lies between verified ones."""
        spans = zip(sizes, self.least, self.most, strict=True)
        return all(least <= size <= most for size, least, most in spans)


class Point:
    """What was measured at one shape."""

    __slots__ = ("evidence", "logs", "median_ns", "sizes")

    def __init__(self, sizes: tuple[int, ...], evidence: Evidence) -> None:
        self.sizes, self.evidence = sizes, evidence
        self.logs, self.median_ns = octaves(sizes), evidence.median_ns


class Offer:
    """One kernel, and what decides whether it answers."""

    __slots__ = ("_points", "domains", "kernel", "measured_at", "state", "status_reason")

    def __init__(self, untrusted: "Document", slot: "Slot", registry_root: str) -> None:
        """Raise ValueError, KeyError, TypeError or AttributeError unless it is a kernel of `slot`."""
        _check(untrusted, slot)
        self.kernel = Kernel({**untrusted, "registry_root": registry_root})
        self.status_reason: str | None = untrusted["status_reason"]
        self.measured_at: str = untrusted["measured_at"]
        self.state = state_of(untrusted)
        self._points: dict[str, dict[tuple[str, ...], list[Point]]] = {regime: {} for regime in REGIMES}
        for measured in untrusted["points"]:
            axes, point = _point(measured, untrusted)
            self._points[point.evidence.regime].setdefault(axes, []).append(point)
        self.domains: dict[tuple[str, ...], Domain] = {}
        for columns in untrusted["verified"]:
            axes, sizes = tuple(sorted(columns)), [columns[axis] for axis in sorted(columns)]
            if not axes or not all(column and all(map(is_size, column)) for column in sizes):
                raise ValueError(f"kernel {untrusted['kernel_id']!r} has a bad shape among those verified")
            self.domains[axes] = Domain(sizes)

    def points(self, regime: str) -> "dict[tuple[str, ...], list[Point]]":
        """What was measured in a regime, by the axes of the shapes."""
        return self._points[regime]


def parse_offers(untrusted: bytes, slot: "Slot", registry_root: str) -> tuple[Offer, ...]:
    """The kernels of one slot, as the lines of a snapshot have them; raises as Offer does."""
    import json

    listed = json.loads(b"[" + untrusted + b"]", parse_constant=_refuse)
    return tuple(Offer(entry, slot, registry_root) for entry in listed)


def _check(untrusted: "Document", slot: "Slot") -> None:
    kernel_id = untrusted["kernel_id"]
    if not is_plain(kernel_id, KERNEL_NAME):
        raise ValueError(f"bad kernel_id {kernel_id!r}: expected lower-case letters, digits and _")
    if (untrusted["op"], untrusted["gpu"], untrusted["dtype"]) != slot:
        raise ValueError(f"kernel {kernel_id!r} stands in the slot {slot!r}, which isn't its own")
    for name in TEXTS:
        if not is_text(untrusted[name]):
            raise ValueError(f"kernel {kernel_id!r} has {name} {untrusted[name]!r}: expected text")
    for name in ("status_reason", "superseded_by"):
        if not (untrusted[name] is None or is_text(untrusted[name])):
            raise ValueError(f"kernel {kernel_id!r} has {name} {untrusted[name]!r}: expected text or nothing")
    built = untrusted["artifact_sha256"]
    if not all(is_digest(untrusted[name]) for name in DIGESTS) or not (built is None or is_digest(built)):
        raise ValueError(f"kernel {kernel_id!r} has a digest that is none")
    if not untrusted["entry_point"].isidentifier() or untrusted["entry_point"].startswith("__"):
        raise ValueError(
            f"kernel {kernel_id!r} has entry point {untrusted['entry_point']!r}: expected a function's name"
        )
    named = [untrusted[name] for name in SEQS] + [untrusted.get("replicated_seq", 0)]
    if not all(map(is_size, named)):
        raise ValueError(f"kernel {kernel_id!r} names events that no ledger has")


def state_of(untrusted: "Document") -> str:
    """Whether a second measurement held."""
    return "provisional" if untrusted.get("replicated_seq") is None else "replicated"


def _point(untrusted: "Document", entry: "Document") -> tuple[tuple[str, ...], Point]:
    from types import MappingProxyType

    shape: Mapping[str, int] = untrusted["shape"]
    axes = tuple(sorted(shape))
    sizes = tuple(shape[axis] for axis in axes)
    numbers = [untrusted[name] for name in QUANTITIES]
    if not all(map(_is_quantity, numbers)):
        raise ValueError(f"kernel {entry['kernel_id']!r} has measured {numbers!r}: expected positive numbers")
    if not axes or not all(map(is_text, axes)) or not all(map(is_size, sizes)):
        raise ValueError(f"kernel {entry['kernel_id']!r} was measured at {shape!r}: expected a shape")
    if (
        not is_text(untrusted["baseline"])
        or not is_text(untrusted["method"])
        or not is_digest(untrusted["samples_sha256"])
    ):
        raise ValueError(f"kernel {entry['kernel_id']!r} has a measurement without baseline, method or samples")
    own = {name: untrusted[name] for name in (*QUANTITIES, "baseline", "method", "samples_sha256")}
    fields = {**entry, **own, "shape": MappingProxyType(dict(shape))}
    fields["replicated_seq"] = entry.get("replicated_seq")
    fields["state"] = state_of(entry)
    fields["regime"] = untrusted.get("regime", "cold")
    measured = MappingProxyType({name: fields[name] for name in MEASURED})
    return axes, Point(sizes, Evidence(measured, 0.0))


def _is_quantity(untrusted: object) -> bool:
    """Whether it is a positive number that any reader of JSON can hold; NaN fails every comparison."""
    if type(untrusted) is int:
        return 0 < untrusted <= LARGEST_SIZE
    return type(untrusted) is float and 0 < untrusted < float("inf")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number that JSON has")
