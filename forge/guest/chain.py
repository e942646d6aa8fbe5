"""Runs beside hostile code. Makes a chain of timed calls: the outputs of each call choose the next set.

What the clock sees beside the calls is as little as possible, since a candidate that leaves it out saves its time. So
outputs aren't copied: they are kept, and the host reads them from this process's memory while it is stopped. What a
call must leave unchanged is read before and after a chain, by commands of their own.
"""

import contextlib
import mmap

import torch

from . import channel, memory, run, surroundings, wire, word_sum
from .layout import Layout

MADV_POPULATE_WRITE = 23
"""Advice to map all pages of a range now, to be written (Linux 5.14, include/uapi/asm-generic/mman-common.h)."""
_KEPT: list[tuple[torch.Tensor, ...]] = []
"""Outputs of the last chain's calls. They are kept until the host has read them."""


def chain(function: run.Function | None, layout: Layout, command: channel.Chain) -> None:
    """Call the function on one set after the other; the outputs of each call choose the next set.

    Without a function no call is made, and what remains is the cost of the path. The reply says where the outputs
    lie. If the command says so, they are copied to the arena before it.
    """
    scalars = command.scalars[: layout.scalars]
    outputs: tuple[object, ...] = ()
    described: tuple[wire.OutputForm, ...] = ()
    index, waiting = command.first, list(range(len(layout.inputs)))
    waiting.remove(index)
    order: list[int] = []
    for done in range(0 if function is None else command.count):
        assert function is not None, "no call is made without one"
        outputs = run.as_outputs(function(*layout.inputs[index], *scalars))
        status = run.form_status(outputs, layout.destinations[index], layout)
        if status != wire.DONE:
            channel.reply(command.call_id, status, completed=done, outputs=run.forms(outputs))
            return
        if not run.are_dense(outputs):  # the call has left work to its reader
            described = described or run.forms(outputs)
            outputs = tuple(one.contiguous() for one in outputs)  # type: ignore[attr-defined]  # its form was looked at
        _KEPT.append(outputs)
        order.append(index)
        words = map(word_sum.words, outputs) if outputs else layout.updated[index]
        index = wire.next_in_chain(sum(map(word_sum.total, words)), waiting) if waiting else index
    for asked, kept in zip(order, _KEPT, strict=True) if command.copies else ():
        run.copy_out(layout.destinations[asked], kept)
    channel.reply(
        command.call_id,
        wire.DONE,
        completed=command.count,
        outputs=described or run.forms(outputs),
        addresses=tuple(one.data_ptr() for kept in _KEPT for one in kept),
    )


def map_pages(arena: mmap.mmap, layout: Layout) -> None:
    """Map the pages of all operands, so that no call takes page faults; do nothing if the kernel can't.

    A fault takes longer than copying a page. A candidate could map them before it is timed, and no other side would.
    """
    start = torch.frombuffer(arena, dtype=torch.uint8).data_ptr()
    operands = (tensor for one in (*layout.inputs, *layout.destinations) for tensor in one)
    end = max((tensor.data_ptr() + tensor.nbytes - start for tensor in operands if tensor.numel()), default=0)
    with contextlib.suppress(OSError):
        arena.madvise(MADV_POPULATE_WRITE, 0, end)


def look_around(layout: Layout) -> surroundings.Surroundings:
    """Read what the next chain must leave unchanged; leave memory unfilled for it, and keep what is freed."""
    memory.keep_freed()
    _KEPT.clear()
    memory.fill_with(0)
    return surroundings.look(tensor for one in layout.inputs for tensor in one)


def status_after(before: surroundings.Surroundings, layout: Layout) -> int:
    """Return the status of the calls since the look: `DONE` if they changed nothing. Their outputs are freed."""
    memory.keep_freed()  # a call may have set it otherwise
    _KEPT.clear()
    return before.status_after(tensor for one in layout.inputs for tensor in one)
