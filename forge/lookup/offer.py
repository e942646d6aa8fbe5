"""One kernel of a snapshot, parsed, checked, and made ready for questions.

A snapshot's digest says that its bytes are those that were published, not that they make sense.
"""

from forge.lookup.answer import MEASURED, Evidence, Kernel
from forge.lookup.declared import DeclaredDomain
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
"""Fields of a published kernel that are text."""
DIGESTS = ("sha256", "env_sha256", "perf_key", "abi_key")
"""Fields of a published kernel that are SHA-256 digests in hex."""
SEQS = ("verified_seq", "benchmark_seq", "promoted_seq")
"""Fields of a published kernel that are numbers of events."""
MOST_AXES = 16
"""Largest number of axes of a shape. Every group of them has a largest product, so 16 axes have 65,535."""
FEWEST_SIZES = 3
"""Number of verified sizes of an axis from which sizes between them are answered. A verification asks an axis that it
varies at many sizes. One that it leaves alone has the task's size, and perhaps that of a listed workload."""
QUANTITIES = ("median_ns", "baseline_median_ns", "speedup", "low", "high")
"""Fields of a measurement that are numbers above 0: times in nanoseconds, and ratios."""


class Domain:
    """The shapes with the same axes in which a kernel was verified; sizes are in order of the axes' names."""

    __slots__ = ("axes", "declared", "few", "least", "most", "products", "unproven", "verified")

    def __init__(
        self,
        axes: tuple[str, ...],
        columns: "list[list[int]]",
        declared: "DeclaredDomain | None" = None,
        unproven: "Mapping[tuple[int, ...], str] | None" = None,
    ) -> None:
        self.axes, self.declared = axes, declared
        self.unproven = {} if unproven is None else unproven
        """Shapes at which the kernel was measured and isn't promoted -> the reason. It answers at none of them."""
        shapes = list(zip(*columns, strict=True))
        answered = (sizes for sizes in shapes if sizes not in self.unproven)
        self.verified = frozenset(sizes for sizes in answered if self.undeclared(sizes) is None)
        self.least, self.most = tuple(map(min, columns)), tuple(map(max, columns))
        self.few = tuple(found if len(found := sorted(set(one))) < FEWEST_SIZES else None for one in columns)
        """Of each axis the verified sizes, if they are few."""
        self.products = _largest_products(len(axes), shapes)
        """Places of two or more axes -> the largest product of their sizes in a verified shape."""

    def undeclared(self, sizes: tuple[int, ...]) -> str | None:
        """Return the condition of the kernel's own domain that a shape breaks, or None."""
        return None if self.declared is None else self.declared.broken(dict(zip(self.axes, sizes, strict=True)))

    def beyond(self, sizes: tuple[int, ...]) -> str | None:
        """Return why a shape lies outside what was verified, or None.

        Each size lies between verified ones, or is one of them if they are few. No product of sizes is larger than in
        a verified shape. An operand's number of elements is such a product, and a larger one may overflow an offset.
        The kernel isn't known to be slow there.
        """
        if sizes in self.unproven:
            return f"measured at this shape, and not promoted for it: {self.unproven[sizes]}"
        for axis, size, least, most in zip(self.axes, sizes, self.least, self.most, strict=True):
            if not least <= size <= most:
                return f"shape outside the verified domain: {axis} {size}, verified {least} to {most}"
        for axis, size, few in zip(self.axes, sizes, self.few, strict=True):
            if few is not None and size not in few:
                alone = " and ".join(map(str, few))
                return f"shape outside the verified domain: {axis} {size}, verified at {alone} alone"
        for places, most in self.products:
            product = _product(sizes, places)
            if product > most:
                named = " x ".join(self.axes[place] for place in places)
                return f"shape outside the verified domain: {named} is {product}, verified up to {most}"
        broken = self.undeclared(sizes)
        return None if broken is None else f"shape outside the kernel's own domain: {broken}"

    def __contains__(self, sizes: tuple[int, ...]) -> bool:
        """Return whether a shape lies between verified ones, and has no more elements than they have."""
        return self.beyond(sizes) is None


def _largest_products(axes: int, shapes: "list[tuple[int, ...]]") -> "list[tuple[tuple[int, ...], int]]":
    """Return for each group of two or more axes, by their places, the largest product of a verified shape."""
    groups = (tuple(place for place in range(axes) if group >> place & 1) for group in range(1 << axes))
    return [(places, max(_product(sizes, places) for sizes in shapes)) for places in groups if len(places) > 1]


def _product(sizes: tuple[int, ...], places: tuple[int, ...]) -> int:
    product = 1
    for place in places:
        product *= sizes[place]
    return product


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
        found = untrusted.get("domain")
        declared = None if found is None else DeclaredDomain(found)
        own = _own_shape(untrusted)
        self.kernel = Kernel({**untrusted, "registry_root": registry_root, "domain": declared, "shape": own})
        self.status_reason: str | None = untrusted["status_reason"]
        self.measured_at: str = untrusted["measured_at"]
        self.state = state_of(untrusted)
        self._points: dict[tuple[str, str], dict[tuple[str, ...], list[Point]]] = {
            (regime, evidence): {} for regime in REGIMES for evidence in ("provisional", "replicated")
        }
        for measured in untrusted["points"]:
            axes, point = _point(measured, untrusted)
            for evidence in {"provisional", point.evidence.state}:
                self._points[point.evidence.regime, evidence].setdefault(axes, []).append(point)
        unproven = _unproven(untrusted)
        self.domains: dict[tuple[str, ...], Domain] = {}
        for columns in untrusted["verified"]:
            axes, sizes = tuple(sorted(columns)), [columns[axis] for axis in sorted(columns)]
            if not axes or not all(column and all(map(is_size, column)) for column in sizes):
                raise ValueError(f"kernel {untrusted['kernel_id']!r} has a bad shape among those verified")
            if len(axes) > MOST_AXES:
                raise ValueError(f"kernel {untrusted['kernel_id']!r} was verified with {len(axes)} axes")
            self.domains[axes] = Domain(axes, sizes, declared, unproven.get(axes))

    def points(self, regime: str, evidence: str = "provisional") -> "dict[tuple[str, ...], list[Point]]":
        """Return what was measured in a regime, by the shapes' axes; with `replicated`, only what held again."""
        return self._points[regime, evidence]


def parse_offers(untrusted: bytes, slot: "Slot", registry_root: str) -> tuple[Offer, ...]:
    """Return the kernels of one slot, as the lines of a snapshot have them; raise as Offer does."""
    import json

    listed = json.loads(b"[" + untrusted + b"]", parse_constant=_refuse)
    return tuple(Offer(entry, slot, registry_root) for entry in listed)


def _check(untrusted: "Document", slot: "Slot") -> None:
    kernel_id = untrusted["kernel_id"]
    if not is_plain(kernel_id, KERNEL_NAME):
        raise ValueError(f"bad kernel_id {kernel_id!r}: expected lower-case letters, digits and _")
    if (untrusted["op"], untrusted["gpu"], untrusted["dtype"]) != slot:
        raise ValueError(
            f"kernel {kernel_id!r} stands in the slot {slot!r}, which isn't its own: expected its op, gpu and dtype"
        )
    for name in TEXTS:
        if not is_text(untrusted[name]):
            raise ValueError(f"kernel {kernel_id!r} has {name} {untrusted[name]!r}: expected text")
    for name in ("status_reason", "superseded_by"):
        if not (untrusted[name] is None or is_text(untrusted[name])):
            raise ValueError(f"kernel {kernel_id!r} has {name} {untrusted[name]!r}: expected text or nothing")
    built = untrusted["artifact_sha256"]
    if not all(is_digest(untrusted[name]) for name in DIGESTS) or not (built is None or is_digest(built)):
        raise ValueError(f"kernel {kernel_id!r} has a bad digest: expected 64 hexadecimal digits in each")
    if not untrusted["entry_point"].isidentifier() or untrusted["entry_point"].startswith("__"):
        raise ValueError(
            f"kernel {kernel_id!r} has entry point {untrusted['entry_point']!r}: expected a function's name"
        )
    named = [untrusted[name] for name in SEQS] + [untrusted.get("replicated_seq", 0)]
    if not all(map(is_size, named)):
        raise ValueError(f"kernel {kernel_id!r} names events that no ledger has")


def state_of(untrusted: "Document") -> str:
    """Return whether a second measurement held."""
    return "provisional" if untrusted.get("replicated_seq") is None else "replicated"


def _own_shape(entry: "Document") -> "Mapping[str, int] | None":
    """Return the shape of the kernel's task: only points at other shapes are marked as provisional."""
    from types import MappingProxyType

    own = [one["shape"] for one in entry["points"] if one.get("provisional", False) is False]
    return MappingProxyType(dict(own[0])) if own and all(shape == own[0] for shape in own) else None


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
    # a replication measures the task's own shape; the points of further shapes say that they were measured once
    fields["replicated_seq"] = (
        None if untrusted.get("provisional", False) is not False else entry.get("replicated_seq")
    )
    fields["state"] = state_of(fields)
    fields["regime"] = untrusted.get("regime", "cold")
    measured = MappingProxyType({name: fields[name] for name in MEASURED})
    return axes, Point(sizes, Evidence(measured, 0.0))


def _unproven(entry: "Document") -> "dict[tuple[str, ...], dict[tuple[int, ...], str]]":
    """Return axes -> sizes -> why the kernel isn't promoted for that shape. Older snapshots have no such shapes."""
    found: dict[tuple[str, ...], dict[tuple[int, ...], str]] = {}
    for listed in entry.get("unproven", ()):
        shape, why = listed["shape"], listed["why"]
        axes = tuple(sorted(shape))
        sizes = tuple(shape[axis] for axis in axes)
        if not axes or not all(map(is_size, sizes)) or not is_text(why):
            raise ValueError(f"kernel {entry['kernel_id']!r} has a bad shape among those unproven")
        found.setdefault(axes, {})[sizes] = why
    return found


def _is_quantity(untrusted: object) -> bool:
    """Return whether it is a positive number that any reader of JSON can hold; NaN fails every comparison."""
    if type(untrusted) is int:
        return 0 < untrusted <= LARGEST_SIZE
    return type(untrusted) is float and 0 < untrusted < float("inf")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number that JSON has")
