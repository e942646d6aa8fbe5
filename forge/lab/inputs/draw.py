"""Draws a workload's tensors on the host, with different values for every call.

Activations are float operands with the row axis; they follow the kind. Weights are standard normal except for
eleven kinds, and for two that treat all floats alike. Indices and packed numbers follow the operand's specification.
Floats are drawn in fp32 and rounded to the operand's dtype. So the oracle and the candidate see the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forge.domain.input_kind import InputKind
from forge.domain.tensors import TORCH_NAMES, AsKind, DType, ElementType, LogSums, Rotations, TensorSpec
from forge.lab.inputs.distributions import values_of_kind
from forge.lab.inputs.integers import draw_numbers
from forge.lab.inputs.mixed import Mixture
from forge.lab.inputs.special_rows import with_special_rows
from forge.lab.inputs.undivided import undivided_if_small
from forge.lab.inputs.weights import NormalWeights, weights_of_kind
from forge.operations.operation import Operation

if TYPE_CHECKING:
    import torch

USUAL_KINDS: frozenset[InputKind] = frozenset({"normal", "uniform"})
"""Kinds that are timed; beside them, operands that aren't floats have usual values too."""
KINDS_WITH_EMPTY_SUMS: frozenset[InputKind] = frozenset({"sparse", "padded", "zero_rows"})
"""Kinds in which some sums of exponentials are empty: the kinds in which values are absent."""
EMPTY_SHARE = 0.25
"""Share of empty sums among the positions that may have one. Chosen; most elements still show what comes out."""
KINDS_WITH_TABLES: frozenset[InputKind] = frozenset({"uniform"})
"""Kinds in which cosines and sines are those of a model's table. They are asked and timed in every verification."""
BASE_POWERS, MOST_POSITION = (4.0, 6.0), 2**17
"""Range of the power of ten that is the base of a table's angles, and the position that it begins at, at most. Models
have bases from 10,000 to 1,000,000, and contexts of up to 131,072 positions."""
MOST_IN_FP8 = 448.0
"""Largest number of fp8_e4m3. Older releases of torch cast larger ones to NaN, newer ones to this number."""


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
    floats: list[torch.Tensor] = []
    count = sum(spec.follows_kind for spec in operation.inputs)
    mixture = Mixture(dtype, count, generator) if kind == "mixed" else None
    angles: torch.Tensor | None = None
    for spec in operation.inputs:
        sizes, element = spec.sizes(shape), spec.element_type(dtype)
        match spec.values:
            case AsKind(exponent=exponent):
                unit = 2.0**exponent
                if mixture is not None:
                    rows = spec.axes.index(operation.row_axis) if operation.row_axis in spec.axes else None
                    values = mixture(sizes, element, rows)
                else:
                    values = _floats(operation, spec, sizes, dtype, kind, unit, generator)
                values = _equal_to(values, floats) if kind == "equal_operands" else values
                floats.append(values)
                values = values * unit
                if isinstance(spec.values, LogSums) and kind in KINDS_WITH_EMPTY_SUMS:
                    values = _with_empty_sums(values, spec.values, generator)
                if isinstance(spec.values, Rotations) and kind in KINDS_WITH_TABLES:
                    angles = _angles(sizes, generator) if angles is None else angles
                    values = angles.cos() if spec.values.part == "cos" else angles.sin()
            case _:
                values = draw_numbers(spec, shape, drawn, generator, usual=kind in USUAL_KINDS)
        if element == "fp8_e4m3":
            values = values.clamp(-MOST_IN_FP8, MOST_IN_FP8)
        drawn[spec.name] = values.to(torch_dtype(element)).contiguous()
    return tuple(drawn.values())


def _angles(sizes: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Return a table's angles [positions, pairs] in fp64. Half of the tables begin at position 0.

    The others begin at a random position, where each octave is equally likely.
    """
    import torch

    power, later = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
    base = 10 ** (BASE_POWERS[0] + (BASE_POWERS[1] - BASE_POWERS[0]) * power)
    first = int(MOST_POSITION ** max(0.0, 2 * later - 1)) if later > 0.5 else 0
    positions, pairs = (torch.arange(size, dtype=torch.float64) for size in sizes)
    return (first + positions).unsqueeze(-1) * base ** (-pairs / max(1, len(pairs)))


def _with_empty_sums(values: torch.Tensor, rule: LogSums, generator: torch.Generator) -> torch.Tensor:
    """Put the logarithm of an empty sum at some of the positions that the rule allows.

    In half of the rows, the same for all operands, only whole rows are empty: a part without any key is so for all
    heads.
    """
    import torch

    rows = torch.arange(len(values)).view(-1, *[1] * (values.dim() - 1))
    whole = (rows // 2 + generator.initial_seed()) % 2 == 0
    odd = torch.where(whole, rows, torch.arange(values.numel()).view(values.shape)) % 2 == 1
    allowed = odd if rule.empty == "odd" else ~odd
    share = torch.rand(values.shape, generator=generator)
    share = torch.where(whole, share[(slice(None), *[slice(1)] * (values.dim() - 1))], share)
    return values.masked_fill(allowed & (share < EMPTY_SHARE), -math.inf)


def _equal_to(values: torch.Tensor, earlier: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the first of the earlier operands that has these sizes, or the values themselves."""
    return next((one for one in earlier if one.shape == values.shape), values)


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
        weights = [one.name for one in operation.inputs if one.follows_kind and one.name not in activations]
        return weights_of_kind(kind, NormalWeights(values, dtype, unit, generator, weights.index(spec.name)))
    rows, operand_index = spec.axes.index(operation.row_axis), activations.index(spec.name)
    if kind == "equal_weights" and len(sizes) == 1 and values.numel():  # as one scale for a whole tensor
        return values[:1].expand_as(values).clone()
    values = values.movedim(rows, 0)
    if kind == "special_rows":
        return with_special_rows(operation, values, operand_index, generator).movedim(0, rows)
    return values_of_kind(values, kind, dtype, operand_index, generator).movedim(0, rows)
