"""Finds bounds for errors that follow the size of nearby values, where one size for all would accept wrong answers.

The values of a softmax or a running product spread over many orders of magnitude, and so do their errors. A bound by
the largest value then says nothing about most of them. Which sizes the errors follow is measured, never assumed. Near
a zero that comes from cancellation errors don't shrink with the value, and the long tail of the ratios shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from forge.domain.own_operation import Around, Local
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge import SMALLEST_SIZE

if TYPE_CHECKING:
    import torch

NEIGHBOURHOODS: dict[Around, int] = {"all": 0, "row": 2, "sample": 3, "channel": 2}
"""Neighbourhoods that are tried in this order, with the fewest axes that each needs."""
SHARES = (0.0, *(2.0**-power for power in range(64, -1, -4)))
"""Shares of the neighbourhood's size that are added to a value's own size, tried in this order."""
TAIL_FACTOR = 6.0
"""Factor on the ratio that nine in ten stay below, as a limit for all. The largest of 10^4 normally distributed
errors is 2.4 times that ratio. Errors at values that come near zero by chance are thousands of times it."""
MOST_SAMPLED = 2**20
"""Number of values of a draw at which sizes are tried, at most; the found sizes must hold at all values."""
FEWEST_RATIOS = 1024
"""Number of ratios from which on a tail can be recognised. About a hundred of them lie above the ninth decile."""
MOST_RATIO = 2.0**-10
"""Ratio of error to size, at most. Eight times it is less than a hundredth, so that one per cent more is refused for
small values too."""
MOST_ROUNDINGS = 8
"""Ratio of error to size in roundings, at most, where those are more: in bf16 eight times it is a quarter of a value.
Chosen; a chain of eight operators rounds as often. One per cent more is refused there for all values together."""
Draw = tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]
"""Tensors of a draw: the values' own sizes, their neighbourhoods' sizes, and the errors."""


def sizes_of(local: Local, exact: torch.Tensor) -> torch.Tensor:
    """Return the size to which each value's error is proportional: its own, plus a share of its neighbourhood's.

    The result has the sizes and the units of `exact`.
    """
    return exact.abs() + local.share * around(local.around, exact)


def around(where: Around, exact: torch.Tensor) -> torch.Tensor:
    """Return the root mean square of the finite values around each value, with the sizes and the units of `exact`."""
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
    """Yield for each neighbourhood the smallest sizes that a result's errors follow, with the largest ratio.

    They must hold in all of the result's draws.

    Each draw has a tensor in `exacts` and one in `errors`, with the sizes of the result.
    """
    beyond = [(error - SMALLEST_SIZE[dtype]).clamp_(min=0) for error in errors]
    for where, axes in NEIGHBOURHOODS.items():
        if exacts[0].dim() >= axes:
            draws = [
                (exact.abs(), around(where, exact).expand_as(exact), error)
                for exact, error in zip(exacts, beyond, strict=True)
            ]
            found = _narrowest(where, draws, dtype)
            if found is not None:
                yield found


def _narrowest(where: Around, draws: Sequence[Draw], dtype: DType) -> Local | None:
    some = [_sampled(draw) for draw in draws]
    most = max(MOST_RATIO, MOST_ROUNDINGS * UNIT_ROUNDOFF[dtype])
    for share in SHARES:
        seen = _ratios(some, share, dtype)
        usual = _ninth_decile(seen)
        if not (seen.numel() >= FEWEST_RATIOS and float(seen.max()) <= min(most, TAIL_FACTOR * usual)):
            continue
        largest = max(float(_ratios([draw], share, dtype).max()) for draw in draws)
        if largest <= min(most, TAIL_FACTOR * usual):
            return Local(around=where, share=share, error=largest)
    return None


def _sampled(draw: Draw) -> Draw:
    """Return a part of a draw's values, evenly spaced."""
    own, near, error = (one.reshape(-1) for one in draw)
    # an odd step meets every column of a table whose width is a power of two
    step = own.numel() // MOST_SAMPLED * 2 + 1
    return own[::step], near[::step], error[::step]


def _ratios(draws: Sequence[Draw], share: float, dtype: DType) -> torch.Tensor:
    """Return errors over sizes.

    Values too small for the type count only if they err by more than its smallest size.
    """
    import torch

    ratios = []
    for own, near, error in draws:
        sizes = own + share * near
        ratios.append((error / sizes)[(error > 0) | (sizes > 2 * SMALLEST_SIZE[dtype])])
    return torch.cat(ratios)


def _ninth_decile(ratios: torch.Tensor) -> float:
    """Return the ratio that nine in ten nonzero ratios stay below."""
    some = ratios[ratios > 0]
    return float(some.kthvalue(max(1, some.numel() * 9 // 10)).values) if some.numel() else 0.0
