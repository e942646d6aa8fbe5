"""Keeps what the gates ask inside a candidate's domain, at about the cost that they asked for.

Each gate asks the shapes that it always asks. A shape outside the domain becomes the nearest one inside. If that
costs much more than the old shape, other axes are made shorter.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from forge.domain.domain_shapes import Sizes, edge_shapes, listed_shapes, nearest_inside, random_inside
from forge.domain.kernel_domain import KernelDomain, effective_layouts
from forge.domain.tensors import ITEMSIZE_BYTES, DType, LayoutName
from forge.lab.inputs.random_sizes import WIDEST
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import costs_of
from forge.lab.runner import PROCESSOR, Runner
from forge.operations.operation import Operation

COST_FACTOR = 4
"""Factor by which a shape inside may cost more than the shape that was asked for, or than the public one. Chosen; the
sizes that a domain lists may be that far apart."""
CHEAP_FLOPS = 2**32
"""Floating-point operations up to which a shape is never made smaller. A matrix product of 2^32 operations took 0.3 s
in fp64 on one core."""
RANDOM_SHAPES = 8
"""Number of shapes that are drawn anywhere in the domain. Chosen; each costs a call."""
ALLOCATED_BYTES = 64
"""Number of bytes that divides every address that torch allocates, on a CPU and on a GPU."""
Costs = tuple[int, int]
"""Elements of all operands, and floating-point operations."""


@dataclass(frozen=True)
class Inside:
    """The shapes that gates may ask of one candidate."""

    operation: Operation
    public: Mapping[str, int]
    domain: KernelDomain | None = None
    """Domain that the candidate declares, resolved. None: all of the operation's contract."""
    runner: Runner = PROCESSOR

    def contains(self, shape: Mapping[str, int]) -> bool:
        """Return whether the candidate must answer at a shape."""
        return self.domain is None or self.domain.contains(shape)

    @property
    def layouts(self) -> tuple[LayoutName, ...]:
        """The layouts in which inputs must be accepted."""
        return effective_layouts(self.domain, self.operation.layouts)

    @property
    def address_bytes(self) -> int:
        """Number of bytes that divides the address of every input; 1 if an input may begin at any element."""
        stated = 1 if self.domain is None else self.domain.alignment_bytes or 1
        return max(stated, 1 if "offset" in self.layouts else ALLOCATED_BYTES)

    def elements_apart(self, dtype: DType) -> int:
        """Return the number of elements between two places at which every input may begin."""
        smallest = min(ITEMSIZE_BYTES[spec.element_type(dtype)] for spec in self.operation.inputs)
        return max(1, self.address_bytes // smallest)

    def within(self, shape: Mapping[str, int]) -> Mapping[str, int]:
        """Return the shape, or one of about its cost inside the domain."""
        if self.domain is None or self.domain.contains(shape):
            return shape
        return self._cheaper(self.domain, shape, self._limits(shape, self.public))

    def shapes(self, domain: KernelDomain, rng: Seeded) -> tuple[list[Sizes], int]:
        """Return shapes at the domain's edges, random ones in it, and combinations of the sizes that it lists.

        Also return how many edges cost too much to ask.
        """
        limits = self._limits(self.public)
        edges = edge_shapes(
            domain, self.public, lambda axis, shape: self._cheaper(domain, shape, limits, pinned=axis)
        )
        asked = [shape for shape in edges if not _exceeds(costs_of(self.operation, shape), limits)]
        wide = self.operation.reduced_axis
        most = {axis: max(WIDEST if axis == wide else 0, 2 * size) for axis, size in self.public.items()}
        drawn = [random_inside(domain, self.public, most, rng) for _ in range(RANDOM_SHAPES)]
        drawn += listed_shapes(domain, self.public, rng, self.runner.most_listed)
        return [*asked, *(self._cheaper(domain, shape, limits) for shape in drawn)], len(edges) - len(asked)

    def is_cheap(self, shape: Mapping[str, int]) -> bool:
        """Return whether a call at a shape costs little, or little more than at the public one."""
        return not _exceeds(costs_of(self.operation, shape), self._limits(self.public))

    def _limits(self, *shapes: Mapping[str, int]) -> Costs:
        costs = [costs_of(self.operation, shape) for shape in shapes]
        elements, flops = (COST_FACTOR * max(one) for one in zip(*costs, strict=True))
        return max(elements, self.runner.cheap_elements), max(flops, CHEAP_FLOPS)

    def _cheaper(self, domain: KernelDomain, shape: Mapping[str, int], limits: Costs, *, pinned: str = "") -> Sizes:
        """Return the nearest shape inside, made smaller until its cost is allowed; `pinned` isn't made shorter."""
        found = nearest_inside(domain, shape, self.public)
        while _exceeds(costs_of(self.operation, found), limits):
            smaller = _smaller(self.operation, domain, found, pinned)
            if smaller is None:
                break
            found = smaller
        return found


def _exceeds(costs: Costs, most: Costs) -> bool:
    return any(cost > limit for cost, limit in zip(costs, most, strict=True))


def _smaller(operation: Operation, domain: KernelDomain, found: Sizes, pinned: str) -> Sizes | None:
    """Return the shape with its longest axis halved, as far as the domain lets it; None if no axis can be halved."""
    for axis in sorted(found, key=lambda one: -found[one]):
        halved = domain.sizes_of(axis).at_most(found[axis] // 2)
        if axis == pinned or not 0 < halved < found[axis]:
            continue
        candidate = nearest_inside(domain, {**found, axis: halved}, found)
        if candidate.get(pinned) == found.get(pinned) and costs_of(operation, candidate) < costs_of(operation, found):
            return candidate
    return None


def held_out_inside(
    held_out: tuple[Mapping[str, int], ...], domain: KernelDomain | None, public: Mapping[str, int], seed: int
) -> tuple[Mapping[str, int], ...]:
    """Return the held-out shapes; one that lies outside the domain is replaced by a random one inside.

    Replacements are new in each examination, so no refusal tells what the held-out shapes are.
    """
    if domain is None:
        return held_out
    rng = Seeded(seed, "held out inside")
    most = (
        {axis: max(size, *(shape[axis] for shape in held_out)) for axis, size in public.items()} if held_out else {}
    )
    return tuple(one if domain.contains(one) else random_inside(domain, public, most, rng) for one in held_out)
