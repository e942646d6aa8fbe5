"""Is the same question answered in the same way, whatever was asked in between?

Between the two calls come other shapes, other kinds of values, NaN, other scalars and a call without rows. Last, the
question is asked as a serving program asks it, and so are some at other shapes. The call is under
`torch.inference_mode()`, with another default type than fp32 and with a module's parameters as weights. On a CPU it
comes from another thread. Then one more question comes outside that mode, at other sizes: a workspace that is kept
for sizes asked inside can't be written to there.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from forge.domain.input_kind import InputKind
from forge.domain.tensors import DType
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.difference import correct_answer, largest_difference
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import odd_size
from forge.lab.inputs.special_rows import are_defined
from forge.lab.observed import Case

OTHER_KINDS: tuple[InputKind, ...] = ("large", "zeros")
"""Kinds of values that come between the two calls, besides normal and special ones."""
MOST_HELD_OUT = 2
"""Number of held-out shapes that come between the two calls, at most. Chosen; each costs a call."""
OTHER_TYPE: DType = "bf16"
"""Default type of torch for the last call."""
ODD_WIDTHS = (65, 257)
"""Range from which odd widths are drawn at random, beyond a usual block."""
SERVED_ROWS = 11
"""Number of rows of the short shape that is asked in inference mode. Chosen: odd, and more than a vector has."""
ROWS_OUTSIDE = 13
"""Number of rows of the question that comes last, outside inference mode. Chosen: odd, and not `SERVED_ROWS`."""
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
    shapes = _served_shapes(kernel)
    for asked in itertools.chain([question], map(kernel.case, shapes)):
        served = as_served(kernel, asked)
        if served is not None:
            return served
    outside = _ask_outside(kernel, [kernel.shape, *shapes])
    if outside is not None:
        return outside
    return Passed(
        observed=f"{furthest:.3g} x what rounding explains, after {len(others) + 2} other calls", threshold=THRESHOLD
    )


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
    observed = kernel.call([question], default_type=OTHER_TYPE)
    failed = observed if isinstance(observed, Failed) else kernel.judge(observed[0])[1]
    if failed is None:
        return None
    thread = ", from another thread" * kernel.runner.serves_in_threads
    where = f"under inference_mode(), weights as parameters, torch's default type {OTHER_TYPE}{thread}"
    message = f"{where}, as the caller may have it: {failed.reason.message}"
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
