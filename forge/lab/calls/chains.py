"""Follows a guest through the sets of a chain, since each call's outputs choose the next set."""

from collections.abc import Sequence
from typing import Literal

from forge.sandbox.arena import Arena, SlotSet
from forge.sandbox.reply import OUTPUTS_TOGETHER, Refused
from forge.sandbox.session import Session, next_in_chain

Reading = Literal["judged", "trusted", "unread"]
"""What the host does with a chain's outputs. Those of a `trusted` function, as a library's, may share memory with an
operand or with each other. Those of torch's own baselines and of the control are `unread`: nothing
judges them, and only their time counts."""


def followed(
    session: Session, arena: Arena, sets: Sequence[SlotSet], first: int, addresses: Sequence[Sequence[int]]
) -> list[int] | Refused:
    """Take each call's outputs from the stopped guest into the arena; return the sets of the calls, in order.

    `addresses` are those of each call's outputs, by the guest's word.
    """
    order, waiting = [first], [index for index in range(len(sets)) if index != first]
    for call in addresses:
        slots = sets[order[-1]]
        if refused := session.take(slots.outputs, call):
            return refused
        if len(order) < len(addresses):
            total = sum(arena.word_sum(slot) for slot in slots.outputs or slots.inputs)
            order.append(next_in_chain(total, waiting))
    return order


def sharing_memory(
    session: Session, one: SlotSet, addresses: Sequence[Sequence[int]], *, apart: bool
) -> Refused | None:
    """Return the refusal of a chain whose outputs share memory: with each other, or with an operand or a file.

    A kernel that maps what is there already saves the work of writing it. With `apart`, the outputs of one call may
    not share memory either. One set's slots say how long the outputs are.
    """
    spans = sorted(
        (address, address + slot.size_bytes, call)
        for call, starts in enumerate(addresses)
        for slot, address in zip(one.outputs, starts, strict=False)
        if slot.size_bytes
    )
    furthest, whose = 0, -1
    for start, end, call in spans:
        if start < furthest and (apart or call != whose):
            return Refused(OUTPUTS_TOGETHER)
        if end > furthest:
            furthest, whose = end, call
    return session.require_own_memory([(start, end) for start, end, _ in spans])
