"""Refuses a task on which known wrong answers pass, or known right ones fail, and says why."""

from forge.domain.evidence import Admission
from forge.domain.tensors import DType, Shape
from forge.errors import WeakTask

NAMED = 5
"""Largest number of answers that a refusal names. Chosen; more make it hard to read."""


def why_weak(shape: Shape, dtype: DType) -> str:
    """Return the likeliest reason for which known wrong answers pass at a shape, and what to change."""
    single = [axis for axis, size in shape.items() if size == 1]
    if single:
        return f"{' and '.join(f'{axis}=1' for axis in single)} may hide what they get wrong: give larger sizes"
    if dtype != "fp32":
        return f"the bound of {dtype} may allow errors as large as theirs: try fp32, or another shape"
    return "the inputs at this shape may be too easy: try another shape"


def require_strength(admission: Admission, *, hint: str, why: str) -> None:
    """Raise WeakTask if known wrong answers would be accepted, or known right ones refused.

    `why` says why the wrong ones pass.
    """
    if admission.survivors:
        raise WeakTask(
            f"a weak task: {len(admission.survivors)} of {admission.mutants} known wrong answers would be accepted "
            f"({', '.join(admission.survivors[:NAMED])}): expected none; {why}",
            hint=hint,
        )
    if admission.refused:
        raise WeakTask(
            f"an unfair task: right answers would be refused ({', '.join(admission.refused[:NAMED])}): expected "
            "none; its bound is too narrow",
            hint=hint,
        )
