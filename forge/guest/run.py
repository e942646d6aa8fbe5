"""Runs beside hostile code. Tensors over the shared arena, and the one loop that makes every call.

Verification and timing are made by the same lines: a candidate can't tell which calls are timed, since all
are. The outputs are copied into the arena before the reply, so that the host's clock stops on bytes it has.
"""

import mmap
from collections.abc import Callable
from dataclasses import dataclass

import torch

from . import channel, wire

Function = Callable[..., object]


@dataclass(frozen=True)
class Layout:
    """Tensors over the arena: one tuple of inputs and one of destinations for each set."""

    inputs: tuple[tuple[torch.Tensor, ...], ...]
    on_device: tuple[tuple[torch.Tensor, ...], ...]
    """The inputs themselves on a CPU; elsewhere tensors that take on their content before each call."""
    destinations: tuple[tuple[torch.Tensor, ...], ...]
    scalars: int
    """How many of a command's scalars the function takes."""


def open_arena(size_bytes: int) -> mmap.mmap:
    """Map the shared memory that the host made."""
    return mmap.mmap(wire.ARENA, size_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def lay_out(arena: mmap.mmap, body: dict[str, object], device: str) -> Layout:
    """Build the tensors that a layout command describes; offsets in bytes."""
    sets: list[dict[str, list[dict[str, object]]]] = body["sets"]  # type: ignore[assignment]  # host's JSON
    inputs = tuple(tuple(_view(arena, t) for t in one["inputs"]) for one in sets)
    return Layout(
        inputs=inputs,
        on_device=tuple(tuple(t.to(device) for t in one) for one in inputs),
        destinations=tuple(tuple(_view(arena, t) for t in one["outputs"]) for one in sets),
        scalars=int(body["scalars"]),  # type: ignore[call-overload]  # host's JSON
    )


def _view(arena: mmap.mmap, tensor: dict[str, object]) -> torch.Tensor:
    dtype = getattr(torch, str(tensor["dtype"]))
    sizes: list[int] = tensor["sizes"]  # type: ignore[assignment]  # host's JSON
    offset: int = tensor["offset"]  # type: ignore[assignment]  # host's JSON
    count = 1
    for size in sizes:
        count *= size
    if count == 0:
        return torch.empty(sizes, dtype=dtype)
    return torch.frombuffer(arena, dtype=dtype, count=count, offset=offset).view(sizes)


def run(function: Function, layout: Layout, command: channel.Go) -> None:
    """Call the function once for each set of the command, copy the outputs out, and reply."""
    scalars = command.scalars[: layout.scalars]
    retained = []
    outputs: tuple[object, ...] = ()
    for done in range(command.count):
        index = command.first + done
        returned = function(*_on_device(layout, index), *scalars)
        outputs = returned if type(returned) is tuple else (returned,)
        destinations = layout.destinations[index]
        status = _form_status(outputs, destinations)
        if status != wire.DONE:
            channel.reply(command.call_id, status, completed=done, outputs=_forms(outputs))
            return
        if command.retain:
            retained.append((destinations, outputs))
        else:
            _copy_out(destinations, outputs)
    for destinations, kept in retained:
        _copy_out(destinations, kept)
    channel.reply(command.call_id, wire.DONE, completed=command.count, outputs=_forms(outputs))


def _on_device(layout: Layout, index: int) -> tuple[torch.Tensor, ...]:
    tensors = layout.on_device[index]
    for tensor, source in zip(tensors, layout.inputs[index], strict=True):
        if tensor is not source:
            tensor.copy_(source)
    return tensors


def _copy_out(destinations: tuple[torch.Tensor, ...], outputs: tuple[object, ...]) -> None:
    for destination, output in zip(destinations, outputs, strict=True):
        destination.copy_(output)


def _forms(outputs: tuple[object, ...]) -> tuple[wire.OutputForm, ...]:
    return tuple(_form(o) for o in outputs[: wire.MAX_OUTPUTS] if type(o) is torch.Tensor)


def _form_status(outputs: tuple[object, ...], destinations: tuple[torch.Tensor, ...]) -> int:
    if len(outputs) != len(destinations):
        return wire.WRONG_TYPE
    for output, destination in zip(outputs, destinations, strict=True):
        # exactly this type: a subclass could put its work off until somebody looks
        if not isinstance(output, torch.Tensor) or type(output) is not torch.Tensor:
            return wire.WRONG_TYPE
        if output.shape != destination.shape:
            return wire.WRONG_FORM
        if output.dtype != destination.dtype:
            return wire.WRONG_ELEMENT_TYPE
    return wire.DONE


def _form(output: torch.Tensor) -> wire.OutputForm:
    sizes = tuple(output.shape)[: wire.MAX_DIMENSIONS]
    strides = tuple(output.stride())[: wire.MAX_DIMENSIONS] if output.layout == torch.strided else ()
    return wire.OutputForm(str(output.dtype).removeprefix("torch."), sizes, strides or (0,) * len(sizes))
