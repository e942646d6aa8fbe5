"""Does it refuse, or answer rightly, just outside the domain that it declares?

Outside its domain a candidate may raise an exception. A wrong answer there is worse than none: the caller goes on
with it. So is a crash of the process, which no caller can catch. After an exception it must answer inside as before.
Which sizes a caller has is the caller's choice, so a domain that isn't checked by the kernel is a trap.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from forge.domain.domain_shapes import outside_shapes, random_outside
from forge.domain.kernel_domain import KernelDomain
from forge.domain.tensors import ClaimableLayout
from forge.domain.verdict import Reason, ReasonCode
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement, can_have_layouts
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates import large_offsets
from forge.lab.gates.gate import Gate
from forge.lab.inputs.draw import draw
from forge.lab.observed import Case

LAYOUTS: tuple[ClaimableLayout, ...] = ("strided_rows", "transposed")
"""Layouts that are asked if the domain has a closed list without them."""
KEPT: frozenset[ReasonCode] = frozenset({"TAMPERING", "SANDBOX_VIOLATION", "RESOURCE_ABUSE", "TIMEOUT"})
"""Reasons that say more than that an answer was wrong."""
THRESHOLD = "outside its domain a right answer or an exception"
Question = tuple[str, Callable[[], Case], Placement]
"""Condition that is broken, the call to make, and where its operands lie."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at shapes, layouts and addresses just outside; then ask inside once more, if anything was refused."""
    domain = kernel.inside.domain
    if domain is None:
        return NotAsked(observed="no domain is declared, so all of the contract was asked", threshold=THRESHOLD)
    raised = answered = 0
    for condition, case, placement in itertools.islice(_questions(kernel, domain), kernel.runner.most_asked_outside):
        kernel.tuner.choose_at_random(kernel.rng)
        failed = _answer(kernel, case(), placement)
        if failed is None:
            answered += 1
        elif failed.raised:
            raised += 1
        else:
            return _outside(failed, condition)
    huge = _past_the_elements(kernel)
    if isinstance(huge, Failed):
        return huge
    if raised:
        again = kernel.check([kernel.case(kernel.shape)])
        if isinstance(again, Failed):
            return _no_longer_inside(again)
    return Passed(
        observed=f"{raised + answered} questions outside ({domain.text}): {raised} refused by an exception, "
        f"{answered} answered rightly{huge}",
        threshold=THRESHOLD,
    )


def _questions(kernel: LoadedKernel, domain: KernelDomain) -> Iterator[Question]:
    """Yield the questions: layouts and addresses first, since they are few; then shapes, each in random order.

    Shapes just outside, where limits are mostly missed, alternate with random ones, which no author knows.
    """
    public = partial(_case, kernel, kernel.shape)
    if domain.layouts is not None and any(can_have_layouts(kernel.operation, s) for s in kernel.operation.inputs):
        for layout in LAYOUTS:
            if layout not in (*domain.layouts, *kernel.claimed):
                yield f"layouts in {'|'.join(domain.layouts)}", public, Placement(layout=layout)
    if kernel.inside.address_bytes > 1 and "offset" in kernel.operation.layouts:
        for elements in sorted({1, kernel.inside.elements_apart(kernel.dtype) // 2} - {0}):
            placement = Placement(layout="offset", elements_in=elements)
            yield f"alignment == {kernel.inside.address_bytes}", public, placement
    least = {kernel.operation.row_axis: int("sizes" not in kernel.definition.declares)}
    just_outside = outside_shapes(domain, kernel.shape, least)
    anywhere = random_outside(domain, kernel.shape, least, kernel.rng)
    for found in (just_outside, anywhere):
        kernel.rng.shuffle(found)
    in_turns = itertools.chain.from_iterable(itertools.zip_longest(just_outside, anywhere))
    for shape, condition in filter(None, in_turns):
        if _may_be_asked(kernel, shape):
            yield condition, partial(_case, kernel, shape), PLAIN


def _may_be_asked(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    """Return whether a call costs little, and a reference file was seen to run at sizes like these."""
    if "sizes" not in kernel.definition.declares:
        seen = (kernel.shape, *kernel.held_out)
        if any(size > max(one[axis] for one in seen) for axis, size in shape.items()):
            return False
    return kernel.inside.is_cheap(shape) and kernel.fits(shape, 1)


def _case(kernel: LoadedKernel, shape: Mapping[str, int]) -> Case:
    """Draw a case at exactly this shape, wherever it lies."""
    inside = kernel.case(kernel.shape)
    inputs = draw(kernel.operation, shape, kernel.dtype, inside.kind, seed=inside.seed)
    return dataclasses.replace(inside, shape=dict(shape), inputs=inputs)


def _answer(kernel: LoadedKernel, case: Case, placement: Placement) -> Failed | None:
    """Return why there is no right answer, or None if there is one."""
    observed = kernel.call([case], placement=placement)
    return observed if isinstance(observed, Failed) else kernel.judge(observed[0])[1]


def _past_the_elements(kernel: LoadedKernel) -> str | Failed:
    """Ask past 2^31 elements, if the domain ends before; return in words what happened, or the refusal."""
    shape = large_offsets.shape_beyond(kernel, large_offsets.ELEMENTS)
    if not kernel.runner.reaches_past_2_gib or shape is None or kernel.inside.contains(shape):
        return ""
    failed = large_offsets.answer_at(kernel, shape)
    if isinstance(failed, str):
        return f"; {failed}"
    if failed.raised:
        return "; refused past 2^31 elements"
    return _outside(failed, "elements <= 2147483647")


def _outside(failed: Failed, condition: str) -> Failed:
    """Return the refusal of what happened at a question that breaks a condition of the domain."""
    code: ReasonCode = failed.reason.code if failed.reason.code in KEPT else "WRONG_OUTSIDE_DOMAIN"
    message = f"outside its domain ({condition}) it must raise or be right: {failed.reason.message}"
    return dataclasses.replace(failed, reason=Reason(code=code, message=message), threshold=THRESHOLD)


def _no_longer_inside(failed: Failed) -> Failed:
    message = f"after an exception outside its domain it no longer answers inside: {failed.reason.message}"
    reason = Reason(code="WRONG_OUTSIDE_DOMAIN", message=message)
    return dataclasses.replace(failed, reason=reason, threshold=THRESHOLD)


DOMAIN = Gate(name="domain", examine=examine)
