"""Runs beside hostile code. Lets a file's own get_inputs() reach the ends of the ranges that it draws from.

While the mode is on, torch's random functions return the smallest or the largest number that they could return. What
the file computes from them stays its own: offsets stay sorted, and an end stays behind its start.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

PATTERNS = ("plain", "ends", "end_rows", "lowest", "highest")
"""Patterns by number. `ends`: random numbers, both ends among them. `end_rows`: whole rows at either end. `lowest`
and `highest`: all numbers at one end."""
PLANTED_SHARE = 16
"""One of this many numbers is planted at each end in the pattern `ends`, at least one. Chosen; more of them leave
fewer numbers in between."""
Draw = Callable[..., Any]
"""Torch's random functions, and what they return."""


class Reaching(TorchFunctionMode):  # type: ignore[misc]  # torch doesn't type this class
    """Makes random functions reach the ends of their ranges, in one of `PATTERNS`."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern = pattern

    def __torch_function__(
        self, func: Draw, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:  # Any: what torch returns
        drawn = func(*args, **(kwargs or {}))
        found = _ENDS.get(func)
        if found is None or not isinstance(drawn, torch.Tensor) or drawn.device.type != "cpu" or not drawn.numel():
            return drawn
        ends = found(drawn, args, dict(kwargs or {}))
        if ends is None:
            return drawn
        low, high = (torch.as_tensor(end, dtype=drawn.dtype).expand(drawn.shape) for end in ends)
        return drawn.copy_(reached(drawn, low, high, self._pattern))


def reached(drawn: torch.Tensor, low: torch.Tensor, high: torch.Tensor, pattern: str) -> torch.Tensor:
    """Return `drawn` with some numbers replaced by their range's end, as `pattern` says; `plain` replaces none."""
    match pattern:
        case "lowest":
            return low
        case "highest":
            return high
        case "ends":
            return _planted(drawn, low, high)
        case "end_rows":
            return _with_end_rows(drawn, low, high)
        case _:
            return drawn


def _planted(drawn: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Return the numbers with both ends at random places; if there is room, with every whole number between them."""
    planted = drawn.clone().reshape(-1)
    lows, highs = low.reshape(-1), high.reshape(-1)
    count = planted.numel()
    if count == 1:
        return (low if bool(torch.rand(()) < 0.5) else high).clone()
    places = torch.randperm(count)
    each = max(1, count // PLANTED_SHARE)
    planted[places[:each]] = lows[places[:each]]
    planted[places[each : 2 * each]] = highs[places[each : 2 * each]]
    if not drawn.is_floating_point() and drawn.dtype != torch.bool:
        smallest, largest = int(lows.min()), int(highs.max())
        values = largest - smallest - 1
        rest = places[2 * each :]
        if bool((lows == smallest).all() and (highs == largest).all()) and 0 < values <= rest.numel() // 2:
            between = torch.arange(smallest + 1, largest, dtype=planted.dtype)
            planted[rest[:values]] = between
    return planted.reshape(drawn.shape)


def _with_end_rows(drawn: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Return the numbers with at least one row along the last axis at each end; a single row has single numbers."""
    rows = math.prod(drawn.shape[:-1])
    if rows == 1:
        return _planted(drawn, low, high)
    chosen = torch.randint(3, (rows, 1))
    order = torch.randperm(rows)
    chosen[order[:1]] = 1
    chosen[order[1:2]] = 2
    chosen = chosen.reshape(*drawn.shape[:-1], 1)
    return torch.where(chosen == 1, low, torch.where(chosen == 2, high, drawn))


Ends = tuple[object, object] | None
"""Smallest and largest number that one call could have returned: numbers or tensors."""


def _of_randint(_: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ends:
    numbers = [one for one in args if isinstance(one, int)]
    high = kwargs.get("high", kwargs.get("to", numbers[-1] if numbers else None))
    named = "high" in kwargs or "to" in kwargs
    low = kwargs.get("low", kwargs.get("from", numbers[0] if len(numbers) + named > 1 else 0))
    return None if high is None else (low, int(high) - 1)


def _of_rand(drawn: torch.Tensor, _: tuple[Any, ...], __: dict[str, Any]) -> Ends:
    return _half_open(0.0, 1.0, drawn)


def _of_uniform(drawn: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ends:
    low = kwargs.get("from", args[1] if len(args) > 1 else 0.0)
    high = kwargs.get("to", args[2] if len(args) > 2 else 1.0)
    return _half_open(low, high, drawn)


def _half_open(low: float, high: float, drawn: torch.Tensor) -> Ends:
    """Return the ends of a range whose upper end is never drawn: torch draws multiples of half the type's epsilon."""
    return low, low + (high - low) * (1 - torch.finfo(drawn.dtype).eps / 2)


def _of_bernoulli(_: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ends:
    return _of_chances(kwargs.get("input", args[0] if args else None))


def _of_bernoulli_in_place(_: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ends:
    return _of_chances(kwargs.get("p", args[1] if len(args) > 1 else 0.5))


def _of_chances(chance: object) -> Ends:
    chances = torch.as_tensor(chance).double()
    return (chances >= 1).double(), (chances > 0).double()


def _of_multinomial(drawn: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ends:
    weights = kwargs.get("input", args[0] if args else None)
    if not kwargs.get("replacement", args[2] if len(args) > 2 else False):
        return None
    possible = torch.as_tensor(weights).gt(0).int()
    low, high = possible.argmax(-1, keepdim=True), possible.shape[-1] - 1 - possible.flip(-1).argmax(-1, keepdim=True)
    return low.expand(drawn.shape), high.expand(drawn.shape)


_ENDS: dict[Draw, Callable[[torch.Tensor, tuple[Any, ...], dict[str, Any]], Ends]] = {
    torch.randint: _of_randint,
    torch.randint_like: _of_randint,
    torch.Tensor.random_: _of_randint,
    torch.rand: _of_rand,
    torch.rand_like: _of_rand,
    torch.Tensor.uniform_: _of_uniform,
    torch.bernoulli: _of_bernoulli,
    torch.Tensor.bernoulli: _of_bernoulli,
    torch.Tensor.bernoulli_: _of_bernoulli_in_place,
    torch.multinomial: _of_multinomial,
    torch.Tensor.multinomial: _of_multinomial,
}
