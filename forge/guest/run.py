"""Runs beside hostile code. Makes tensors over the shared arena, and makes every call in one loop.

The same lines make calls for verification and for timing. A candidate can't tell which calls are timed, since all
are. The outputs are copied into the arena before the reply, so that the host's clock stops only when it has their
bytes.
"""

import ctypes
import mmap
import random
import traceback
from collections.abc import Callable

import torch

from . import channel, guard, memory, surroundings, tensor_objects, ways, wire, word_sum
from .layout import Layout, Operand
from .retained_outputs import RetainedOutputs
from .spans import memory_status, write_to_ends

Function = Callable[..., object]
_RETAINED = RetainedOutputs()
"""Outputs that this process keeps between calls; a guest has one session in its life."""
_ARENAS: list[range] = []
"""Address ranges of the shared memory, in bytes."""
_FAR: list[ctypes.Array[ctypes.c_ubyte]] = []
"""The shared memory once more, far from the first mapping; empty where that isn't possible."""


Calls = Callable[[Function, Layout, channel.Go, surroundings.Surroundings], None]
"""Function that makes the calls of one command, and replies."""


def open_arena(size_bytes: int) -> mmap.mmap:
    """Map the shared memory of the host, here and far from here."""
    arena = mmap.mmap(wire.ARENA, size_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    start = torch.frombuffer(arena, dtype=torch.uint8).data_ptr()
    far = guard.map_far(wire.ARENA, start, size_bytes)
    _FAR.extend([] if far is None else [far])
    _ARENAS.extend(range(at, at + size_bytes) for at in (start, *map(ctypes.addressof, _FAR)))
    return arena


def lay_out(arena: mmap.mmap, body: dict[str, object], device: str) -> Layout:
    """Make the tensors that a layout command describes; its offsets are in bytes."""
    sets: list[dict[str, list[dict[str, object]]]] = body["sets"]  # type: ignore[assignment]  # host's JSON
    guard.close_pages(arena, len(arena), body["closed"])  # type: ignore[arg-type]  # host's JSON
    far = frozenset(body["far"] if _FAR else ())  # type: ignore[call-overload]  # host's JSON
    operands = _operands_in_random_order(arena, sets, device, far)
    destinations = tuple(tuple(_operand(arena, t, "cpu").tensor for t in one["outputs"]) for one in sets)
    return Layout(
        inputs=tuple(tuple(operand.tensor for operand in one) for one in operands),
        operands=operands,
        destinations=destinations,
        device=device,
        scalars=int(body["scalars"]),  # type: ignore[call-overload]  # host's JSON
        return_inputs=bool(body["return_inputs"]),
        still=frozenset(body["still"]),  # type: ignore[call-overload]  # host's JSON
        weights=frozenset(body["weights"]),  # type: ignore[call-overload]  # host's JSON
        apart=bool(body["apart"]),
        updated=tuple(
            () if outputs else tuple(word_sum.words(one.source) for one in own)
            for outputs, own in zip(destinations, operands, strict=True)
        ),
    )


def _operands_in_random_order(
    arena: mmap.mmap, sets: list[dict[str, list[dict[str, object]]]], device: str, far: frozenset[int]
) -> tuple[tuple[Operand, ...], ...]:
    """Make each set's inputs in random order.

    On a device one set's addresses then tell nothing about another's.
    """
    order = random.sample(range(len(sets)), len(sets))
    made = {index: _operands(arena, sets[index]["inputs"], device, far) for index in order}
    return tuple(made[index] for index in range(len(sets)))


def _operands(
    arena: mmap.mmap, described: list[dict[str, object]], device: str, far: frozenset[int]
) -> tuple[Operand, ...]:
    """Make the operands of a set. Two that lie in one place are one tensor."""
    made: list[Operand] = []
    for place, one in enumerate(described):
        before = described.index(one)
        there = _FAR[0] if place in far else arena
        made.append(made[before] if before < place and one["span"] else _operand(there, one, device))
    return tuple(made)


def _operand(arena: mmap.mmap | ctypes.Array[ctypes.c_ubyte], described: dict[str, object], device: str) -> Operand:
    dtype = getattr(torch, str(described["dtype"]))
    sizes: list[int] = described["sizes"]  # type: ignore[assignment]  # host's JSON
    strides: list[int] = described["strides"]  # type: ignore[assignment]  # host's JSON
    offset, span, skipped = (int(str(described[key])) for key in ("offset", "span", "storage_offset"))
    if span == 0:
        empty = torch.empty(sizes, dtype=dtype, device=device)
        return Operand(empty, empty, empty)
    source = torch.frombuffer(arena, dtype=dtype, count=skipped + span + int(str(described["behind"])), offset=offset)
    storage = source if device == "cpu" else torch.empty_like(source, device=device)
    return Operand(tensor_objects.tensor_of(storage, sizes, strides, skipped), storage, source)


def run(function: Function, layout: Layout, command: channel.Go) -> None:
    """Call the function once for each set of the command, copy the outputs out, and reply."""
    memory.fill_with(command.filling)
    kind = _run_once if command.cycles == 1 else _run_series if command.retain else _run_in_cycles
    ways.make(lambda made: _watched(kind, function, made, command), layout, command.ways)


def _watched(calls: Calls, function: Function, layout: Layout, command: channel.Go) -> None:
    """Make the calls; what one must leave as it was, it must leave so as well if it raises an exception.

    A caller that catches it goes on with the same inputs, in the same process.
    """
    inputs = _inputs_of(layout, command)
    chosen = command.ways & wire.SERVED & ~wire.Ways.COLLECTED  # a usual call collects garbage, too
    own = wire.Ways.OWN_MEMORY in command.ways  # the allocator changes the mappings around it
    before = surroundings.look(inputs, thorough=bool(chosen) and not own, in_a_row=not command.ways)
    try:
        calls(function, layout, command, before)
    except BaseException:
        for one in layout.operands[command.first : command.first + command.count] if layout.return_inputs else ():
            return_inputs(one)
        status = before.status_after(inputs)
        if status == wire.DONE:
            raise
        traceback.print_exc()
        channel.reply(command.call_id, status)


def _run_once(function: Function, layout: Layout, command: channel.Go, before: surroundings.Surroundings) -> None:
    scalars = command.scalars[: layout.scalars]
    retained: list[tuple[tuple[torch.Tensor, ...], tuple[object, ...]]] = []
    outputs: tuple[object, ...] = ()
    given = layout
    for done in range(command.count):
        index = command.first + done
        inputs = on_device(given, index)
        returned = function(*ways.passed(given, inputs, command.ways, first=not done), *scalars)
        outputs = as_outputs(returned)
        destinations = layout.destinations[index]
        status = form_status(outputs, layout.destinations[index], layout)
        if status == wire.DONE and command.retain:
            earlier = [output for _, kept in retained for output in kept]
            storages = [one.storage for one in given.operands[index]]
            status = memory_status(outputs, storages, earlier, apart=layout.apart)
        if status != wire.DONE:
            channel.reply(command.call_id, status, completed=done, outputs=forms(outputs))
            return
        if layout.return_inputs:
            return_inputs(given.operands[index])
        if command.retain:
            returned, outputs = None, _views(outputs)
            retained.append((destinations, outputs))
        else:
            copy_out(destinations, outputs)
            given = ways.handed_on(given, command.ways, index + 1, outputs)
    for destinations, kept in retained:
        copy_out(destinations, kept)
        write_to_ends(kept)
    status = before.status_after(_inputs_of(layout, command))
    if status == wire.DONE and not _RETAINED.is_intact():
        status = wire.CHANGED_AN_OUTPUT
    if command.retain:
        _RETAINED.keep([output for _, kept in retained for output in kept])
    channel.reply(command.call_id, status, completed=command.count, outputs=forms(outputs))


def _views(outputs: tuple[object, ...]) -> tuple[object, ...]:
    """Return other tensors of the same memory, as a caller often keeps them alone.

    A kernel that takes an output's memory for free once its tensor object is gone then shows.
    """
    return tuple(torch.Tensor.detach(one) if isinstance(one, torch.Tensor) else one for one in outputs)


def _inputs_of(layout: Layout, command: channel.Go) -> list[torch.Tensor]:
    return [tensor for one in layout.inputs[command.first : command.first + command.count] for tensor in one]


def _run_in_cycles(
    function: Function, layout: Layout, command: channel.Go, before: surroundings.Surroundings
) -> None:
    """Go through the sets many times, between one copy in and one copy out."""
    scalars = command.scalars[: layout.scalars]
    sets = range(command.first, command.first + command.count)
    for index in sets:
        on_device(layout, index)
    kept: list[tuple[object, ...]] = [()] * command.count
    for cycle in range(command.cycles):
        for place, index in enumerate(sets):
            returned = function(*layout.inputs[index], *scalars)
            outputs = kept[place] = as_outputs(returned)
            status = form_status(outputs, layout.destinations[index], layout)
            if status != wire.DONE:
                done = cycle * command.count + place
                channel.reply(command.call_id, status, completed=done, outputs=forms(outputs))
                return
    for index, outputs in zip(sets, kept, strict=True):
        if layout.return_inputs:
            return_inputs(layout.operands[index])
        copy_out(layout.destinations[index], outputs)
    completed = command.count * command.cycles
    status = before.status_after(_inputs_of(layout, command))
    channel.reply(command.call_id, status, completed=completed, outputs=forms(kept[-1]))


def _run_series(function: Function, layout: Layout, command: channel.Go, before: surroundings.Surroundings) -> None:
    """Call on one set many times; its destinations have an entry for each call's outputs, one behind the other."""
    scalars = command.scalars[: layout.scalars]
    inputs, destinations = on_device(layout, command.first), layout.destinations[command.first]
    places = tuple(destination[0] for destination in destinations)
    answers: list[tuple[object, ...]] = []
    for done in range(command.cycles):
        outputs = as_outputs(function(*inputs, *scalars))
        status = form_status(outputs, places, layout)
        if status != wire.DONE:
            channel.reply(command.call_id, status, completed=done, outputs=forms(outputs))
            return
        answers.append(outputs)
    for place, destination in enumerate(destinations):
        destination.copy_(torch.stack([outputs[place] for outputs in answers]))
    status = before.status_after(_inputs_of(layout, command))
    channel.reply(command.call_id, status, completed=command.cycles, outputs=forms(answers[-1]))


def as_outputs(returned: object) -> tuple[object, ...]:
    """Return a call's results as a tuple, which is empty if the call only updated its inputs."""
    if returned is None:
        return ()
    return returned if type(returned) is tuple else (returned,)


def on_device(layout: Layout, index: int) -> tuple[torch.Tensor, ...]:
    """Return a set's inputs, filled with the arena's content."""
    for operand in layout.operands[index]:
        if operand.storage is not operand.source:
            operand.storage.copy_(operand.source)
    return layout.inputs[index]


def return_inputs(operands: tuple[Operand, ...]) -> None:
    """Copy a device's inputs back into the arena, so that the host sees changes to them."""
    for operand in operands:
        if operand.storage is not operand.source:
            operand.source.copy_(operand.storage)


def copy_out(destinations: tuple[torch.Tensor, ...], outputs: tuple[object, ...]) -> None:
    """Copy a call's outputs to their places in the arena."""
    for destination, output in zip(destinations, outputs, strict=True):
        # the class's own method: a result may have one of its own that gives another tensor
        destination.copy_(torch.Tensor.detach(output))  # its form was looked at


def forms(outputs: tuple[object, ...]) -> tuple[wire.OutputForm, ...]:
    """Return the forms of the outputs that are plain tensors, for a reply."""
    return tuple(_form(o) for o in outputs[: wire.MAX_OUTPUTS] if type(o) is torch.Tensor)


def are_dense(outputs: tuple[object, ...]) -> bool:
    """Return whether all outputs are contiguous."""
    for output in outputs:  # noqa: SIM110 (timed after each call: a generator takes twice as long)
        if not output.is_contiguous():  # type: ignore[attr-defined]  # its form was looked at
            return False
    return True


def form_status(outputs: tuple[object, ...], destinations: tuple[torch.Tensor, ...], layout: Layout) -> int:
    """Return `DONE` if the outputs can be copied to their places, and otherwise what is wrong with their form."""
    if len(outputs) != len(destinations):
        return wire.WRONG_TYPE
    on_cpu = layout.device == "cpu"
    for output, destination in zip(outputs, destinations, strict=True):
        # exactly this type: a subclass could delay its work until it is read
        if not isinstance(output, torch.Tensor) or type(output) is not torch.Tensor:
            return wire.WRONG_TYPE
        # a flag that makes every reader negate or conjugate delays work as well
        if output.layout is not torch.strided or output.is_neg() or output.is_conj():
            return wire.WRONG_TYPE
        if output.shape != destination.shape:
            return wire.WRONG_FORM
        if output.dtype != destination.dtype:
            return wire.WRONG_ELEMENT_TYPE
        # asked after each of tens of thousands of calls: naming a device takes as long as all other looks together
        if not output.is_cpu if on_cpu else output.device.type != layout.device:
            return wire.WRONG_DEVICE
        if output.numel() and not (address := output.data_ptr()):  # torch's zeros without memory can't be written to
            return wire.WRONG_TYPE
        if output.numel() and _in_a_destination(address, layout):
            return wire.IN_A_DESTINATION
    return wire.DONE


def _in_a_destination(address: int, layout: Layout) -> bool:
    """Return whether an output lies where only the harness may put it: copying it there would cost nothing.

    An input lies in the shared memory as well. An output that is an input is found elsewhere.
    """
    for arena in _ARENAS:
        if address in arena:
            break
    else:
        return False
    spans = [(one.data_ptr(), one.data_ptr() + one.nbytes) for outputs in layout.destinations for one in outputs]
    return any(start <= address < end for start, end in spans)


def _form(output: torch.Tensor) -> wire.OutputForm:
    sizes = tuple(output.shape)[: wire.MAX_DIMENSIONS]
    strides = tuple(output.stride())[: wire.MAX_DIMENSIONS] if output.layout == torch.strided else ()
    return wire.OutputForm(str(output.dtype).removeprefix("torch."), sizes, strides or (0,) * len(sizes))
