"""Is the same question answered in the same way, whatever was asked in between?

Between the two calls come other shapes, other kinds of values, NaN, other scalars and a call without rows. Then the
question is asked as a serving program asks it, and so are some at other shapes. The call is under
`torch.inference_mode()`, with another default type than fp32 and with a module's parameters as weights. On a CPU it
comes from another thread.

On a processor, questions in other ways come before and after them. Any two things that programs do are done together,
each alone, and neither. In half of them the operands lie in memory of torch's own, the weight stays the same tensor,
and a call gets what the last one returned.

Last, one more question comes outside inference mode, at other sizes: a workspace that is kept for sizes asked inside
can't be written to there.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from forge.domain.input_kind import InputKind
from forge.domain.verdict import Reason
from forge.lab.calls import ways
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.difference import correct_answer, largest_difference
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size
from forge.lab.inputs.special_rows import are_defined
from forge.lab.observed import Case
from forge.sandbox.ways import SERVED, Ways

OTHER_KINDS: tuple[InputKind, ...] = ("large", "zeros")
"""Kinds of values that come between the two calls, besides normal and special ones."""
MOST_HELD_OUT = 2
"""Number of held-out shapes that come between the two calls, at most. Chosen; each costs a call."""
CALLS_IN_A_WAY = 3
"""Number of calls in each way that programs call. Chosen: the second one may get what the first one returned."""
ODD_WIDTHS = (65, 257)
"""Range from which odd widths are drawn at random, beyond a usual block."""
SERVED_ROWS = 11
"""Number of rows of the short shape that is asked in inference mode. Chosen: odd, and more than a vector has."""
ROWS_OUTSIDE = 13
"""Number of rows of the question that comes last, outside inference mode. Chosen: odd, and not `SERVED_ROWS`."""
MOST_ROWS, INTERPRETED_ROWS = 16, 2
"""Numbers of rows of calls in ways of programs, at most, natively and in an interpreter. Chosen; there are some dozen
calls of copies."""
WORDS = {
    Ways.INFERENCE: "under inference_mode()",
    Ways.PARAMETERS: "weights as parameters",
    Ways.OTHER_TYPE: "torch's default type bf16",
    Ways.THREAD: "from another thread on a CPU",
    Ways.COLLECTED: "with garbage collected",
    Ways.OWN_MEMORY: "operands in torch's memory, outputs given to the next call",
    Ways.GRADIENTS: "where gradients are recorded",
}
"""Words for each way in which programs make calls."""
THRESHOLD = "the same answer before and after, within what rounding explains"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask, ask without rows, and ask again; then ask once more after other questions in random order."""
    question = kernel.case(kernel.shape)
    (without_rows,) = kernel.shapes({**kernel.shape, kernel.operation.row_axis: 0})
    nothing = kernel.case(without_rows)
    others = _others(kernel)
    kernel.rng.shuffle(others)
    first = correct_answer(kernel, question)
    if isinstance(first, Failed):
        return first
    furthest = 0.0
    for series in ([nothing], [*others, nothing]):
        for case in series:
            checked = kernel.check([case])
            if isinstance(checked, Failed):
                return checked
        again = correct_answer(kernel, question)
        if isinstance(again, Failed):
            return _changed_by_calls(again)
        furthest = max(furthest, largest_difference(kernel, first, again))
    if not furthest <= 1:
        return _differs_after_calls(furthest)
    failed = next((one for one in _as_programs_call(kernel, question) if one is not None), None)
    if failed is not None:
        return failed
    return Passed(
        observed=f"{furthest:.3g} x what rounding explains, after {len(others) + 2} other calls", threshold=THRESHOLD
    )


def _as_programs_call(kernel: LoadedKernel, question: Case) -> Iterator[Failed | None]:
    """Ask in each way; yield each refusal. What comes in inference mode comes last, but for one question."""
    every = sorted(
        ways.in_pairs(kernel.rng, gradients=kernel.definition.records_gradients),
        key=lambda way: Ways.OWN_MEMORY in way,  # the guest says more of the pages of other memory
    )
    inside, few_rows = [way for way in every if Ways.INFERENCE in way], _few_rows(kernel)
    yield from _called_in(kernel, [way for way in every if way not in inside], few_rows)
    shapes = _served_shapes(kernel)
    for asked in itertools.chain([question], map(kernel.case, shapes)):
        yield as_served(kernel, asked)
    yield from _called_in(kernel, inside, few_rows)
    yield _ask_outside(kernel, [kernel.shape, *shapes, *few_rows])


def _others(kernel: LoadedKernel) -> list[Case]:
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    fresh = kernel.case(kernel.shape)
    other_shapes = kernel.shapes(
        {**kernel.shape, rows: 1, reduced: odd_size(kernel.rng, 1, 9)},
        {**kernel.shape, rows: 2 * kernel.shape[rows], reduced: odd_size(kernel.rng, *ODD_WIDTHS)},
    )
    defined = are_defined(kernel.operation, keeps_fp8_nan=kernel.runner.keeps_fp8_nan)
    special = (*OTHER_KINDS, "special_rows") if defined else OTHER_KINDS
    return [
        *(kernel.case(kernel.shape, kind) for kind in kernel.definition.kinds(special)),
        *(kernel.case(shape) for shape in (*other_shapes, *kernel.held_out[:MOST_HELD_OUT])),
        dataclasses.replace(fresh, scalars=tuple(1 + value for value in fresh.scalars)),
    ]


def _served_shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes at which a kernel may go another way when it is served, too: a short odd row and larger ones."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    odd = kernel.shapes({**kernel.shape, rows: SERVED_ROWS, reduced: odd_size(kernel.rng, *ODD_WIDTHS)})
    return [*(shape for shape in odd if shape != kernel.shape), *other_paths.shapes(kernel)]


def _ask_outside(kernel: LoadedKernel, served: Sequence[Mapping[str, int]]) -> Failed | None:
    """Ask once more outside inference mode, at sizes that weren't asked inside if the contract has others.

    If it has none, an exception is no refusal: a workspace that is kept for a size from inside can't be written to.
    """
    shape = _shape_outside(kernel, served)
    checked = kernel.check([kernel.case(shape)])
    if not isinstance(checked, Failed):
        return None
    if _shares_a_size(kernel, shape, served) and checked.reason.code == "RUNTIME_ERROR":
        return None
    return _changed_by_calls(checked)


def _shape_outside(kernel: LoadedKernel, served: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """Return a shape with other rows and another width than those asked inside, if the contract has one."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    widths = {shape[reduced] for shape in served}
    width = next(size for size in iter(lambda: odd_size(kernel.rng, *ODD_WIDTHS), 0) if size not in widths)
    return kernel.shapes({**kernel.shape, rows: ROWS_OUTSIDE, reduced: width})[0]


def _shares_a_size(kernel: LoadedKernel, shape: Mapping[str, int], served: Sequence[Mapping[str, int]]) -> bool:
    axes = (kernel.operation.row_axis, kernel.operation.reduced_axis)
    return any(shape[axis] == one[axis] for one in served for axis in axes)


def as_served(kernel: LoadedKernel, question: Case) -> Failed | None:
    """Ask once more as a serving program does; return the refusal if this changes the answer."""
    return _asked(kernel, [question], SERVED)


def _few_rows(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return two shapes of few rows with the same weights; one if the operation is defined at one shape alone."""
    most = MOST_ROWS if kernel.runner.makes_many_calls else INTERPRETED_ROWS
    rows = min(most, kernel.shape[kernel.operation.row_axis])
    wanted = ({**kernel.shape, kernel.operation.row_axis: one} for one in (rows, rows + 1))
    first, *others = kernel.shapes(*wanted)
    return [first, *(shape for shape in others if shape != first)]


def _called_in(
    kernel: LoadedKernel, chosen: Sequence[Ways], shapes: Sequence[Mapping[str, int]]
) -> Iterator[Failed | None]:
    """Ask new questions in ways of programs; yield each refusal."""
    for way, shape in itertools.product(chosen, shapes):
        most = CALLS_IN_A_WAY if kernel.fits(shape, CALLS_IN_A_WAY) else 1
        yield _asked(kernel, [kernel.case(shape) for _ in range(most)], way)


def _asked(kernel: LoadedKernel, questions: Sequence[Case], way: Ways) -> Failed | None:
    observed = kernel.call(questions, ways=way)
    judged = (observed,) if isinstance(observed, Failed) else (kernel.judge(one)[1] for one in observed)
    failed = next((one for one in judged if one is not None), None)
    if failed is None:
        return None
    named = ", ".join(words for one, words in WORDS.items() if one in way) or "called plainly"
    message = f"{named}, as the caller may have it: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))


def _changed_by_calls(failed: Failed) -> Failed:
    if failed.counterexample is None:
        return failed
    message = f"right at first, wrong after other calls: {failed.reason.message}"
    return dataclasses.replace(
        failed, reason=failed.reason.model_copy(update={"code": "STATE_CARRIED", "message": message})
    )


def _differs_after_calls(furthest: float) -> Failed:
    message = f"the same question has another answer after other calls: {furthest:.3g} x what rounding explains apart"
    return Failed(
        reason=Reason(code="STATE_CARRIED", message=message),
        observed=f"{furthest:.3g} x what rounding explains",
        threshold=THRESHOLD,
    )


STATE = Gate(name="state", examine=examine)
