"""Runs beside hostile code. What a call must leave as it found it beside the bytes of operands: forms, and settings.

A program that serves requests calls a kernel with tensors that it keeps, and goes on in the same process.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from . import wire

_ONE, _MORE, _LESS, _SMALLEST = 1.0, 3 * 2.0**-54, 2.0**-54, 5e-324
"""The second rounds up to the next number when it is added to one, the third down to one."""
Form = tuple[object, ...]


@dataclass(frozen=True)
class Surroundings:
    """What is looked at before and after."""

    forms: tuple[Form, ...]
    settings: tuple[object, ...]

    def status_after(self, inputs: Iterable[torch.Tensor]) -> int:
        """How a release of calls ends that left something else behind."""
        after = look(inputs)
        if after.forms != self.forms:
            return wire.CHANGED_AN_INPUT
        return wire.DONE if after.settings == self.settings else wire.CHANGED_A_SETTING


def look(inputs: Iterable[torch.Tensor]) -> Surroundings:
    """The tensors' forms, and the process's settings, as they are now."""
    return Surroundings(tuple(map(_form, inputs)), _settings())


def _form(tensor: torch.Tensor) -> Form:
    where = (tensor.shape, tensor.stride(), tensor.data_ptr(), tensor.dtype)
    return type(tensor), *where, tensor.requires_grad, tensor.is_neg(), tensor.is_conj()


def _settings() -> tuple[object, ...]:
    return (
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.initial_seed(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        _arithmetic(),
    )


def _arithmetic() -> bytes:
    """How this thread rounds, and whether subnormal numbers are zeros to it: then they compare as zeros as well."""
    return struct.pack("4d", _ONE + _MORE, _ONE + _LESS, -_ONE - _LESS, _SMALLEST * _ONE)
