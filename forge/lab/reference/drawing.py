"""Draws a reference file's operands: by the file's own get_inputs, by a declared family, or at the ends of ranges.

Values that aren't continuous come from one draw of get_inputs, so that those that fit to each other still do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forge.domain.input_kind import END_KINDS, InputKind
from forge.domain.own_operation import (
    CONSTANT,
    Among,
    Contract,
    Family,
    Generated,
    Integers,
    Operand,
    Weight,
    sizes_at,
)
from forge.lab.inputs.draw import torch_dtype
from forge.lab.reference.answers import Answers, Pattern
from forge.lab.reference.faint import FAINT_KINDS, faint, may_be_faint
from forge.lab.reference.family_values import OUTSIDE, SIGNED, WEIGHT_FACTORS, draw_family
from forge.lab.reference.planted_values import has_two_values, planted

if TYPE_CHECKING:
    import torch

STATES = 3
"""Number of initialisations around which the weights of a judgement are drawn. Chosen; each is computed once and kept
in memory."""
Tensors = tuple["torch.Tensor", ...]


class Drawing:
    """Draws operands, and weights near the reference's initial ones."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._states: dict[int, Tensors] = {}

    def __call__(self, shape: Mapping[str, int], kind: InputKind, seed: int) -> Tensors:
        """Draw all operands of one call; the same seed gives the same values."""
        return (*self.operands(shape, kind, seed), *self.weights(seed, kind))

    def operands(self, shape: Mapping[str, int], kind: InputKind, seed: int) -> Tensors:
        """Draw the tensors of the reference's arguments at a shape, in order.

        One seed gives the same values again.
        """
        import torch

        contract = self._answers.contract
        end_kind = next((one for one in END_KINDS if one == kind), None)
        pattern: Pattern = end_kind or "plain"
        drawn = [self._from_file(one, kind, shape) for one in contract.tensors]
        plain = self._generated(seed, "plain") if any(one in ("plain", "planted") for one in drawn) else ()
        reached = plain if pattern == "plain" else ()
        if "reached" in drawn and not reached:
            reached = self._generated(seed, pattern)
        fitting = _Fitting(contract, shape, torch.Generator().manual_seed(seed + 2))
        generator = torch.Generator().manual_seed(seed)
        values: list[torch.Tensor] = []
        for place, (one, how) in enumerate(zip(contract.tensors, drawn, strict=True)):
            match how:
                case "plain":
                    values.append(_without_zeros(one, fitting(one, plain[place], at_ends=False), kind, generator))
                case "reached":
                    values.append(fitting(one, reached[place], at_ends=pattern != "plain"))
                case "planted":
                    fits = fitting(one, plain[place], at_ends=False)
                    values.append(planted(fits, fitting.family(one), kind, generator))
                case _:
                    values.append(_of_family(one, contract, fitting, kind, generator))
        return _with_equal(contract, values) if kind == "equal_operands" else tuple(values)

    def _generated(self, seed: int, pattern: Pattern) -> Tensors:
        return self._answers.generated(seed % 2**31, pattern)

    def _from_file(self, one: Operand, kind: InputKind, shape: Mapping[str, int]) -> str:
        """Return where an operand's values come from: a draw of the file, plain or reaching its ends, or a family."""
        if isinstance(one.drawn, Generated):
            return "reached" if kind in END_KINDS else "plain"
        if one.source == "family":
            return "family"
        if one.continuous:
            usual = kind == "normal" or kind in END_KINDS
            return "plain" if usual and sizes_at(one.axes, shape) == one.sizes else "family"
        if kind in ("ordered", "falling") and isinstance(one.drawn, Integers | Among) and not one.coupled:
            return "planted"
        if kind == "near_highest" and isinstance(one.drawn, Integers) and not one.coupled:
            return "planted"
        if kind == "single" and has_two_values(one.drawn) and not one.coupled:
            return "planted"
        if kind not in END_KINDS:
            return "plain"
        return "planted" if one.source == "planted" else "reached"

    def weights(self, seed: int, kind: InputKind = "normal") -> Tensors:
        """Draw weights near one of a few initialisations, never exactly at one; some kinds have other ones."""
        import torch

        weights = self._answers.contract.weights
        if not weights:
            return ()
        generator = torch.Generator().manual_seed(seed + 1)
        which = seed % STATES
        if which not in self._states:
            self._states[which] = self._answers.state(which)
        drawn = [_weight(one, value, generator) for one, value in zip(weights, self._states[which], strict=True)]
        if kind == SIGNED:
            drawn = [_signed(one, value, generator) for one, value in zip(weights, drawn, strict=True)]
        factor = WEIGHT_FACTORS.get(kind, 1.0)
        grows = [one.parameter and value.is_floating_point() for one, value in zip(weights, drawn, strict=True)]
        drawn = [value * factor if grown else value for grown, value in zip(grows, drawn, strict=True)]
        return tuple(drawn)


def first_alike(contract: Contract, place: int) -> int:
    """Return the place of the first operand that has the family, type and sizes of the operand there."""
    one = contract.tensors[place]
    for earlier, other in enumerate(contract.tensors[:place]):
        same = (other.drawn, other.element, other.axes) == (one.drawn, one.element, one.axes)
        if same and not (isinstance(one.drawn, Generated) or one.coupled or other.coupled):
            return earlier
    return place


def is_square(one: Operand) -> bool:
    """Return whether an operand is square matrices of numbers that no user declared a range for.

    A kernel that eliminates without pivots fails where the first is zero.
    """
    sizes = one.sizes[-2:]
    return len(sizes) == 2 and sizes[0] == sizes[1] > 1 and one.continuous and one.source != "family"


def _with_equal(contract: Contract, values: list[torch.Tensor]) -> Tensors:
    """Return the operands, each equal to the first one that is like it."""
    return tuple(values[first_alike(contract, place)].clone() for place in range(len(values)))


def _without_zeros(one: Operand, values: torch.Tensor, kind: InputKind, generator: torch.Generator) -> torch.Tensor:
    """Return normal numbers for an operand that is all zeros in each draw, in the kinds that leave a range.

    A first hidden state is often such an operand, and a kernel that leaves it out would be right.
    """
    import torch

    constant = one.drawn == Generated(structure=CONSTANT) and one.element is None
    if kind not in OUTSIDE or not constant or bool(values.any()):
        return values
    return torch.randn(values.shape, generator=generator).to(values.dtype)


class _Fitting:
    """Fits a draw at the frozen sizes to another shape: the same rows of all batched operands, numbers in range."""

    def __init__(self, contract: Contract, shape: Mapping[str, int], generator: torch.Generator) -> None:
        import torch

        self._contract = contract
        self.shape = shape
        self._chosen: dict[str, torch.Tensor] = {}
        self._generator = generator
        self._spread: dict[tuple[int, int, int], torch.Tensor] = {}
        for name, frozen in contract.shape.items():
            size = shape[name]
            if size < frozen:
                self._chosen[name] = torch.randperm(frozen, generator=generator)[:size]
            elif size > frozen:
                self._chosen[name] = torch.randint(frozen, (size,), generator=generator)

    def __call__(self, one: Operand, values: torch.Tensor, *, at_ends: bool) -> torch.Tensor:
        """Return an operand's values at the shape."""
        for dim, axis in enumerate(one.axes):
            if axis in self._chosen:
                values = values.index_select(dim, self._chosen[axis])
        family = self.family(one)
        if isinstance(one.drawn, Integers) and isinstance(family, Integers) and family != one.drawn:
            low, high = family.low, family.high
            if high > one.drawn.high:
                among = values.clamp(low, one.drawn.high) - low
                values = self._spread_of(low, one.drawn.high, high)[among.long()].to(values.dtype)
            else:
                values = values.clamp(max=high) if at_ends else low + (values - low) % (high - low + 1)
        return values.contiguous()

    def _spread_of(self, low: int, frozen_high: int, high: int) -> torch.Tensor:
        """Return the number in a longer range for each of the frozen one, as int64[frozen_high - low + 1].

        Both ends are reached, and sorted or distinct numbers stay so.
        """
        import torch

        key = (low, frozen_high, high)
        if key not in self._spread:
            between = torch.randperm(high - low - 1, generator=self._generator)[: max(0, frozen_high - low - 1)]
            ends = [low, high] if frozen_high > low else [high]
            self._spread[key] = torch.cat((between + low + 1, torch.tensor(ends))).sort().values
        return self._spread[key]

    def family(self, one: Operand) -> Family:
        """Return an operand's family at the shape: indices into a size that varies follow that size."""
        if not isinstance(one.drawn, Integers):
            return one.drawn
        moved = [
            self.shape[name] - frozen
            for name, frozen in self._contract.shape.items()
            if follows(one, frozen) and self.shape[name] != frozen
        ]
        if not moved:
            return one.drawn
        return one.drawn.model_copy(update={"high": max(one.drawn.high + min(moved), one.drawn.low)})


def follows(one: Operand, size: int) -> bool:
    """Return whether whole numbers look like indices into a size, or like lengths up to it."""
    return isinstance(one.drawn, Integers) and size > 1 and one.drawn.high in (size - 1, size)


def _of_family(
    one: Operand, contract: Contract, fitting: _Fitting, kind: InputKind, generator: torch.Generator
) -> torch.Tensor:
    family = fitting.family(one)
    assert not isinstance(family, Generated)
    kind = "normal" if kind in OUTSIDE and one.source == "family" else kind  # a declared range is kept
    values = draw_family(family, sizes_at(one.axes, fitting.shape), kind, generator)
    if kind in FAINT_KINDS and may_be_faint(contract, one):
        values = faint(values, kind, contract.dtype, generator)
    if kind == "zero_diagonal" and is_square(one):
        values.diagonal(dim1=-2, dim2=-1).zero_()
    return values.to(torch_dtype(one.element or contract.dtype)).contiguous()


def _weight(one: Weight, value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Change a weight by up to a quarter; biases of zero and running means become nonzero."""
    import torch

    if not value.is_floating_point():
        return value
    moved = value.float() * (1 + 0.25 * (2 * torch.rand(value.shape, generator=generator) - 1))
    is_mean = one.names[0].endswith("running_mean")
    if (one.parameter or is_mean) and not bool(value.any()):
        moved = moved + torch.randn(value.shape, generator=generator) / 16
    return moved.to(value.dtype)


def _signed(one: Weight, value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Give each number of a parameter a random sign, and zeros the size of the others.

    Kernels may rely on a new norm's weights, which are all ones, or on an embedding's row of zeros.
    """
    import torch

    if not (one.parameter and value.is_floating_point()):
        return value
    size = value.float().square().mean().sqrt().to(value.dtype)
    signed = torch.where(torch.rand(value.shape, generator=generator) < 0.5, value, -value)
    return torch.where(value == 0, size * torch.randn(value.shape, generator=generator).to(value.dtype), signed)
