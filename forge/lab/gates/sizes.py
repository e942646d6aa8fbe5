"""Is it correct at sizes the author wasn't shown: one, around powers of two, drawn in each octave, large, held out?

Apart from known edges, all sizes are drawn anew for each examination. The operation's listed workloads are asked
besides the public one, and so are shapes of sizes like theirs. Each shape that costs little is also asked some other
kinds of values, as shifted ones or NaN.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates import configurations, large_offsets, listed_workloads, workload_sizes
from forge.lab.gates.chosen_shapes import (
    VERY_WIDE,
    corner_shapes,
    drawn_shapes,
    edge_shapes,
    large_shapes,
    many_wide_rows,
)
from forge.lab.gates.gate import Gate
from forge.lab.gates.kinds_in_turn import KindsInTurn
from forge.lab.gates.long_pairs import long_pairs
from forge.lab.gates.telling_sizes import BEYOND_SIXTEEN_BITS, telling_sizes
from forge.lab.inputs.changes import has_patterns, largest_at_the_end, swap_in_row, unusual_patterns
from forge.lab.inputs.shape_budget import costs_of, largest_operand
from forge.lab.observed import Case

AGAIN_SHARE, LARGE_AGAIN_SHARE = 0.25, 0.5
"""Share of the shapes that are asked twice, of those with one telling size and of those with many wide rows. Chosen;
they are most of all shapes, and a cache by shape shows at any of them. Large ones have no other kinds of values."""
SWAP_ELEMENTS = 2**17
"""Smallest operand, in elements, for which a second question may only swap two elements. Chosen; a kernel may cache
costly work by shape, by address or by a few elements."""
SWAP_SHARE = 0.5
"""Chance that such a second question only swaps two elements. Otherwise all contents are new."""
KINDS_EACH = 3
"""Number of further kinds of values at each shape that costs little. Chosen: ten shapes one after the other get each
of fifteen kinds."""
MOST_KINDS_ELEMENTS, MOST_KINDS_FLOPS = 2**16, 2**24
"""Number of elements in all operands, and of floating-point operations, up to which further kinds are asked. Chosen;
three rows of 4,096 columns are within both."""
INTERPRETED_UNUSUAL_SHARE = 0.5
"""Chance that an interpreter's only question at a shape has an unusual pattern of groups' sizes or of slots. Natively
the second question has one."""
INTERPRETED_KIND_SHARE = 0.5
"""Chance that an interpreter's only question at a shape has another kind of values than normal ones."""
INTERPRETED_HELD_OUT = 12
"""Number of held-out shapes that an interpreter is asked, drawn at random if there are more. It takes long, and a
reference file's task may hold out 40."""
SHORTER_ROWS, LONG_ROW = 4, 4096
"""Number of single rows that are asked once more after longer ones, and the width from which they are long."""
SLOW_S = 8.0
"""Seconds of one call with more than 65,536 columns from which no row beyond 131,072 is asked, but those of a domain.
Chosen; a compiler that holds a row in one block takes four times as long for twice the row. On an H200 a right
softmax was compiled for more than 120 s at 234,043 columns."""
THRESHOLD = "1 x the bound at every shape"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge edges, drawn, large and held-out shapes; the smallest failing one is the counterexample.

    Each is asked again with other contents, and some with each configuration of an autotuned kernel.
    """
    inside, of_domain = _domain_shapes(kernel)
    drawn = other_shapes(kernel, *edge_shapes(kernel), *drawn_shapes(kernel), *corner_shapes(kernel), *inside)
    large = other_shapes(kernel, *large_shapes(kernel))
    held_out = _held_out(kernel)
    asked = _in_order((*drawn, *held_out, *large))
    if not asked:
        return NotAsked(observed="the reference runs only at its own sizes: none held out", threshold=THRESHOLD)
    kinds, errors = KindsInTurn(kernel), list[WorkloadErrors]()
    # held-out ones once more: a kernel may keep a plan for the last shape
    for shape in (*asked, *reversed(held_out), *_shorter_rows(kernel, asked)):
        checked = _ask_at(kernel, shape, kinds, large=shape in large)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    tuned = configurations.ask_each(kernel, _telling_draws(kernel, (*drawn, *large)))
    if isinstance(tuned, Failed):
        return tuned
    return _right(f"{len(asked)} shapes, {len(held_out)} held out{of_domain}", (*errors, *tuned))


def examine_telling(kernel: LoadedKernel) -> Finding:
    """Judge shapes with one telling size, with many wide rows, and with two long axes; some come again."""
    asked = _in_order(other_shapes(kernel, *telling_sizes(kernel), *many_wide_rows(kernel), *long_pairs(kernel)))
    if not asked:
        return NotAsked(observed="the reference runs only at its own sizes", threshold=THRESHOLD)
    kinds, widest, errors = KindsInTurn(kernel), _Widest(kernel), list[WorkloadErrors]()
    for shape in (*asked, *_shorter_rows(kernel, asked)):
        if widest.leaves_out(shape):
            continue
        checked = _ask_at(kernel, shape, kinds, again=_comes_again(kernel, shape), widest=widest)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    return _right(f"{len(asked)} shapes with a telling size{widest}", errors)


def examine_workloads(kernel: LoadedKernel) -> Finding:
    """Judge the operation's other listed workloads, and shapes with sizes like theirs."""
    listed = listed_workloads.ask(kernel, KindsInTurn(kernel))
    if isinstance(listed, Failed):
        return listed
    alike = workload_sizes.ask(kernel)
    return alike if isinstance(alike, Failed) else Passed(observed=f"{listed}; {alike}", threshold=THRESHOLD)


def examine_past_2_gib(kernel: LoadedKernel) -> Finding:
    """Judge a call past 2^31 elements or bytes."""
    past = large_offsets.ask(kernel)
    return past if isinstance(past, Failed) else Passed(observed=past, threshold=THRESHOLD)


def _in_order(shapes: Iterable[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Return the shapes with the smallest first."""
    return sorted(shapes, key=lambda shape: (math.prod(shape.values()), sorted(shape.items())))


def _right(asked: str, errors: Sequence[WorkloadErrors]) -> Passed:
    worst = max(error.bound_used for error in errors)
    return Passed(observed=f"{worst:.3g} x the bound over {asked}", threshold=THRESHOLD, errors=tuple(errors))


def _comes_again(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    """Draw whether a shape with one telling size, or with many wide rows, is asked twice."""
    share = AGAIN_SHARE if largest_operand(kernel.operation, shape) < SWAP_ELEMENTS else LARGE_AGAIN_SHARE
    return kernel.rng.random() < share


class _Widest:
    """The widest rows of an examination, which aren't asked once a call with a shorter one was slow; see `SLOW_S`."""

    def __init__(self, kernel: LoadedKernel) -> None:
        self._axis = kernel.operation.reduced_axis
        self._slow, self._left_out = False, 0

    def note(self, shape: Mapping[str, int], took_ns: int) -> None:
        """Note what the first call at a shape took."""
        self._slow |= shape[self._axis] >= BEYOND_SIXTEEN_BITS[0] and took_ns > SLOW_S * 1e9

    def leaves_out(self, shape: Mapping[str, int]) -> bool:
        """Whether the shape isn't asked."""
        leaves_out = self._slow and shape[self._axis] > VERY_WIDE[1]
        self._left_out += leaves_out
        return leaves_out

    def __str__(self) -> str:
        if not self._left_out:
            return ""
        return f", none beyond {VERY_WIDE[1]} columns, since a shorter row takes more than {SLOW_S:g} s"


def _shorter_rows(kernel: LoadedKernel, asked: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Return some long single rows, the longest first: a kernel may read what a longer one left in its workspace.

    An interpreter gets none.
    """
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    long = [shape for shape in asked if shape[rows] == 1 and shape[reduced] >= LONG_ROW]
    chosen = kernel.rng.sample(long, min(len(long), SHORTER_ROWS)) if kernel.runner.takes_large_shapes else []
    return sorted(chosen, key=lambda shape: -shape[reduced])


def _held_out(kernel: LoadedKernel) -> tuple[Mapping[str, int], ...]:
    if kernel.runner.takes_large_shapes or len(kernel.held_out) <= INTERPRETED_HELD_OUT:
        return kernel.held_out
    chosen = sorted(kernel.rng.sample(range(len(kernel.held_out)), INTERPRETED_HELD_OUT))
    return tuple(kernel.held_out[place] for place in chosen)


def _telling_draws(kernel: LoadedKernel, asked: Sequence[Mapping[str, int]]) -> list[Callable[[], Case]]:
    """Return draws at the widest row, at a random shape, and at most rows unless that takes too long."""
    if not asked:
        return []
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    widest, tallest = (max(asked, key=lambda shape: shape[axis]) for axis in (reduced, rows))
    shapes = (widest, kernel.rng.choice(asked), *((tallest,) if kernel.runner.takes_large_shapes else ()))
    return [partial(kernel.case, shape) for shape in shapes]


def other_shapes(kernel: LoadedKernel, *wanted: Mapping[str, int]) -> list[Mapping[str, int]]:
    """Return the wanted shapes without the public one; none if the operation isn't defined at others.

    In a domain several of them may become the same one, which comes once.
    """
    found = [shape for shape in kernel.shapes(*wanted) if shape != kernel.shape]
    if kernel.inside.domain is None:
        return found
    return list({tuple(sorted(shape.items())): shape for shape in found}.values())


def _domain_shapes(kernel: LoadedKernel) -> tuple[Sequence[Mapping[str, int]], str]:
    """Return shapes at the edges of the candidate's domain and anywhere in it, and in words how many."""
    if kernel.inside.domain is None or "sizes" not in kernel.definition.declares:
        return (), ""
    shapes, left_out = kernel.inside.shapes(kernel.inside.domain, kernel.rng)
    left = f", {left_out} edges not asked (cost)" if left_out else ""
    return shapes, f", {len(shapes)} at the domain's edges and anywhere in it{left}"


def _ask_at(
    kernel: LoadedKernel,
    shape: Mapping[str, int],
    kinds: KindsInTurn,
    *,
    large: bool = False,
    again: bool = True,
    widest: _Widest | None = None,
) -> tuple[WorkloadErrors, ...] | Failed:
    """Ask at one shape, `again` with other contents, and with other kinds of values; of an interpreter once.

    The second call has the same addresses. Small held-out shapes come again anyway.
    """
    case = _case(kernel, shape, "normal")
    if not kernel.runner.takes_large_shapes:
        return kernel.check_alone(_interpreted(kernel, case, kinds))
    checked = kernel.check_alone(case)
    if isinstance(checked, Failed):
        return checked
    if widest is not None:
        widest.note(case.shape, kernel.undelayed_ns)
    may_swap = large or largest_operand(kernel.operation, shape) >= SWAP_ELEMENTS
    again_too = again and (has_patterns(kernel.operation) or may_swap or shape not in kernel.held_out)
    others = [_other_contents(kernel, case, kinds, may_swap=may_swap)] if again_too else []
    others += _other_kinds(kernel, case.shape, kinds)
    observed = kernel.call(others) if others else ()
    return observed if isinstance(observed, Failed) else kernel.first_wrong(observed) or checked


def _interpreted(kernel: LoadedKernel, case: Case, kinds: KindsInTurn) -> Case:
    """Return an interpreter's only question at a shape: the case, or one of another kind or with unusual patterns."""
    operation, rng = kernel.operation, kernel.rng
    if rng.random() < INTERPRETED_KIND_SHARE:
        case = _case(kernel, case.shape, kinds.at(case.shape))
    if has_patterns(operation) and rng.random() < INTERPRETED_UNUSUAL_SHARE:
        return unusual_patterns(operation, case, rng)
    return case


def _other_contents(kernel: LoadedKernel, case: Case, kinds: KindsInTurn, *, may_swap: bool) -> Case:
    """Return a second question at the case's shape, of another kind; in some large shapes two elements are swapped.

    Groups' sizes and slots have a random pattern in new contents, with empty groups or all rows in one.
    """
    operation, rng = kernel.operation, kernel.rng
    movable = [place for place in range(len(case.inputs)) if place not in operation.still]
    if may_swap and movable and rng.random() < SWAP_SHARE:
        return swap_in_row(case, rng.choice(movable), rng)
    other = _case(kernel, case.shape, kinds.at(case.shape))
    return unusual_patterns(operation, other, rng) if has_patterns(operation) else other


def _other_kinds(kernel: LoadedKernel, shape: Mapping[str, int], kinds: KindsInTurn) -> list[Case]:
    """Return a case of each of the next kinds, at a shape that costs little."""
    elements, flops = costs_of(kernel.operation, shape)
    if elements > MOST_KINDS_ELEMENTS or flops > MOST_KINDS_FLOPS:
        return []
    return [_case(kernel, shape, kinds.at(shape)) for _ in range(KINDS_EACH)]


def _case(kernel: LoadedKernel, shape: Mapping[str, int], kind: InputKind) -> Case:
    """Draw new contents; most rows have their largest number at their end, where a kernel may leave it out."""
    return largest_at_the_end(kernel.operation, kernel.case(shape, kind), kernel.rng)


SIZES = Gate(
    name="sizes",
    examine=examine,
    further=(examine_telling, examine_workloads, examine_past_2_gib),
    one_call_shows_it=True,
    beside=True,
)
