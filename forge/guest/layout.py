"""Runs beside hostile code. Defines what a layout of operands and results in the arena consists of."""

from typing import NamedTuple

import torch


class Operand(NamedTuple):
    """One input: the tensor, its storage, and the elements in the arena that hold its content."""

    tensor: torch.Tensor
    storage: torch.Tensor
    """Elements of the tensor's storage. On a CPU they are the arena's; on a device they get the arena's content
    before each call."""
    source: torch.Tensor


class Layout(NamedTuple):
    """Tensors over the arena, with a tuple of inputs and a tuple of destinations for each set."""

    inputs: tuple[tuple[torch.Tensor, ...], ...]
    operands: tuple[tuple[Operand, ...], ...]
    """Operands of the inputs, for each set."""
    destinations: tuple[tuple[torch.Tensor, ...], ...]
    device: str
    """Device on which inputs lie and outputs must lie."""
    scalars: int
    """Number of a command's scalars that the function takes."""
    return_inputs: bool
    """Whether the inputs are copied back after each call, so that the host sees changes to them."""
    still: frozenset[int]
    """Positions of inputs whose contents aren't rotated within themselves; see rotation.py."""
    weights: frozenset[int]
    """Positions of inputs that a program would keep in a module."""
    apart: bool
    """Whether the outputs of one call may not share memory. Those of a user's own reference may."""
    updated: tuple[tuple[torch.Tensor, ...], ...]
    """Words of each set's inputs in the arena if the function returns nothing, so that these are its results."""
