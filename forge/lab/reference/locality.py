"""Errors that follow the values at hand, where one size for all would let wrong answers pass.

A softmax's or a running product's values spread over many orders of magnitude, and so do their errors: there a bound
by the largest says nothing of most. Which sizes the errors follow is measured, never assumed: near a zero that comes
of cancellation they don't shrink with the value, and the ratios' long tail shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from forge.domain.own_operation import Around, Local
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge import SMALLEST_SIZE

if TYPE_CHECKING:
    import torch

AROUND: dict[Around, int] = {"all": 0, "row": 2, "sample": 3, "channel": 2}
"""What is tried in turn, and the fewest axes that it takes."""
SHARES = (0.0, *(2.0**-power for power in range(64, -1, -4)))
TAIL = 6.0
"""Times the ratio that nine of ten stay below: the largest of 10^4 normally distributed errors is 2.4 times that, of
errors at values that come near zero by chance thousands."""
MOST_COUNTED = 2**20
"""Values of a draw at which sizes are tried; those found must hold at all of them."""
MANY = 1024
"""Ratios, of which a tail can be told."""
MOST_ERROR = 2.0**-10
"""Eight times that is less than a hundredth: one per cent more is refused for small values too. Two roundings, where
those are more."""
Draw = tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]
"""Values' own sizes, those around them, and the errors."""


def sizes_of(local: Local, exact: torch.Tensor) -> torch.Tensor:
    """What each value's error is in proportion to: its own size, and a share of those around it."""
    return exact.abs() + local.share * around(local.around, exact)


def around(where: Around, exact: torch.Tensor) -> torch.Tensor:
    """The root mean square of the finite values around each."""
    square = exact.where(exact.isfinite(), 0.0).square()
    match where:
        case "all":
            return square.mean().sqrt()
        case "row":
            return square.mean(-1, keepdim=True).sqrt()
        case "sample" | "channel":
            kept = 0 if where == "sample" else 1
            return square.mean([axis for axis in range(exact.dim()) if axis != kept], keepdim=True).sqrt()


def locals_of(exacts: Sequence[torch.Tensor], errors: Sequence[torch.Tensor], dtype: DType) -> Iterator[Local]:
    """Of each kind the narrowest sizes that a result's errors follow at all of its draws, with the largest ratio."""
    beyond = [(error - SMALLEST_SIZE[dtype]).clamp_(min=0) for error in errors]
    for where, axes in AROUND.items():
        if exacts[0].dim() >= axes:
            draws = [
                (exact.abs(), around(where, exact).expand_as(exact), error)
                for exact, error in zip(exacts, beyond, strict=True)
            ]
            found = _narrowest(where, draws, dtype)
            if found is not None:
                yield found


def _narrowest(where: Around, draws: Sequence[Draw], dtype: DType) -> Local | None:
    some = [_some(draw) for draw in draws]
    most = max(MOST_ERROR, 2 * UNIT_ROUNDOFF[dtype])
    for share in SHARES:
        seen = _ratios(some, share, dtype)
        usual = _usual(seen)
        if not (seen.numel() >= MANY and float(seen.max()) <= min(most, TAIL * usual)):
            continue
        largest = max(float(_ratios([draw], share, dtype).max()) for draw in draws)
        if largest <= min(most, TAIL * usual):
            return Local(around=where, share=share, error=largest)
    return None


def _some(draw: Draw) -> Draw:
    """Fewer of a draw's values, from everywhere alike."""
    own, near, error = (one.reshape(-1) for one in draw)
    # an odd step meets every column of a table whose width is a power of two
    step = own.numel() // MOST_COUNTED * 2 + 1
    return own[::step], near[::step], error[::step]


def _ratios(draws: Sequence[Draw], share: float, dtype: DType) -> torch.Tensor:
    """Errors over sizes; what is too small for the type counts only if it errs by more than that."""
    import torch

    ratios = []
    for own, near, error in draws:
        sizes = own + share * near
        ratios.append((error / sizes)[(error > 0) | (sizes > 2 * SMALLEST_SIZE[dtype])])
    return torch.cat(ratios)


def _usual(ratios: torch.Tensor) -> float:
    """What nine of ten that aren't zero stay below."""
    some = ratios[ratios > 0]
    return float(some.kthvalue(max(1, some.numel() * 9 // 10)).values) if some.numel() else 0.0
