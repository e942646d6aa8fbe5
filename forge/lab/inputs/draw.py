"""Draws a workload's tensors on the host, with different values for every call.

Activations are float operands with the row axis; they follow the kind. Weights are standard normal except for eight
kinds. Indices and packed numbers follow the operand's specification. Floats are drawn in fp32 and rounded to the
operand's dtype, so that the oracle and the candidate see the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from forge.domain.input_kind import InputKind
from forge.domain.tensors import TORCH_NAMES, AsKind, DType, ElementType, TensorSpec
from forge.lab.inputs.distributions import values_of_kind
from forge.lab.inputs.integers import draw_numbers
from forge.lab.inputs.special_rows import with_special_rows
from forge.lab.inputs.undivided import undivided_if_small
from forge.operations.operation import Operation

if TYPE_CHECKING:
    import torch

LARGE_WEIGHTS = 32.0
"""Scale of the weights beside `large` activations. Their products with normalised rows stay inside every dtype's
range."""
WEIGHT_SHIFT = 4.0
"""Distance from zero of the weights beside shifted activations, half of theirs. Whole rows of their products are then
positive or negative."""
WEIGHT_POWERS_APART: dict[DType, int] = {"fp32": 20, "bf16": 20, "fp16": 8}
"""Number of powers of two from a usual weight to the largest and to the smallest one beside rows far apart, by dtype.
The first two exceed the range of fp16, into which no kernel may round them."""
USUAL_KINDS: frozenset[InputKind] = frozenset({"normal", "uniform"})
"""Kinds that are timed; beside them, operands that aren't floats have usual values too."""
MOST_IN_FP8 = 448.0
"""Largest number of fp8_e4m3. Older releases of torch cast larger ones to NaN, newer ones to this number."""
SPECIALS = (math.nan, math.inf, -math.inf)
"""Values that the kind `special_weights` puts into weights."""


def torch_dtype(element: ElementType) -> torch.dtype:
    """Return torch's type for an element type."""
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
    with undivided_if_small(operation, shape):
        return _drawn(operation, shape, dtype, kind, torch.Generator().manual_seed(seed))


def _drawn(
    operation: Operation, shape: Mapping[str, int], dtype: DType, kind: InputKind, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    drawn: dict[str, torch.Tensor] = {}
    for spec in operation.inputs:
        match spec.values:
            case AsKind(exponent=exponent):
                unit = 2.0**exponent
                values = _floats(operation, spec, spec.sizes(shape), dtype, kind, unit, generator) * unit
            case _:
                values = draw_numbers(spec, shape, drawn, generator, usual=kind in USUAL_KINDS)
        element = spec.element_type(dtype)
        if element == "fp8_e4m3":
            values = values.clamp(-MOST_IN_FP8, MOST_IN_FP8)
        drawn[spec.name] = values.to(torch_dtype(element)).contiguous()
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
    """Draw a float operand in units of its usual size."""
    import torch

    values = torch.randn(sizes, generator=generator)
    activations = [one.name for one in operation.activations]
    if spec.name not in activations:
        return _weight(values, kind, dtype, unit, generator)
    rows, operand_index = spec.axes.index(operation.row_axis), activations.index(spec.name)
    values = values.movedim(rows, 0)
    if kind == "special_rows":
        return with_special_rows(operation, values, operand_index, generator).movedim(0, rows)
    return values_of_kind(values, kind, dtype, operand_index, generator).movedim(0, rows)


def _weight(
    values: torch.Tensor, kind: InputKind, dtype: DType, unit: float, generator: torch.Generator
) -> torch.Tensor:
    """Return the weight's values for the kind.

    For `integers` they are signed powers of two from 1/4 to 4, so that sums are exact.
    """
    import torch

    if kind == "integers":
        return torch.where(values < 0, -1.0, 1.0) * torch.exp2((values.abs() * 2).floor().clamp(max=4) - 2)
    if kind == "weights_near_one":
        return 1 + values / 16
    if kind == "zero_weights":
        return values * 0.0  # zeros of either sign
    if kind == "equal_weights":
        return torch.full_like(values, float(torch.randint(2, (), generator=generator)) or float(values.abs().amax()))
    if kind == "rows_apart":
        most = WEIGHT_POWERS_APART[dtype]
        return values * torch.randint(-most, most + 1, values.shape, generator=generator).exp2()
    if kind == "large":
        return values * LARGE_WEIGHTS
    if kind == "offset_operands":
        sign = 1.0 if bool(torch.rand((), generator=generator) < 0.5) else -1.0
        return values + sign * WEIGHT_SHIFT / unit
    if kind == "special_weights":
        flat = values.view(-1)
        places = torch.randperm(flat.numel(), generator=generator).tolist()
        for place, special in zip((flat.numel() - 1, *places), _shuffled_specials(generator), strict=False):
            flat[place] = special
    return values


def _shuffled_specials(generator: torch.Generator) -> list[float]:
    """Return the special values in random order; the first one goes to the end of the weights."""
    import torch

    order = torch.randperm(len(SPECIALS), generator=generator).tolist()
    return [SPECIALS[place] for place in order]
