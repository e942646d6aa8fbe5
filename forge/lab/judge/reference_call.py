"""Calls a function in pure torch as an operation, to get its outputs: a reference, variant or mutant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.operations.operation import Function, Operation

if TYPE_CHECKING:
    import torch


def outputs_of(
    operation: Operation, function: Function, inputs: tuple[torch.Tensor, ...], scalars: tuple[float, ...]
) -> tuple[torch.Tensor, ...]:
    """Return every output in the operation's order, with the sizes of its signature.

    Updated inputs are copied first, and stay unchanged.
    """
    if not operation.updates:
        returned = function(*inputs, *scalars)
        assert returned is not None, "only a function that updates an input returns nothing"
        return returned if isinstance(returned, tuple) else (returned,)
    given = {
        spec.name: tensor.clone() if spec.name in operation.updates else tensor
        for spec, tensor in zip(operation.inputs, inputs, strict=True)
    }
    returned = function(*given.values(), *scalars)
    fresh = () if returned is None else returned if isinstance(returned, tuple) else (returned,)
    named = dict(zip((spec.name for spec in operation.returned), fresh, strict=True))
    return tuple(
        given[spec.name] if spec.name in operation.updates else named[spec.name] for spec in operation.outputs
    )
