"""Is it correct where sizes, values, scalars, layout, pages and the way of the call come together as in programs?

Other gates ask one of these after the other, with plain ones of the others. Here each question draws all of them:
one row or many, widths of models or odd ones, usual sizes of a head, any kind of values, NaN and masks among them.
Inputs begin at odd addresses, are slices of wider rows, halves of one tensor, or one tensor. Each shape is asked
twice, and the shapes come in no order, so that a longer call comes before a shorter one. Outputs are read after the
last call of a release.

Calls in inference mode are left to the gate `state`.
"""

import math
from collections.abc import Mapping

from forge.domain.input_kind import InputKind
from forge.domain.tensors import LayoutName, LogSums, TensorSpec
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Pages, Placement, can_have_layouts
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates.bounds import may_end_at_a_page
from forge.lab.gates.combined_shapes import CombinedShapes
from forge.lab.gates.gate import Gate
from forge.lab.gates.kinds_in_turn import KindsInTurn
from forge.lab.gates.layouts import ALIGNED_GAP, alike_inputs, odd_gap, said_how, with_one_tensor
from forge.lab.gates.state import WORDS
from forge.lab.inputs.changes import has_patterns, largest_at_the_end, unusual_patterns
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.shape_budget import costs_of
from forge.lab.observed import Case
from forge.sandbox.arena import set_bytes
from forge.sandbox.ways import NO_WAYS, Ways

PARTS = 3
"""Number of parts, which may be asked side by side. Chosen; on an H200 the gate took the longest of all."""
SHAPES, INTERPRETED_SHAPES = 40, 4
"""Numbers of shapes of each part, natively and in an interpreter. Chosen: of two properties that a quarter and a
tenth of the questions have, some questions have both for certain."""
ASKED_EACH = 2
"""Number of questions at each shape. The second one mostly has another layout; some inputs keep their addresses."""
CALLS, LARGE_CALLS, LARGE_FROM = 3, 2, 2**18
"""Numbers of calls in a release, also with large operands, and the elements of all operands from which they are."""
NORMAL_SHARE, LARGE_NORMAL_SHARE = 0.4, 0.15
"""Shares of the cases with normal values, and of those with large operands, of which there are few."""
USUAL_SCALARS_SHARE, UNUSUAL_SHARE = 0.5, 0.5
"""Shares of the questions with the operation's default scalars, and of the cases with unusual groups or slots."""
RETAINED_SHARE = 0.5
"""Share of the releases whose outputs stay in memory until the next such release."""
SCALAR_POWERS = (-10, 16)
"""Range of a power of two by which other scalars are multiplied."""
WAYS = (Ways.GRADIENTS, Ways.COLLECTED, Ways.PARAMETERS, Ways.OTHER_TYPE, Ways.THREAD)
"""Ways of calling that go with any layout; each has a chance of `WAY_SHARE`."""
WAY_SHARE = 0.3
"""Chance of each way. Chosen; a plain call and each two of them then come often."""
OTHER_LAYOUT_SHARE, PAGES_SHARE = 0.5, 0.6
"""Shares of the questions with another layout than contiguous, and of the others with closed pages."""
TOGETHER_SHARE, ONE_INPUT_SHARE = 0.2, 0.5
"""Share of the questions with two inputs together, if two have one form. Share of other layouts of one input alone,
and of one tensor among inputs that are together."""
CLOSED: tuple[Pages, ...] = ("closed_after", "closed_before", "read_only")
"""Ways in which pages around the inputs are closed."""
MOST_SET_BYTES = 2**25
"""Size in bytes of all operands of a call with their gaps, at most. Chosen; the host writes all of them."""
MOST_IN, WIDE_GAP = 15, (32, 5000)
"""Largest number of elements before an input, and range of wide gaps between rows, as a slice of a buffer has."""

THRESHOLD = "right in each combination"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Draw shapes and ask each one in two combinations of everything else; return the first refusal."""
    shapes, kinds = CombinedShapes(kernel), KindsInTurn(kernel)
    count = SHAPES if kernel.runner.takes_large_shapes else INTERPRETED_SHAPES
    before = kernel.calls
    for _ in range(count):
        (shape,) = kernel.shapes(shapes.draw())
        for _ in range(ASKED_EACH):
            failed = _ask(kernel, shape, kinds)
            if failed is not None:
                return failed
    if kernel.calls == before:
        return NotAsked(observed="no drawn shape has room in the arena", threshold=THRESHOLD)
    return Passed(observed="right in each combination", threshold=THRESHOLD, calls=kernel.calls - before)


def _ask(kernel: LoadedKernel, shape: Mapping[str, int], kinds: KindsInTurn) -> Failed | None:
    """Make one release of calls; none if the shape has no room."""
    placement, rng = _placement(kernel, shape), kernel.rng
    large = costs_of(kernel.operation, shape)[0] >= LARGE_FROM
    count = LARGE_CALLS if large else CALLS
    if set_bytes(*kernel.forms(shape, placement)) > MOST_SET_BYTES or not kernel.fits(shape, count, placement):
        placement, count = PLAIN, 1
    if not kernel.fits(shape, count, placement):
        return None
    scalars = tuple(kernel.operation.scalars.values())
    if rng.random() >= USUAL_SCALARS_SHARE:
        scalars = tuple(value * 2.0 ** rng.randint(*SCALAR_POWERS) for value in scalars)
    normal = LARGE_NORMAL_SHARE if large else NORMAL_SHARE
    drawn: list[InputKind] = ["normal" if rng.random() < normal else kinds.at(shape) for _ in range(count)]
    cases = [_case(kernel, shape, kind, scalars) for kind in drawn]
    if placement.one_tensor is not None:
        cases = [with_one_tensor(kernel.operation, case, placement.one_tensor) for case in cases]
    ways = _ways(kernel, placement)
    kernel.tuner.choose_at_random(rng)
    observed = kernel.call(cases, retain=rng.random() < RETAINED_SHARE, placement=placement, ways=ways)
    failed = observed if isinstance(observed, Failed) else kernel.first_wrong(observed)
    return None if failed is None else said_how(failed, _words(placement, ways))


def _case(kernel: LoadedKernel, shape: Mapping[str, int], kind: InputKind, scalars: tuple[float, ...]) -> Case:
    operation, rng = kernel.operation, kernel.rng
    case = largest_at_the_end(operation, kernel.case(shape, kind, scalars=scalars), rng)
    unusual = has_patterns(operation) and rng.random() < UNUSUAL_SHARE
    return unusual_patterns(operation, case, rng) if unusual else case


def _placement(kernel: LoadedKernel, shape: Mapping[str, int]) -> Placement:
    """Draw a layout of all inputs or of one, two inputs together, or closed pages; plain if none is declared."""
    rng = kernel.rng
    if "layouts" not in kernel.definition.declares:
        return PLAIN
    pairs = alike_inputs(kernel)
    if pairs and rng.random() < TOGETHER_SHARE:
        return _together(kernel, shape, rng.choice(pairs))
    layouts = [one for one in _layouts(kernel) if one in ("offset", "strided_rows")]
    if layouts and rng.random() < OTHER_LAYOUT_SHARE:
        return _laid_out(kernel, shape, rng.choice(layouts))
    return Placement(pages=_pages(kernel, shape)) if rng.random() < PAGES_SHARE else PLAIN


def _layouts(kernel: LoadedKernel) -> tuple[LayoutName, ...]:
    return tuple(dict.fromkeys((*kernel.inside.layouts, *kernel.claimed)))


def _together(kernel: LoadedKernel, shape: Mapping[str, int], pair: tuple[TensorSpec, TensorSpec]) -> Placement:
    """Return a placement with two inputs as one tensor, or as halves of one where the halves may begin there."""
    one, other = pair
    names, sizes = (one.name, other.name), one.sizes(shape)
    layout = kernel.rng.choice([one for one in _layouts(kernel) if one in ("contiguous", "strided_rows")])
    apart = sizes[-1] if layout == "strided_rows" else math.prod(sizes)
    if isinstance(one.values, LogSums) or kernel.rng.random() >= ONE_INPUT_SHARE:  # two empty sums have no answer
        can_be_halves = apart % kernel.inside.elements_apart(kernel.dtype) == 0
        return Placement(layout=layout, halves=names) if can_be_halves else PLAIN
    return Placement(one_tensor=names)


def _laid_out(kernel: LoadedKernel, shape: Mapping[str, int], layout: LayoutName) -> Placement:
    operation, rng, apart = kernel.operation, kernel.rng, kernel.inside.elements_apart(kernel.dtype)
    able = [one.name for one in operation.inputs if layout == "offset" or can_have_layouts(operation, one)]
    if not able:
        return PLAIN
    width = shape[operation.reduced_axis]
    gap = rng.choice((odd_gap(rng), ALIGNED_GAP, width, 2 * width, log_uniform(rng, *WIDE_GAP)))
    only = rng.choice(able) if rng.random() < ONE_INPUT_SHARE else None
    outer = rng.choice((0, 0, odd_gap(rng), width, log_uniform(rng, *WIDE_GAP)))
    begins = apart * rng.randint(1, MOST_IN)
    return Placement(layout=layout, elements_in=begins, gaps=(gap, 0), outer_gap=outer, only=only)


def _pages(kernel: LoadedKernel, shape: Mapping[str, int]) -> Pages:
    if not kernel.runner.shares_pages:
        return "open"
    chosen = kernel.rng.choice(CLOSED)
    return "open" if chosen == "closed_after" and not may_end_at_a_page(kernel, shape) else chosen


def _ways(kernel: LoadedKernel, placement: Placement) -> Ways:
    chosen = NO_WAYS
    for way in (*WAYS, *((Ways.OWN_MEMORY,) if placement == PLAIN else ())):
        chosen |= way if kernel.rng.random() < WAY_SHARE else NO_WAYS
    return chosen if kernel.definition.records_gradients else chosen & ~Ways.GRADIENTS


def _words(placement: Placement, ways: Ways) -> str:
    """Return in words how the inputs lie and how the call is made."""
    layout = f"{placement.only or 'inputs'} laid out {placement.layout}"
    if placement.one_tensor is not None or placement.halves is not None:
        first, second = placement.one_tensor or placement.halves or ("", "")
        layout = (
            f"with {first!r} and {second!r} as {'one tensor' if placement.one_tensor else 'halves of one tensor'}"
        )
    pages = "" if placement.pages == "open" else f", pages {placement.pages}"
    called = ", ".join(words for one, words in WORDS.items() if one in ways) or "called plainly"
    return f"{layout}{pages}, {called}"


COMBINATIONS = Gate(
    name="combinations",
    examine=examine,
    further=(examine,) * (PARTS - 1),
    needs=frozenset({"sizes"}),
    beside=True,
)
