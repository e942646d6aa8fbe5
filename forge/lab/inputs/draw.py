"""Workload to tensors: values drawn by the host, different for every call.

Activations (float operands with the row axis) follow the kind; weights are standard normal but for five kinds that
say otherwise; indices and packed numbers are drawn as the operand's specification says. Floats are drawn in fp32 and
rounded to the operand's dtype, so that the oracle and the candidate see the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from forge.domain.operation import InputKind, Operation
from forge.domain.tensors import TORCH_NAMES, AsKind, DType, ElementType, TensorSpec
from forge.lab.inputs.distributions import of_kind
from forge.lab.inputs.integers import draw_numbers
from forge.lab.inputs.special_rows import with_special_rows

if TYPE_CHECKING:
    import torch

LARGE_WEIGHTS = 32.0
"""Scale of the weights beside `large` activations: normalised rows times these stay inside every dtype's range."""
SHIFT_OF_WEIGHTS = 4.0
"""Beside activations that are shifted by twice as much: of their products whole rows are above or below zero."""
USUAL_KINDS: frozenset[InputKind] = frozenset({"normal", "uniform"})
"""Beside these, numbers that aren't floats are as usual too: they are what is timed."""
SPECIALS = (math.nan, math.inf, -math.inf)


def torch_dtype(element: ElementType) -> torch.dtype:
    """Torch's own name for an element type."""
    import torch

    found = getattr(torch, TORCH_NAMES[element])
    assert isinstance(found, torch.dtype)
    return found


def draw(
    operation: Operation, shape: Mapping[str, int], dtype: DType, kind: InputKind, *, seed: int
) -> tuple[torch.Tensor, ...]:
    """Draw the operation's operands at `shape`; the same seed gives the same values."""
    import torch

    if operation.draw is not None:
        return operation.draw(shape, kind, seed)
    generator = torch.Generator().manual_seed(seed)
    drawn: dict[str, torch.Tensor] = {}
    for spec in operation.inputs:
        match spec.values:
            case AsKind(exponent=exponent):
                unit = 2.0**exponent
                values = _floats(operation, spec, spec.sizes(shape), dtype, kind, unit, generator) * unit
            case _:
                values = draw_numbers(spec, shape, drawn, generator, usual=kind in USUAL_KINDS)
        drawn[spec.name] = values.to(torch_dtype(spec.element_type(dtype))).contiguous()
    return tuple(drawn.values())


def _floats(
    operation: Operation,
    spec: TensorSpec,
    sizes: tuple[int, ...],
    dtype: DType,
    kind: InputKind,
    unit: float,
    generator: torch.Generator,
) -> torch.Tensor:
    """In units of what the operand usually is."""
    import torch

    values = torch.randn(sizes, generator=generator)
    activations = [one.name for one in operation.activations]
    if spec.name not in activations:
        return _weight(values, kind, unit, generator)
    rows, turn = spec.axes.index(operation.row_axis), activations.index(spec.name)
    values = values.movedim(rows, 0)
    if kind == "special_rows":
        return with_special_rows(operation, values, turn, generator).movedim(0, rows)
    return of_kind(values, kind, dtype, turn, generator).movedim(0, rows)


def _weight(values: torch.Tensor, kind: InputKind, unit: float, generator: torch.Generator) -> torch.Tensor:
    """Signed powers of two from 1/4 to 4 where sums are to be exact; and what four kinds are named for."""
    import torch

    if kind == "integers":
        return torch.where(values < 0, -1.0, 1.0) * torch.exp2((values.abs() * 2).floor().clamp(max=4) - 2)
    if kind == "weights_near_one":
        return 1 + values / 16
    if kind == "large":
        return values * LARGE_WEIGHTS
    if kind == "offset_operands":
        sign = 1.0 if bool(torch.rand((), generator=generator) < 0.5) else -1.0
        return values + sign * SHIFT_OF_WEIGHTS / unit
    if kind == "special_weights":
        flat = values.view(-1)
        places = torch.randperm(flat.numel(), generator=generator).tolist()
        for place, special in zip((flat.numel() - 1, *places), _specials(generator), strict=False):
            flat[place] = special
    return values


def _specials(generator: torch.Generator) -> list[float]:
    """In an order of chance: the first stands at the end."""
    import torch

    order = torch.randperm(len(SPECIALS), generator=generator).tolist()
    return [SPECIALS[place] for place in order]
