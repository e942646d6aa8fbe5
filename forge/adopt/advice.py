"""Proposes which operations to adopt in a model, by timing the whole model with and without each.

An opaque operation can undo a fusion of the compiler and make a model slower. So each side is built anew, and the
side without an operation calls the model's own function. Windows of both sides take turns.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from forge.errors import UsageError

if TYPE_CHECKING:
    from forge.adopt.operation import AdoptedOperation

Function = Callable[..., object]
Hook = Callable[[str, Function], Function]
Build = Callable[[Hook], Function]
CONFIDENCE = 0.95
"""Least confidence of the interval around the median gain, as a share. A benchmark's interval has the same 95 %."""
MOST_STEPS = 1 << 20
"""Number of steps of one window, at most: a function that takes no time would never fill one."""
LEAST_PAIRS = 6
"""Least number of pairs: with fewer, all of them agreeing has a chance of more than one in forty."""


class Effect(NamedTuple):
    """The time of the model without some operations adopted, over that with them."""

    ops: tuple[str, ...]
    ratio: float
    low: float
    high: float
    """The median's interval of at least 95 %, by the binomial distribution."""

    @property
    def helps(self) -> bool:
        """Whether adoption makes the model faster beyond doubt."""
        return self.low > 1


class Advice(NamedTuple):
    """The effect of each operation, and which to adopt."""

    effects: tuple[Effect, ...]
    together: Effect | None
    """The effect of all that are proposed; None if none is."""

    @property
    def adopt(self) -> tuple[str, ...]:
        """The operations to adopt: those that help alone, if they help together too."""
        return self.together.ops if self.together is not None and self.together.helps else ()

    def table(self) -> str:
        """Return the advice as text, one line for each operation."""
        lines = [f"{', '.join(one.ops)}: {one.ratio:.4f}x ({one.low:.4f} to {one.high:.4f})" for one in self.effects]
        if self.together is not None:
            one = self.together
            lines.append(f"together: {one.ratio:.4f}x ({one.low:.4f} to {one.high:.4f})")
        return "\n".join([*lines, f"adopt: {', '.join(self.adopt) or 'none'}"])


def advise(
    operations: "dict[str, AdoptedOperation]",
    build: Build,
    inputs: Sequence[object],
    *,
    compiled: bool,
    pairs: int,
    window_s: float,
) -> Advice:
    """Return the effect of each operation that the model names.

    `build(op)` returns a model to call with `inputs`; it calls `op(name, own)` for the function to use.

    Raises UsageError for bad `pairs` or `window_s`, or if the model names no operation.
    """
    if pairs < LEAST_PAIRS or not 0 < window_s < math.inf:
        raise UsageError(
            f"bad pairs {pairs!r} or window_s {window_s!r}: expected at least {LEAST_PAIRS}, and above 0"
        )
    named: dict[str, None] = {}

    def collect(name: str, own: Function) -> Function:
        named.setdefault(name)
        return own

    build(collect)
    wanted = [name for name in named if name in operations]
    if not wanted:
        raise UsageError(f"the model names {sorted(named)}: expected one of {', '.join(sorted(operations))}")

    def ready(*names: str) -> Function:
        return _ready(build, {name: operations[name] for name in names}, compiled=compiled)

    without = ready()
    effects = tuple(_effect(without, ready(name), (name,), inputs, pairs, window_s) for name in wanted)
    helping = tuple(one.ops[0] for one in effects if one.helps)
    if not helping:
        return Advice(effects, None)
    return Advice(effects, _effect(without, ready(*helping), helping, inputs, pairs, window_s))


def _ready(build: Build, adopted: "dict[str, AdoptedOperation]", *, compiled: bool) -> Function:
    import torch

    def op(name: str, own: Function) -> Function:
        return adopted[name].function(own) if name in adopted else own

    model = build(op)
    ready: Function = torch.compile(model) if compiled else model
    return ready


def _effect(
    without: Function, adopted: Function, ops: tuple[str, ...], inputs: Sequence[object], pairs: int, window_s: float
) -> Effect:
    import torch

    with torch.no_grad():
        for side in (without, adopted):
            side(*inputs)
        steps = _steps((without, adopted), inputs, window_s)
        logs = []
        for pair in range(pairs):
            order = (without, adopted) if pair % 2 else (adopted, without)
            took = {side: _window_s(side, inputs, steps) for side in order}
            logs.append(math.log(took[without] / took[adopted]))
    low, high = median_interval(logs)
    logs.sort()
    middle = (logs[(pairs - 1) // 2] + logs[pairs // 2]) / 2
    return Effect(ops, math.exp(middle), math.exp(low), math.exp(high))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the median's interval: the ordered values between which it lies with at least 95 %.

    The number of values below the median has a binomial distribution with probability one half.
    """
    ordered, count = sorted(values), len(values)
    beyond, left_out = 0.0, 0
    while left_out < count // 2:
        beyond += 2 * math.comb(count, left_out) / 2.0**count
        if beyond > 1 - CONFIDENCE:
            break
        left_out += 1
    if left_out == 0:
        return -math.inf, math.inf
    return ordered[left_out - 1], ordered[count - left_out]


def _steps(sides: tuple[Function, Function], inputs: Sequence[object], window_s: float) -> int:
    """Return the number of steps that fill a window of the slower side."""
    steps = 1
    while max(_window_s(side, inputs, steps) for side in sides) < window_s and steps < MOST_STEPS:
        steps *= 2
    return steps


def _window_s(model: Function, inputs: Sequence[object], steps: int) -> float:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(steps):
        model(*inputs)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun
