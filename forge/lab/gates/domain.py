"""Does it refuse, or answer rightly, just outside the domain that it declares?

Outside its domain a candidate may raise an exception. A wrong answer there is worse than none: the caller goes on
with it. A crash of the process is worse too, since no caller can catch it. An exception must leave the inputs and the
process's settings as they were, and the candidate must then answer inside as before. Which sizes a caller has is the
caller's choice, so a domain that isn't checked by the kernel is a trap.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from forge.domain.broken_conditions import one_for_each
from forge.domain.domain_shapes import outside_in_several, outside_shapes, random_outside
from forge.domain.input_kind import REFERENCE_KINDS, InputKind
from forge.domain.kernel_domain import KernelDomain
from forge.domain.tensors import ITEMSIZE_BYTES, ClaimableLayout
from forge.domain.verdict import Reason, ReasonCode
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import PLAIN, Placement, can_have_layouts
from forge.lab.finding import Failed, Finding, NotAsked, Passed
from forge.lab.gates import large_offsets
from forge.lab.gates.gate import Gate
from forge.lab.gates.layouts import as_laid_out
from forge.lab.gates.scales import KINDS
from forge.lab.inputs.draw import draw
from forge.lab.observed import Case

PLACED_SHARE = 0.5
"""Share of the questions that may be about layouts and addresses; the others are about sizes. Chosen; either kind of
kernel code may lack a check."""
SHAPES_OF_EACH_KIND = 2
"""Number of shapes outside, of those that are answered rightly, at which each kind of values is asked, at most. An
interpreter is asked at one. Chosen; each costs one call for each kind."""
AGAIN_INSIDE = 8
"""Number of shapes inside that are asked after an exception, at most, besides the public one. Chosen; each costs a
call."""
LAYOUTS: tuple[ClaimableLayout, ...] = ("strided_rows", "transposed", "expanded")
"""Layouts that are asked if the domain has a closed list without them."""
KEPT: frozenset[ReasonCode] = frozenset({"TAMPERING", "SANDBOX_VIOLATION", "RESOURCE_ABUSE", "TIMEOUT"})
"""Reasons that say more than that an answer was wrong."""
THRESHOLD = "outside its domain a right answer or an exception"
"""Words for what the gate allows."""
Question = tuple[str, Mapping[str, int], Placement]
"""Condition that is broken, the shape of the call, and where its operands lie."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at shapes, layouts and addresses just outside; then ask inside once more, if anything was refused."""
    domain = kernel.inside.domain
    if domain is None:
        return NotAsked(observed="no domain is declared, so all of the contract was asked", threshold=THRESHOLD)
    raised, answered = 0, list[Question]()
    most = kernel.runner.most_asked_outside
    for question in _questions(kernel, domain, most):
        wrong = _ask(kernel, question)
        if isinstance(wrong, Failed):
            return wrong
        raised += wrong == "raised"
        answered += [question] if wrong == "answered" else []
    other = _with_other_values(kernel, answered)
    if other is not None:
        return other
    huge = _past_the_elements(kernel)
    if isinstance(huge, Failed):
        return huge
    again = _inside_again(kernel, domain) if raised else None
    if again is not None:
        return again
    return Passed(
        observed=f"{raised + len(answered)} questions outside ({domain.text}): {raised} refused by an exception, "
        f"{len(answered)} answered rightly{huge}",
        threshold=THRESHOLD,
    )


def _ask(
    kernel: LoadedKernel, question: Question, kind: InputKind = "normal"
) -> Literal["raised", "answered"] | Failed:
    """Ask one question; return what happened, or the refusal."""
    condition, shape, placement = question
    kernel.tuner.choose_at_random(kernel.rng)
    case = as_laid_out(kernel.operation, _case(kernel, shape, kind), placement)
    failed = _answer(kernel, case, placement)
    if failed is None:
        return "answered"
    if not failed.raised:
        return _outside(failed, condition)
    return "raised" if kernel.holds_inputs(case) else _outside(_wrote_before_it_raised(), condition)


def _with_other_values(kernel: LoadedKernel, answered: Sequence[Question]) -> Failed | None:
    """Ask again, with each kind of values, where normal ones were answered rightly; return the refusal, if any.

    A row that is padded with zeros is right until all of its values are less.
    """
    full = [one for one in answered if all(one[1].values())]
    for question in kernel.rng.sample(
        full, min(len(full), SHAPES_OF_EACH_KIND if kernel.runner.makes_many_calls else 1)
    ):
        for kind in kernel.definition.kinds((*KINDS, *REFERENCE_KINDS)):
            wrong = _ask(kernel, question, kind)
            if isinstance(wrong, Failed):
                return wrong
    return None


def _questions(kernel: LoadedKernel, domain: KernelDomain, most: int) -> Iterator[Question]:
    """Yield one question for each condition on sizes, and `most` others; `PLACED_SHARE` of those are placements.

    Shapes just outside alternate with random ones, and with shapes that lie outside in several axes. Kernels mostly
    miss limits just outside; no author knows the random shapes.
    """
    placed = list(_placed_outside(kernel, domain))
    kernel.rng.shuffle(placed)
    placed = placed[: int(PLACED_SHARE * most)]
    for condition, placement in placed:
        yield condition, kernel.shape, placement
    least = {kernel.operation.row_axis: int("sizes" not in kernel.definition.declares)}
    just_outside = outside_shapes(domain, kernel.shape, least)
    anywhere = random_outside(domain, kernel.shape, least, kernel.rng)
    several = outside_in_several(domain, kernel.shape, [*just_outside, *anywhere], kernel.rng)
    for found in (just_outside, anywhere):
        kernel.rng.shuffle(found)
    alone = [one for one in (*just_outside, *anywhere) if _may_be_asked(kernel, one[0])]
    kernel.rng.shuffle(alone)
    for shape, condition in one_for_each(domain, alone):
        yield condition, shape, PLAIN
    in_turns = itertools.chain.from_iterable(itertools.zip_longest(just_outside, anywhere, several))
    others = (one for one in in_turns if one is not None and _may_be_asked(kernel, one[0]))
    for shape, condition in itertools.islice(others, most - len(placed)):
        yield condition, shape, PLAIN


def _placed_outside(kernel: LoadedKernel, domain: KernelDomain) -> Iterator[tuple[str, Placement]]:
    """Yield placements outside the domain: of all inputs, and of each alone, since a kernel may check only one."""
    inputs = kernel.operation.inputs
    if domain.layouts is not None:
        movable = [spec.name for spec in inputs if can_have_layouts(kernel.operation, spec)]
        alone = movable if len(inputs) > 1 else []
        for layout, name in itertools.product(LAYOUTS, (None, *alone) if movable else ()):
            if layout not in (*domain.layouts, *kernel.claimed):
                yield f"layouts in {'|'.join(domain.layouts)}", Placement(layout=layout, only=name)
    address_bytes = kernel.inside.address_bytes
    if address_bytes > 1 and "offset" in kernel.operation.layouts:
        condition = f"alignment == {address_bytes}"
        for elements in sorted({1, kernel.inside.elements_apart(kernel.dtype) // 2} - {0}):
            yield condition, Placement(layout="offset", elements_in=elements)
        for spec in inputs if len(inputs) > 1 else ():
            half = address_bytes // ITEMSIZE_BYTES[spec.element_type(kernel.dtype)] // 2
            elements = kernel.rng.choice((1, max(1, half)))
            yield condition, Placement(layout="offset", elements_in=elements, only=spec.name)


def _may_be_asked(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    """Return whether a call costs little, and a reference file was seen to run at sizes like these."""
    if "sizes" not in kernel.definition.declares:
        seen = (kernel.shape, *kernel.held_out)
        if any(size > max(one[axis] for one in seen) for axis, size in shape.items()):
            return False
    return kernel.inside.is_cheap(shape) and kernel.fits(shape, 1)


def _case(kernel: LoadedKernel, shape: Mapping[str, int], kind: InputKind) -> Case:
    """Draw a case at exactly this shape, wherever it lies."""
    inside = kernel.case(kernel.shape, kind)
    inputs = draw(kernel.operation, shape, kernel.dtype, kind, seed=inside.seed)
    return dataclasses.replace(inside, shape=dict(shape), inputs=inputs)


def _answer(kernel: LoadedKernel, case: Case, placement: Placement) -> Failed | None:
    """Return why there is no right answer, or None if there is one. A device returns its inputs, to be compared."""
    observed = kernel.call([case], placement=dataclasses.replace(placement, return_inputs=True))
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


def _wrote_before_it_raised() -> Failed:
    message = (
        "it wrote to its inputs, or beside them, and then raised: a caller that goes another way gets them changed"
    )
    return Failed(reason=Reason(code="INPUT_MUTATED", message=message), observed=message, threshold=THRESHOLD)


def _inside_again(kernel: LoadedKernel, domain: KernelDomain) -> Failed | None:
    """Ask inside once more: at the public shape, at the largest edge, and at some other edges and random sizes."""
    edges, _ = kernel.inside.shapes(domain, kernel.rng) if "sizes" in kernel.definition.declares else ([], 0)
    largest = sorted(edges, key=lambda shape: -math.prod(shape.values()))[:1]
    for shape in (kernel.shape, *largest, *kernel.rng.sample(edges, min(len(edges), AGAIN_INSIDE - 1))):
        again = kernel.check_alone(kernel.case(shape))
        if isinstance(again, Failed):
            return _no_longer_inside(again)
    return None


def _no_longer_inside(failed: Failed) -> Failed:
    message = f"after an exception outside its domain it no longer answers inside: {failed.reason.message}"
    reason = Reason(code="WRONG_OUTSIDE_DOMAIN", message=message)
    return dataclasses.replace(failed, reason=reason, threshold=THRESHOLD)


DOMAIN = Gate(name="domain", examine=examine)
