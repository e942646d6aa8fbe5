"""Repeats a share of calls with the fallback and compares: a breach withdraws the kernel from this process."""

import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from forge.adopt.choice import CallChoice, Function
from forge.adopt.described import OperationForm, OutputBound

if TYPE_CHECKING:
    import torch

DOUBT_VERSION = 1
"""Version of the form of a file that reports a doubt."""
UNIT_ROUNDOFF = {"torch.float32": 2.0**-24, "torch.float16": 2.0**-11, "torch.bfloat16": 2.0**-8}
"""Unit roundoff of each type by torch's name for it: half the distance from one to the next number."""
ACCUMULATED = 4 * 2.0**-24
"""Error of sums in fp32 on both sides, for each term: the factor of docs/numerics.md, doubled."""
FP8_STEP = 1 / 4
"""Largest distance of two neighbouring fp8 e4m3 numbers, twice, as a share of the larger one (3 bits of fraction)."""
FP8_SMALLEST_STEP = 2.0**-9
"""Distance of the smallest fp8 e4m3 numbers: its subnormal numbers have the exponent -6 and three bits."""
OTHER_CHOICES = 0.01
"""Share of all compared rows in which two answers may choose another entry, at most; the first such row always may.
Chosen: near ties at the last rank are rarer than one row in ten thousand. A kernel that chooses wrongly does so in
most rows."""
Breached = Callable[[dict[str, object]], None]


@dataclass
class RankedRows:
    """Rows of ranked answers that were compared so far, and those in which another entry was chosen."""

    compared: int = 0
    chosen_otherwise: int = 0

    def allows(self, rows: int, chosen_otherwise: int) -> bool:
        """Count a call's rows, and return whether so many other choices can be near ties."""
        self.compared += rows
        self.chosen_otherwise += chosen_otherwise
        return self.chosen_otherwise <= max(1.0, OTHER_CHOICES * self.compared)


class ShadowChoice:
    """A choice of which every n-th call is repeated with the fallback, outside of captures."""

    __slots__ = ("_about", "_breached", "_calls", "_every", "_fallback", "_inner", "_op", "_rows", "line")

    def __init__(
        self,
        inner: CallChoice,
        op: OperationForm,
        fallback: Function,
        *,
        share: float,
        about: dict[str, object],
        breached: Breached,
    ) -> None:
        self.line = inner.line
        self._inner, self._op, self._fallback = inner, op, fallback
        self._every = max(1, round(1 / share))
        self._calls = count(1)
        self._rows = RankedRows()
        self._about, self._breached = about, breached

    def __call__(self, *arguments: object) -> object:
        """Answer one call, and compare it if it is the n-th."""
        if next(self._calls) % self._every or _capturing(arguments):
            return self._inner(*arguments)
        return self._compared(arguments)

    def _compared(self, arguments: tuple[object, ...]) -> object:
        """Return the fallback's answer to a call in which the kernel's differs; otherwise the kernel's."""
        import torch

        kept = tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in arguments)
        again = tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in kept)
        answer = self._inner(*arguments)
        expected = self._fallback(*again)
        self.line.shadowed.add()
        found = _outputs(self._op, arguments, answer)
        wanted = _outputs(self._op, again, expected)
        breach = difference(self._op, arguments, found, wanted, self._rows)
        if breach is None:
            return answer
        self.line.shadow_breaches.add()
        self._breached(self._about | breach | {"inputs": input_digests(self._op, kept)})
        for place, operand in enumerate(self._op.inputs):
            if operand.name in self._op.updates:
                arguments[place].copy_(again[place])  # type: ignore[attr-defined]  # tensors, by the schema
        return expected


def _capturing(arguments: Sequence[object]) -> bool:
    import torch

    first: torch.Tensor = arguments[0]
    return bool(first.is_cuda and torch.cuda.is_current_stream_capturing())


def _outputs(op: OperationForm, arguments: Sequence[object], answer: object) -> "dict[str, torch.Tensor]":
    """Return every output by name: what was returned, and the operands that were written in place."""
    given = {operand.name: argument for operand, argument in zip(op.inputs, arguments, strict=False)}
    returned = iter(answer if isinstance(answer, tuple | list) else [answer])
    found = [given[one.name] if one.name in op.updates else next(returned) for one in op.outputs]
    return {one.name: tensor for one, tensor in zip(op.outputs, found, strict=True)}


def difference(
    op: OperationForm,
    arguments: Sequence[object],
    found: "dict[str, torch.Tensor]",
    wanted: "dict[str, torch.Tensor]",
    rows: RankedRows | None = None,
) -> dict[str, object] | None:
    """Return the first output that lies beyond its bound, with the largest excess; None if all lie within.

    `found` and `wanted` have the outputs by name, with the sizes of the operation's signature. The excess is a ratio
    of error to bound. `rows` are those of earlier calls; None: this call is the first.
    """
    operands: list[torch.Tensor] = list(arguments[: len(op.inputs)])
    shape = op.read_shape([one.shape for one in operands])
    terms = shape.get(op.reduced_axis or "", 1)
    ranked = next((one for one in op.outputs if one.bound is not None and one.bound.kind == "ranked"), None)
    for output in op.outputs:
        mine, theirs = found[output.name], wanted[output.name]
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return {"output": output.name, "excess": None, "detail": f"{mine.shape} {mine.dtype}"}
        if output is ranked or output.bound is None or mine.numel() == 0:
            continue
        if ranked is not None and output.axes == ranked.axes:
            sides = (mine, found[ranked.name]), (theirs, wanted[ranked.name])
            excess = _excess_by_rank(output.bound, terms, *sides, rows or RankedRows())
        else:
            excess = float(_excesses(output.bound, mine, theirs, terms).max())
        if not excess <= 1:
            return {"output": output.name, "excess": excess, "detail": "largest difference over the allowed one"}
    return None


def _excess_by_rank(
    bound: OutputBound,
    terms: int,
    mine: "tuple[torch.Tensor, torch.Tensor]",
    theirs: "tuple[torch.Tensor, torch.Tensor]",
    rows: RankedRows,
) -> float:
    """Return the largest difference over what is allowed between values that are ordered by rank.

    `mine` and `theirs` are values and the chosen entries, both [..., ranks]. Near ties may change places, so values
    that differ at a rank are compared at their entry. At the last rank one other entry may be chosen, in few rows:
    such a row has nothing to compare.
    """
    import torch

    (values, chosen), (other_values, other_chosen) = (
        [one.reshape(-1, one.shape[-1]) for one in side] for side in (mine, theirs)
    )
    in_order = _excesses(bound, values, other_values, terms).amax(-1)
    places, other_places = chosen.argsort(-1), other_chosen.argsort(-1)
    same_entries = (chosen.gather(-1, places) == other_chosen.gather(-1, other_places)).all(-1)
    by_entry = _excesses(bound, values.gather(-1, places), other_values.gather(-1, other_places), terms).amax(-1)
    apart = in_order > 1
    otherwise = (apart & ~same_entries).nonzero().flatten()
    shared = (chosen[otherwise].unsqueeze(-1) == other_chosen[otherwise].unsqueeze(-2)).any(-1).sum(-1)
    one_entry = bool((shared >= chosen.shape[-1] - 1).all())
    if not (rows.allows(apart.numel(), otherwise.numel()) and one_entry):
        return float(in_order.max())
    nothing = torch.zeros_like(in_order)
    return float(torch.where(apart, torch.where(same_entries, by_entry, nothing), in_order).max())


def _excesses(bound: OutputBound, mine: "torch.Tensor", theirs: "torch.Tensor", terms: int) -> "torch.Tensor":
    """Return each difference over what is allowed; infinite where exactly one side is NaN."""
    import torch

    wide = torch.float64 if mine.device.type == "cpu" else torch.float32
    a, b = mine.to(wide), theirs.to(wide)
    if bound.kind == "step":
        whole = torch.ones_like(b)
        allowed = (b.abs() * FP8_STEP).clamp(min=FP8_SMALLEST_STEP) if mine.dtype.is_floating_point else whole
    else:
        row = b.nan_to_num(0, 0, 0).square().mean(-1, keepdim=True).sqrt() if b.dim() else b.abs()
        unit = UNIT_ROUNDOFF.get(str(mine.dtype), 2.0**-24)
        allowed = (bound.roundings * unit + ACCUMULATED * terms) * (b.abs() + row) + bound.share * row
        allowed = allowed + torch.finfo(mine.dtype).tiny
    same = (a == b) | (a.isnan() & b.isnan())
    return torch.where(same, torch.zeros_like(a), (a - b).abs() / allowed).nan_to_num(float("inf"))


def input_digests(op: OperationForm, arguments: Sequence[object]) -> list[dict[str, object]]:
    """Return each operand's name, sizes, element type and digest, so that the call can be found again."""
    found: list[dict[str, object]] = []
    for operand, given in zip(op.inputs, arguments, strict=False):
        tensor: torch.Tensor = given.detach().cpu().contiguous()  # type: ignore[attr-defined]  # tensors, by the schema
        content = (
            ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""
        )
        sha256 = hashlib.sha256(content).hexdigest()
        sizes = list(tensor.shape)
        found.append({"name": operand.name, "sizes": sizes, "dtype": str(tensor.dtype), "sha256": sha256})
    return found


def write_doubt(document: dict[str, object], folder: str | None) -> Path:
    """Write the report of a breach to a new file and return its path."""
    where = Path(folder) if folder is not None else Path(tempfile.gettempdir())
    where.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="forge-doubt-", suffix=".json", dir=where)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"schema_version": DOUBT_VERSION, "kind": "kernel_doubt", **document}, file, indent=1)
    return Path(name)
