"""Does it accept every input layout that the contract allows and that the candidate claims beyond the contract?

By contract an input may begin at any element of its storage, so at any address that is aligned to an element. Offsets
of different powers of two tell a kernel that needs 16 or 32 bytes from one that checks for less. Then each input
alone has the layout: a kernel may check the address or the strides of one operand only. Some inputs lie further from
the others than 32 bits count. At last two inputs of one form are one tensor, as in a call that adds a tensor to
itself. Then they are two equal tensors, and then halves of one tensor. Half of the questions have another kind of
values than normal ones, as large, small, shifted or special ones.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import assert_never

from forge.domain.input_kind import InputKind
from forge.domain.tensors import ITEMSIZE_BYTES, LayoutName, TensorSpec
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement, can_have_layouts
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates import configurations, other_paths
from forge.lab.gates.gate import Gate
from forge.lab.gates.kinds_in_turn import KindsInTurn
from forge.lab.inputs.random_sizes import odd_size, of_class
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import largest_row, rows_within
from forge.lab.observed import Case
from forge.operations.operation import Operation
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
MOST_GAP = 31
"""Number of elements or rows between two rows, and of elements before an input, at most. Only odd numbers are drawn,
which break every alignment above one element."""
LARGE_ELEMENTS = 2**22
"""Number of elements in the largest operand with rows, in two questions with an offset and with gaps. Chosen; kernels
have code of their own for operands of this size, and each takes about a quarter of a second with its judgement."""
INTERPRETED_PLACEMENTS = 2
"""Number of placements of each layout in which an interpreter is asked many rows, and of one input in long rows.
Chosen; such a call takes it up to a second, and no address makes it fail by itself."""
KIND_SHARE = 0.5
"""Chance that a question has another kind of values than normal ones. Chosen; each placement is asked at some shapes.
"""
ALIGNED_GAP = 16
"""Number of elements between two rows that keeps alignment, as in a slice of a padded or a joined buffer."""
THRESHOLD = "every layout of the contract and of the claim"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask in each layout, but for offsets, at the public shape, at small shapes and in long rows.

    Then give each input alone the layout. At last ask two inputs together.
    """
    layouts = _layouts(kernel)
    others = [one for one in layouts if one != "offset"]
    failed = _ask_in(kernel, others) or _ask_together(kernel, layouts)
    if failed is not None:
        return failed
    claimed = f"claimed: {', '.join(kernel.claimed)}" if kernel.claimed else "none claimed beyond the contract"
    return Passed(observed=f"right in {', '.join(others)}; {claimed}", threshold=THRESHOLD)


def examine_offsets(kernel: LoadedKernel) -> Finding:
    """Ask so inputs that begin at other elements than the first of their storage, at small shapes at every one."""
    if "offset" not in _layouts(kernel):
        return NotAsked(observed="no input may begin elsewhere", threshold=THRESHOLD)
    return _ask_in(kernel, ["offset"]) or Passed(observed="right at each offset", threshold=THRESHOLD)


def _layouts(kernel: LoadedKernel) -> tuple[LayoutName, ...]:
    """Return the layouts of the contract inside the candidate's domain, and those of its claim."""
    return tuple(dict.fromkeys((*kernel.inside.layouts, *kernel.claimed)))


def _ask_in(kernel: LoadedKernel, layouts: Sequence[LayoutName]) -> Failed | None:
    """Ask in each of the layouts at the public shape, at small shapes and in long rows; return a refusal.

    Then give each input alone the layout, at small shapes and in long rows. At small shapes ask every offset, and
    each configuration of an autotuned kernel.
    """
    rng, reduced = kernel.rng, kernel.operation.reduced_axis
    widths = of_class(rng, *ALIGNED_WIDTHS, 16, 0), odd_size(rng, *ODD_WIDTHS)
    small = _small(kernel, widths)
    others = other_paths.shapes(kernel, modulus=16)
    long = [one for one in others if one[reduced] >= other_paths.SHORTEST]
    kinds = KindsInTurn(kernel)
    tall = [*_many(kernel, widths), *(one for one in others if one not in long)]
    for layout in layouts:
        asked = (
            *itertools.product((kernel.shape, *small, *long), _placements_of_all(kernel, layout)),
            *itertools.product(tall, _few_if_interpreted(kernel, _placements_of_all(kernel, layout))),
            *itertools.product(small[:2], _placements_of_one(kernel, layout)),
            *itertools.product(long, _few_if_interpreted(kernel, _placements_of_one(kernel, layout))),
            *itertools.product(small, _further_offsets(kernel, layout)),
        )
        for shape, placement in asked:
            kind = kinds.at(shape) if rng.random() < KIND_SHARE else "normal"
            checked = kernel.check_alone(_drawn_for(kernel, shape, placement, kind), placement)
            if isinstance(checked, Failed):
                return said_how(checked, _how(layout, placement))
        tuned = _with_each_configuration(kernel, layout, small[0]) or _ask_large(kernel, layout)
        if tuned is not None:
            return tuned
    return None


def _ask_together(kernel: LoadedKernel, layouts: Sequence[LayoutName]) -> Failed | None:
    """Ask two inputs of one form as one tensor, as equal ones, and as halves of one; return a refusal."""
    widths = of_class(kernel.rng, *ALIGNED_WIDTHS, 16, 0), odd_size(kernel.rng, *ODD_WIDTHS)
    shapes = kernel.shape, *_small(kernel, widths)
    return _ask_with_one_tensor(kernel) or _ask_with_halves(kernel, KindsInTurn(kernel), layouts, shapes)


def _small(kernel: LoadedKernel, widths: tuple[int, ...]) -> list[Mapping[str, int]]:
    rows, reduced, rng = kernel.operation.row_axis, kernel.operation.reduced_axis, kernel.rng
    few = [{**kernel.shape, rows: rng.randint(*SMALL_ROWS_RANGE), reduced: width} for width in widths]
    return [*few, {**kernel.shape, rows: 1, reduced: odd_size(rng, *ONE_ROW_WIDTHS)}]


def _many(kernel: LoadedKernel, widths: tuple[int, ...]) -> list[Mapping[str, int]]:
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    wanted = [{**kernel.shape, rows: kernel.rng.randint(*LARGE_ROWS_RANGE), reduced: width} for width in widths]
    return [{**one, rows: rows_within(kernel.operation, one, one[rows])} for one in wanted]


def _with_each_configuration(kernel: LoadedKernel, layout: LayoutName, shape: Mapping[str, int]) -> Failed | None:
    """Ask in each placement of all inputs with each configuration of an autotuned kernel; return a refusal."""
    for placement in _placements_of_all(kernel, layout):
        draw = partial(_drawn_for, kernel, shape, placement)
        checked = configurations.ask_each(kernel, [draw], placement)
        if isinstance(checked, Failed):
            return said_how(checked, _how(layout, placement))
    return None


def _ask_large(kernel: LoadedKernel, layout: LayoutName) -> Failed | None:
    """Ask large operands that begin at one element or lie with gaps, where they are quickly drawn."""
    operation = kernel.operation
    if layout not in ("offset", "strided_rows") or not kernel.runner.takes_large_shapes:
        return None
    rows = rows_within(operation, kernel.shape, LARGE_ELEMENTS // largest_row(operation, kernel.shape) + 1)
    (shape,) = kernel.shapes({**kernel.shape, operation.row_axis: max(rows, kernel.shape[operation.row_axis])})
    apart = kernel.inside.elements_apart(kernel.dtype)
    placement = Placement(layout=layout, elements_in=apart, gaps=(odd_gap(kernel.rng), 0))
    if not kernel.fits(shape, 1, placement):
        return None
    checked = kernel.check_alone(kernel.case(shape), placement)
    return said_how(checked, f"large operands {_how(layout, placement)}") if isinstance(checked, Failed) else None


def _ask_with_one_tensor(kernel: LoadedKernel) -> Failed | None:
    """Ask for each two activations of one form, with one tensor for both and with equal ones; return a refusal."""
    for one, other in alike_inputs(kernel):
        names = one.name, other.name
        case = with_one_tensor(kernel.operation, kernel.case(kernel.shape), names)
        for tensors, placement in (("one tensor", Placement(one_tensor=names)), ("equal tensors", PLAIN)):
            checked = kernel.check_alone(case, placement)
            if isinstance(checked, Failed):
                return said_how(checked, f"with {tensors} for {one.name!r} and {other.name!r}")
    return None


def with_one_tensor(operation: Operation, case: Case, names: tuple[str, str]) -> Case:
    """Return the case with the first input's contents for the second one, too."""
    first, second = (next(place for place, one in enumerate(operation.inputs) if one.name == name) for name in names)
    inputs = (*case.inputs[:second], case.inputs[first], *case.inputs[second + 1 :])
    return dataclasses.replace(case, inputs=inputs)


def alike_inputs(kernel: LoadedKernel) -> list[tuple[TensorSpec, TensorSpec]]:
    """Return each two activations of one form, in their order; none that is updated."""
    alike = [spec for spec in kernel.operation.activations if spec.name not in kernel.operation.updates]
    return _of_one_form(kernel, alike)


def _of_one_form(kernel: LoadedKernel, inputs: Sequence[TensorSpec]) -> list[tuple[TensorSpec, TensorSpec]]:
    return [two for two in itertools.combinations(inputs, 2) if _form(kernel, two[0]) == _form(kernel, two[1])]


def _form(kernel: LoadedKernel, spec: TensorSpec) -> tuple[object, ...]:
    return spec.axes, spec.element_type(kernel.dtype)


def _ask_with_halves(
    kernel: LoadedKernel, kinds: KindsInTurn, layouts: Sequence[LayoutName], shapes: Sequence[Mapping[str, int]]
) -> Failed | None:
    """Ask for each two inputs of one form, as halves of one tensor, in both orders; return a refusal.

    Weights and caches may be halves of one buffer. The rows of two activations may be halves of longer rows, too.
    """
    each = kernel.inside.elements_apart(kernel.dtype)
    ways: list[tuple[LayoutName, list[tuple[TensorSpec, TensorSpec]]]] = [
        ("contiguous", _of_one_form(kernel, kernel.operation.inputs)),
        ("strided_rows", alike_inputs(kernel)),
    ]
    orders = [(way, one) for way, pairs in ways if way in layouts for two in pairs for one in (two, two[::-1])]
    for (layout, (one, other)), asked in itertools.product(orders, shapes):
        (shape,) = kernel.shapes(asked)
        sizes = one.sizes(shape)
        if (sizes[-1] if layout == "strided_rows" else math.prod(sizes)) % each:
            continue
        placement = Placement(layout=layout, halves=(one.name, other.name))
        kind_each: tuple[InputKind, ...] = ("normal", kinds.at(shape))
        for kind in kind_each:
            checked = kernel.check_alone(kernel.case(shape, kind), placement)
            if isinstance(checked, Failed):
                return said_how(checked, f"with {one.name!r} and {other.name!r} as halves of one tensor")
    return None


def _placements_of_all(kernel: LoadedKernel, layout: LayoutName) -> tuple[Placement, ...]:
    rng, apart = kernel.rng, kernel.inside.elements_apart(kernel.dtype)
    match layout:
        case "offset":
            return tuple(Placement(layout=layout, elements_in=count * apart) for count in ELEMENTS_IN)
        case "strided_rows":
            gap = odd_gap(rng)
            gaps = (gap, 0), (0, gap), (gap, odd_gap(rng)), (ALIGNED_GAP, 0)
            able = [spec for spec in kernel.operation.inputs if can_have_layouts(kernel.operation, spec)]
            outer = (odd_gap(rng), ALIGNED_GAP) if any(len(spec.axes) > 2 for spec in able) else ()
            return (
                *(Placement(layout=layout, gaps=one) for one in gaps),
                *(Placement(layout=layout, gaps=(0, 0), outer_gap=one) for one in outer),
            )
        case "contiguous":
            return Placement(layout=layout), *_far_apart(kernel)
        case "transposed" | "expanded":
            return (Placement(layout=layout),)
        case _:
            assert_never(layout)


def _few_if_interpreted(kernel: LoadedKernel, placements: Sequence[Placement]) -> Sequence[Placement]:
    """Return the placements for many or long rows; an interpreter takes long for these, and gets two at random."""
    if kernel.runner.takes_large_shapes:
        return placements
    return kernel.rng.sample(placements, min(INTERPRETED_PLACEMENTS, len(placements)))


def _placements_of_one(kernel: LoadedKernel, layout: LayoutName) -> list[Placement]:
    """Return a placement for each input that can have the layout, if the operation has other inputs."""
    operation, rng = kernel.operation, kernel.rng
    chosen = [spec.name for spec in operation.inputs if layout == "offset" or can_have_layouts(operation, spec)]
    if layout == "contiguous" or len(operation.inputs) == 1:
        return []
    apart, gap = kernel.inside.elements_apart(kernel.dtype), (odd_gap(rng), 0)
    ways = [(odd_gap(rng) * apart, gap), (0, (ALIGNED_GAP, 0))]
    if layout == "offset":
        ways = [(count * apart, gap) for count in ELEMENTS_IN]
    return [
        Placement(layout=layout, elements_in=count, gaps=gaps, only=name)
        for name, (count, gaps) in itertools.product(chosen, ways)
    ]


def _far_apart(kernel: LoadedKernel) -> list[Placement]:
    """Return placements in which each input lies far before and far behind each other one; an interpreter has none.

    In a random order of the inputs, each binary digit of their numbers parts them, and any two differ in one.
    """
    names = [spec.name for spec in kernel.operation.inputs]
    if len(names) < 2 or not (kernel.runner.shares_pages and kernel.runner.takes_large_shapes):
        return []
    kernel.rng.shuffle(names)
    digits = range((len(names) - 1).bit_length())
    parts = (frozenset(name for place, name in enumerate(names) if place >> digit & 1) for digit in digits)
    return [Placement(far=far) for part in parts for far in (part, frozenset(names) - part)]


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


def odd_gap(rng: Seeded) -> int:
    """Draw a distance that breaks every alignment above one element."""
    return 2 * rng.randint(0, MOST_GAP // 2) + 1


def _drawn_for(
    kernel: LoadedKernel, shape: Mapping[str, int], placement: Placement, kind: InputKind = "normal"
) -> Case:
    """Return a new case for the placement."""
    return as_laid_out(kernel.operation, kernel.case(shape, kind), placement)


def as_laid_out(operation: Operation, case: Case, placement: Placement) -> Case:
    """Return the case for the placement: in an expanded layout all rows share the first row's values."""
    if placement.layout != "expanded":
        return case
    inputs = []
    for spec, tensor in zip(operation.inputs, case.inputs, strict=True):
        if placement.only not in (None, spec.name) or not can_have_layouts(operation, spec):
            inputs.append(tensor)
        else:
            first = tensor.narrow(spec.axes.index(operation.row_axis), 0, 1)
            inputs.append(first.expand_as(tensor))
    return dataclasses.replace(case, inputs=tuple(inputs))


def _how(layout: LayoutName, placement: Placement) -> str:
    """Return in words how the inputs lie."""
    if placement.far:
        return f"with {', '.join(sorted(placement.far))} more than 2^32 bytes from the other inputs"
    if layout != placement.layout:
        return f"with inputs that begin {placement.elements_in} elements behind a page's start"
    return f"with inputs laid out {layout}"


def said_how(failed: Failed, how: str) -> Failed:
    """Return the refusal with words in front that say how the call was made."""
    message = f"{how}: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


LAYOUTS = Gate(name="layouts", examine=examine, further=(examine_offsets,), needs=frozenset({"layouts"}), beside=True)
