"""Finds the best kernel for a shape from an index, with the same answer as `Question.judge` on every kernel.

Kernels are put into tiers by what a shape doesn't change: active before deprecated, the asked GPU before its family.
The first tier with an answer has the best one.

The index is kept because it was measured at a shape that wasn't asked before, against judging every kernel of the
slot. Processor time, mean of 256 questions, two shared CPU cores, November 2026:

- 1,000 kernels, 10 in a slot: 5 us with the index, 37 us without; the goal in benchmarks/read_side.py is 20 us
- 10,000 kernels, 100 in a slot: 12 us with the index, 364 us without
- the same with a policy that allows the GPU's family: 12 us with the index, 1,086 us without

Building the index takes 1.6 ms for a slot of 100 kernels, and 3.8 ms with the family, once for a slot and policy.
"""

from forge.lookup.policy import BETWEEN, COVERED, EXACT, FITS, NEAREST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge.lookup.offer import Domain, Offer, Point
    from forge.lookup.question import Axes, Question
    from forge.lookup.sizes import Sizes

    Row = tuple[float, str, Offer, Point]
    Found = tuple[int, float, Offer, Point]


class Tier:
    """Kernels that differ by their shapes only, all with the same axes."""

    __slots__ = ("axes", "covering", "exact", "many", "measured")

    def __init__(self, axes: "Axes") -> None:
        self.axes = axes
        self.exact: dict[Sizes, Row] = {}
        """The best kernel that was verified and measured at a shape."""
        self.covering: dict[Sizes, set[Offer]] = {}
        """Kernels that were verified at each shape."""
        self.measured: dict[Sizes, list[Row]] = {}
        """Kernels that were measured at each shape, the fastest first."""
        self.many: list[Offer] = []
        """Every kernel that was measured at two shapes or more, so that a shape may lie between them."""

    def add(self, offer: "Offer", domain: "Domain", points: "list[Point]") -> None:
        """Add a kernel that was verified in `domain`, with its measured points that count."""
        if len(points) > 1:
            self.many.append(offer)
        for sizes in domain.verified:
            self.covering.setdefault(sizes, set()).add(offer)
        for point in points:
            row = (point.median_ns, offer.kernel.kernel_id, offer, point)
            rows = self.measured.setdefault(point.sizes, [])
            rows.append(row)
            rows.sort(key=_by_time)
            if point.sizes in domain.verified and not _by_time(self.exact.get(point.sizes, row)) < _by_time(row):
                self.exact[point.sizes] = row

    def find(self, question: "Question") -> "Found | None":
        """Return the best kernel: its place in FITS, its distance, itself, and the measured point that counts."""
        row = self.exact.get(question.sizes)
        if row is not None:
            return EXACT, 0.0, row[2], row[3]
        if question.policy.loosest == EXACT:
            return None
        covering = self.covering.get(question.sizes)
        found = None if covering is None else self._nearest(question, covering)
        if found is not None:
            return (COVERED, *found)
        if question.policy.loosest == COVERED:
            return None
        inside = {offer for offer in self.many if question.sizes in offer.domains[self.axes]}
        between = {offer for offer in inside if question.bracket(offer) is not None}
        found = self._nearest(question, between) if between else None
        if found is not None:
            return (BETWEEN, *found)
        found = self._nearest(question, None) if question.policy.loosest == NEAREST else None
        return None if found is None else (NEAREST, *found)

    def _nearest(self, question: "Question", among: "set[Offer] | None") -> "tuple[float, Offer, Point] | None":
        """Return the kernel that was measured nearest to the asked shape.

        It is one of `among`, or if that is None, of the kernels whose verified domain holds the shape.
        """
        limit = question.policy.max_octaves
        near = sorted([(question.distance(rows[0][3]), sizes) for sizes, rows in self.measured.items()])
        best: tuple[float, Row] | None = None
        for distance, sizes in near:
            if (limit is not None and distance > limit) or (best is not None and distance > best[0]):
                break
            for row in self.measured[sizes]:
                offer = row[2]
                fits = offer in among if among is not None else question.sizes in offer.domains[self.axes]
                if fits:
                    if best is None or _by_time(row) < _by_time(best[1]):
                        best = distance, row
                    break
        return None if best is None else (best[0], best[1][2], best[1][3])


class Choice:
    """The kernels that may answer questions that differ by their shapes only."""

    __slots__ = ("_tiers",)

    def __init__(self, question: "Question", offers: "Iterable[Offer]") -> None:
        tiers: dict[tuple[Axes, bool, bool], Tier] = {}
        for offer in offers:
            if question.barred(offer) is None:
                last = (offer.kernel.status != "active", offer.kernel.gpu != question.gpu)
                for axes, domain in offer.domains.items():
                    points = question.points(offer).get(axes)
                    if points is not None:
                        tiers.setdefault((axes, *last), Tier(axes)).add(offer, domain, points)
        self._tiers: dict[Axes, list[tuple[bool, Tier]]] = {}
        for axes, deprecated, foreign in sorted(tiers):
            self._tiers.setdefault(axes, []).append((foreign, tiers[axes, deprecated, foreign]))

    def __bool__(self) -> bool:
        """Return whether a kernel may answer at some shape."""
        return bool(self._tiers)

    def find(self, question: "Question") -> "tuple[str, float, Offer, Point] | None":
        """Return the best kernel: its fit, its distance, itself, its measured point; None if none may answer."""
        for foreign, tier in self._tiers.get(question.axes, ()):
            found = tier.find(question)
            if found is not None:
                rank, distance, offer, point = found
                return "family" if foreign else FITS[rank], distance, offer, point
        return None


def _by_time(row: "Row") -> tuple[float, str]:
    return row[:2]
