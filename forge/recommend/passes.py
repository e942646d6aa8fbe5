"""Optimization passes: they get plans that are already scored, and may only annotate them.

A pass may be the caller's own code. It gets copies, and its answer is validated and built anew. So the plans keep
their figures, scores and ranks, whatever the pass changes in the copies, raises or returns.
"""

from collections.abc import Sequence
from typing import Protocol

from forge.domain.digest import Value
from forge.errors import UsageError
from forge.recommend.plan import KernelOptimizationMetadata, Plan
from forge.recommend.request import Request

NOTE_LIMIT = 300
"""Largest number of characters in one note. Chosen; a note is shown in a few lines."""


class Annotation(Value):
    """What a pass says of the plan at one rank."""

    rank: int
    kernel_optimizations: tuple[KernelOptimizationMetadata, ...] = ()
    notes: tuple[str, ...] = ()


class OptimizationPass(Protocol):
    """Code that knows optimizations which a plan could use."""

    @property
    def name(self) -> str:
        """Name of the pass in its notes."""

    def annotate(self, request: Request, plans: Sequence[Plan]) -> Sequence[Annotation]:
        """Annotate some of the plans. Changes to the arguments don't reach the answer."""


def run_passes(passes: Sequence[OptimizationPass], request: Request, plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """Return the same plans with the annotations of each pass; the notes of each plan report a failed pass."""
    for number, one in enumerate(passes, start=1):
        # The plans are complete before a pass runs, so they stay as they are whatever it raises.
        try:
            plans = _annotated(one, request, plans)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a pass is foreign code
            note = f"optimization pass {number} failed and was left out: {_told(error)}"[:NOTE_LIMIT]
            plans = tuple(plan.model_copy(update={"notes": (*plan.notes, note)}) for plan in plans)
    return plans


def _annotated(one: OptimizationPass, request: Request, plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    copies = tuple(plan.model_copy(deep=True) for plan in plans)
    said = [_rebuilt(entry) for entry in one.annotate(request.model_copy(deep=True), copies)]
    unknown = {entry.rank for entry in said} - {plan.rank for plan in plans}
    if unknown:
        raise UsageError(f"it annotates ranks {sorted(unknown)}: expected ranks of the given plans")
    name = str(one.name)[:NOTE_LIMIT]
    return tuple(_with(plan, [entry for entry in said if entry.rank == plan.rank], name) for plan in plans)


def _with(plan: Plan, said: Sequence[Annotation], name: str) -> Plan:
    kernels = tuple(kernel for entry in said for kernel in entry.kernel_optimizations)
    notes = tuple(f"{name}: {note}"[:NOTE_LIMIT] for entry in said for note in entry.notes)
    return plan.model_copy(
        update={"kernel_optimizations": (*plan.kernel_optimizations, *kernels), "notes": (*plan.notes, *notes)}
    )


def _rebuilt(untrusted: object) -> Annotation:
    """Return the annotation, validated anew: a pass may make a value without validation, or of a subclass."""
    if type(untrusted) is not Annotation:
        raise UsageError(f"it returned {type(untrusted).__name__}, expected Annotation")
    kernels = []
    for kernel in untrusted.kernel_optimizations:
        if type(kernel) is not KernelOptimizationMetadata:
            raise UsageError(f"it attached {type(kernel).__name__}, expected KernelOptimizationMetadata")
        kernels.append(KernelOptimizationMetadata.model_validate(dict(vars(kernel))))
    return Annotation.model_validate(
        {"rank": untrusted.rank, "kernel_optimizations": kernels, "notes": untrusted.notes}
    )


def _told(error: BaseException) -> str:
    """Return what went wrong. No method of the error is called: a pass may define its class, so that they raise."""
    texts = [text for text in BaseException.__dict__["args"].__get__(error) if type(text) is str]
    return " ".join(f"{type(error).__name__} {' '.join(texts)}".split())
