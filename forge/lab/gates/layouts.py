"""Does it accept every input layout that the contract allows and that the candidate claims beyond the contract?

By contract an input may begin at any element of its storage, so at any address that is aligned to an element. Offsets
of different powers of two tell a kernel that needs 16 or 32 bytes from one that checks for less. Then each input
alone has the layout: a kernel may check the address or the strides of one operand only. Some inputs lie further from
the others than 32 bits count. At last two inputs of one form are one tensor, as in a call that adds a tensor to
itself. Then they are two equal tensors, and then halves of one tensor.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import assert_never

from forge.domain.tensors import ITEMSIZE_BYTES, LayoutName, TensorSpec
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement, can_have_layouts
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size, of_class
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import rows_within
from forge.lab.observed import Case
from forge.sandbox.arena import PAGE_BYTES

ELEMENTS_IN = (1, 2, 4, 8)
"""Offsets of an input in its storage, in elements. With different powers of two, a kernel that
needs 16 or 32 bytes is found, even if it checks for fewer."""
ALL_ELEMENTS_IN = range(1, 16)
"""Offsets of an input in small shapes: each address that 64 bytes have for an element of four. A loop that computes
single elements up to an aligned address may be wrong after one number of them."""
ALIGNED_WIDTHS, ODD_WIDTHS, ONE_ROW_WIDTHS = (32, 256), (17, 99), (3, 13)
"""Ranges from which widths are drawn at random: multiples of 16 and odd widths for several rows, odd widths for one
row."""
SMALL_ROWS_RANGE, LARGE_ROWS_RANGE = (2, 5), (40, 100)
"""Ranges from which numbers of rows are drawn at random. Other code often handles many rows, so both are asked. Calls
with many rows give all inputs the layout together."""
PLACES_IN_A_PAGE = (64, 128, 256, 512, 1024, 2048)
"""Largest powers of two that divide an input's distance in bytes from the start of a page. Torch's own tensors begin
at such places, and other gates' operands at pages."""
FAR_DRAWS = 4
"""Number of times that inputs are drawn which lie far from the others. Two of three inputs then stay near each other
in all of them with a chance of 1/81."""
MOST_GAP = 31
"""Number of elements or rows between two rows, and of elements before an input, at most. Only odd numbers are drawn,
which break every alignment above one element."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask in each layout at the public shape, at small shapes and in long rows.

    Then give each input alone the layout, at small shapes and in long rows. At small shapes ask every offset.
    """
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    rng = kernel.rng
    widths = of_class(rng, *ALIGNED_WIDTHS, 16, 0), odd_size(rng, *ODD_WIDTHS)
    small = [{**kernel.shape, rows: rng.randint(*SMALL_ROWS_RANGE), reduced: width} for width in widths]
    small.append({**kernel.shape, rows: 1, reduced: odd_size(rng, *ONE_ROW_WIDTHS)})
    many = [
        {**one, rows: rows_within(kernel.operation, one, one[rows])}
        for one in ({**kernel.shape, rows: rng.randint(*LARGE_ROWS_RANGE), reduced: width} for width in widths)
    ]
    long = [one for one in other_paths.shapes(kernel, modulus=16) if one[reduced] >= other_paths.SHORTEST]
    layouts: tuple[LayoutName, ...] = tuple(dict.fromkeys((*kernel.inside.layouts, *kernel.claimed)))
    for layout in layouts:
        asked = (
            *itertools.product((kernel.shape, *small, *many, *long), _placements_of_all(kernel, layout)),
            *itertools.product((*small, *long), _placements_of_one(kernel, layout)),
            *itertools.product(small, _further_offsets(kernel, layout)),
        )
        for shape, placement in asked:
            checked = kernel.check_alone(_suited(kernel, kernel.case(shape), placement), placement)
            if isinstance(checked, Failed):
                return _said(checked, _how(layout, placement))
    together = _ask_with_one_tensor(kernel) or _ask_with_halves(kernel, layouts, (kernel.shape, *small))
    if together is not None:
        return together
    claimed = f"; claimed: {', '.join(kernel.claimed)}" if kernel.claimed else "; none claimed beyond the contract"
    return Passed(
        observed=f"right in {', '.join(layouts)}{claimed}", threshold="every layout of the contract and of the claim"
    )


def _ask_with_one_tensor(kernel: LoadedKernel) -> Failed | None:
    """Ask for each two activations of one form, with one tensor for both and with equal ones; return a refusal."""
    operation = kernel.operation
    alike = [spec for spec in operation.activations if spec.name not in operation.updates]
    for one, other in itertools.combinations(alike, 2):
        if not _is_like(kernel, one, other):
            continue
        case = kernel.case(kernel.shape)
        first, second = operation.inputs.index(one), operation.inputs.index(other)
        inputs = (*case.inputs[:second], case.inputs[first], *case.inputs[second + 1 :])
        for tensors, placement in (
            ("one tensor", Placement(one_tensor=(one.name, other.name))),
            ("equal tensors", PLAIN),
        ):
            checked = kernel.check_alone(dataclasses.replace(case, inputs=inputs), placement)
            if isinstance(checked, Failed):
                return _said(checked, f"with {tensors} for {one.name!r} and {other.name!r}")
    return None


def _is_like(kernel: LoadedKernel, one: TensorSpec, other: TensorSpec) -> bool:
    return (one.axes, one.element_type(kernel.dtype)) == (other.axes, other.element_type(kernel.dtype))


def _ask_with_halves(
    kernel: LoadedKernel, layouts: Sequence[LayoutName], shapes: Sequence[Mapping[str, int]]
) -> Failed | None:
    """Ask for each two activations of one form, as halves of one tensor, in both orders; return a refusal."""
    operation, each = kernel.operation, kernel.inside.elements_apart(kernel.dtype)
    alike = [spec for spec in operation.activations if spec.name not in operation.updates]
    pairs = [two for two in itertools.permutations(alike, 2) if _is_like(kernel, *two)]
    ways = [layout for layout in layouts if layout in ("contiguous", "strided_rows")]
    for (one, other), layout, asked in itertools.product(pairs, ways, shapes):
        (shape,) = kernel.shapes(asked)
        sizes = one.sizes(shape)
        if (sizes[-1] if layout == "strided_rows" else math.prod(sizes)) % each:
            continue
        placement = Placement(layout=layout, halves=(one.name, other.name))
        checked = kernel.check_alone(kernel.case(shape), placement)
        if isinstance(checked, Failed):
            return _said(checked, f"with {one.name!r} and {other.name!r} as halves of one tensor")
    return None


def _placements_of_all(kernel: LoadedKernel, layout: LayoutName) -> tuple[Placement, ...]:
    rng, apart = kernel.rng, kernel.inside.elements_apart(kernel.dtype)
    match layout:
        case "offset":
            return tuple(Placement(layout=layout, elements_in=count * apart) for count in ELEMENTS_IN)
        case "strided_rows":
            gap = _odd_gap(rng)
            return tuple(Placement(layout=layout, gaps=gaps) for gaps in ((gap, 0), (0, gap), (gap, _odd_gap(rng))))
        case "contiguous":
            return Placement(layout=layout), *_far_apart(kernel)
        case "transposed" | "expanded":
            return (Placement(layout=layout),)
        case _:
            assert_never(layout)


def _placements_of_one(kernel: LoadedKernel, layout: LayoutName) -> list[Placement]:
    """Return a placement for each input that can have the layout, if the operation has other inputs."""
    operation, rng = kernel.operation, kernel.rng
    chosen = [spec.name for spec in operation.inputs if layout == "offset" or can_have_layouts(operation, spec)]
    if layout == "contiguous" or len(operation.inputs) == 1:
        return []
    gaps, apart = (_odd_gap(rng), 0), kernel.inside.elements_apart(kernel.dtype)
    return [Placement(layout=layout, elements_in=_odd_gap(rng) * apart, gaps=gaps, only=name) for name in chosen]


def _far_apart(kernel: LoadedKernel) -> list[Placement]:
    """Return placements in which some inputs lie far from the others, as drawn; an interpreter adds no offsets."""
    names = [spec.name for spec in kernel.operation.inputs]
    if len(names) < 2 or not (kernel.runner.shares_pages and kernel.runner.takes_large_shapes):
        return []
    chosen = (kernel.rng.sample(names, kernel.rng.randint(1, len(names) - 1)) for _ in range(FAR_DRAWS))
    return [Placement(far=frozenset(far)) for far in chosen]


def _further_offsets(kernel: LoadedKernel, layout: LayoutName) -> list[Placement]:
    """Return placements at the offsets that aren't asked of larger shapes; an interpreter loads single elements."""
    if not kernel.runner.takes_large_shapes:
        return []
    apart = kernel.inside.elements_apart(kernel.dtype)
    if layout == "contiguous":  # torch puts no tensor at the start of a page only
        smallest = min(ITEMSIZE_BYTES[spec.element_type(kernel.dtype)] for spec in kernel.operation.inputs)
        places = (step * kernel.rng.randrange(1, PAGE_BYTES // step, 2) // smallest for step in PLACES_IN_A_PAGE)
        return [Placement(layout="offset", elements_in=count) for count in places if count % apart == 0]
    if layout != "offset":
        return []
    further = [count for count in ALL_ELEMENTS_IN if count not in ELEMENTS_IN]
    return [Placement(layout=layout, elements_in=count * apart) for count in further]


def _odd_gap(rng: Seeded) -> int:
    return 2 * rng.randint(0, MOST_GAP // 2) + 1


def _suited(kernel: LoadedKernel, case: Case, placement: Placement) -> Case:
    """Return the case for the placement: in an expanded layout all rows share the first row's values."""
    if placement.layout != "expanded":
        return case
    inputs = []
    for spec, tensor in zip(kernel.operation.inputs, case.inputs, strict=True):
        if placement.only not in (None, spec.name) or not can_have_layouts(kernel.operation, spec):
            inputs.append(tensor)
        else:
            first = tensor.narrow(spec.axes.index(kernel.operation.row_axis), 0, 1)
            inputs.append(first.expand_as(tensor))
    return dataclasses.replace(case, inputs=tuple(inputs))


def _how(layout: LayoutName, placement: Placement) -> str:
    """Return in words how the inputs lie."""
    if placement.far:
        return f"with {', '.join(sorted(placement.far))} more than 2^32 bytes from the other inputs"
    if layout != placement.layout:
        return f"with inputs that begin {placement.elements_in} elements behind a page's start"
    return f"with inputs laid out {layout}"


def _said(failed: Failed, how: str) -> Failed:
    message = f"{how}: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


LAYOUTS = Gate(name="layouts", examine=examine, needs=frozenset({"layouts"}))
