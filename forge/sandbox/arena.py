"""Manages shared memory of the host: inputs go in, outputs come out, and red zones lie between the operands.

The guest maps the same bytes, and the host trusts none of them. After each call it compares those that the guest may
not write.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from forge.domain.tensors import INTEGERS, ITEMSIZE_BYTES, TORCH_NAMES, ElementType
from forge.sandbox.same_bytes import same_bytes

if TYPE_CHECKING:
    import torch

PAGE_BYTES = mmap.PAGESIZE
RED_ZONE_BYTES = PAGE_BYTES
"""Size of a red zone in bytes: a whole page, so that it can be made unreachable."""
POISON = 0xFF
"""Byte that fills outputs before a call. Every float type reads all-ones bytes as NaN, so an output that was never
written shows."""
INTEGER_POISON = 0x80
"""Byte that fills integer outputs, which have no NaN. In int8 it is -128, which symmetric quantisation never reaches;
in wider types it makes no valid index."""
Begins = Literal["at_page", "elements_in", "ends_at_page"]
"""Start of an operand: at a page's first byte, some elements later, or so that it ends at a page's last byte."""


How = Literal["one_place", "one_after_the_other", "row_by_row"]
"""The ways in which two operands lie in one piece of memory."""


@dataclass(frozen=True)
class Slot:
    """One tensor's place in the arena."""

    offset: int
    """Offset of the first element in bytes."""
    sizes: tuple[int, ...]
    dtype: ElementType
    strides: tuple[int, ...]
    """Strides in elements."""
    storage_offset: int = 0
    """Number of elements between the storage's first element and the tensor's."""
    behind: int = 0
    """Number of elements that the storage has behind the tensor's last one."""
    shares_rows: bool = False
    """Whether another operand lies between its rows."""

    @cached_property
    def span_elements(self) -> int:
        """Number of elements from the first to the last one, including those between rows."""
        if 0 in self.sizes:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))

    @cached_property
    def size_bytes(self) -> int:
        """Bytes from the first to the last element."""
        return self.span_elements * ITEMSIZE_BYTES[self.dtype]

    @cached_property
    def is_dense(self) -> bool:
        """Whether every byte of the span belongs to exactly one element, in order."""
        return self.strides == contiguous_strides(self.sizes)

    def describe(self) -> dict[str, object]:
        """Return the slot in the form of the guest's layout command."""
        return {
            "offset": self.offset - self.storage_offset * ITEMSIZE_BYTES[self.dtype],
            "storage_offset": self.storage_offset,
            "span": self.span_elements,
            "behind": self.behind,
            "sizes": list(self.sizes),
            "strides": list(self.strides),
            "dtype": TORCH_NAMES[self.dtype],
        }


@dataclass(frozen=True)
class SlotSet:
    """The operands of one call."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


@dataclass(frozen=True)
class Form:
    """Sizes, element type and layout of one operand, before it has a place."""

    sizes: tuple[int, ...]
    dtype: ElementType
    strides: tuple[int, ...] | None = None
    """Strides in elements; None if the operand is contiguous."""
    begins: Begins = "at_page"
    elements_in: int = 1
    """Number of elements before the operand, if `begins` is "elements_in"."""

    @cached_property
    def span_bytes(self) -> int:
        """Size of the operand in the arena in bytes, with its red zone."""
        slot = self.at(0)
        return _aligned(slot.offset + slot.size_bytes) + RED_ZONE_BYTES

    def at(self, page: int) -> Slot:
        """Return the operand's slot, in the pages from `page` on."""
        strides = self.strides if self.strides is not None else contiguous_strides(self.sizes)
        slot = Slot(page, self.sizes, self.dtype, strides)
        match self.begins:
            case "at_page":
                return slot
            case "elements_in":
                each = ITEMSIZE_BYTES[self.dtype]
                return replace(
                    slot,
                    offset=page + self.elements_in * each,
                    storage_offset=self.elements_in,
                    behind=RED_ZONE_BYTES // each,
                )
            case "ends_at_page":
                return replace(slot, offset=page + _aligned(slot.size_bytes) - slot.size_bytes)


@dataclass(frozen=True)
class Together:
    """Two inputs of one form in one piece of memory, by their positions."""

    first: int
    second: int
    how: How
    """Whether both are one tensor, the second begins where the first ends, or their rows lie side by side."""

    def around(self, form: Form) -> Form:
        """Return the form that holds both."""
        match self.how:
            case "one_place":
                return form
            case "one_after_the_other":
                return Form((2 * form.sizes[0], *form.sizes[1:]), form.dtype)
            case "row_by_row":
                return Form((*form.sizes[:-1], 2 * form.sizes[-1]), form.dtype)

    def slots(self, whole: Slot, form: Form) -> tuple[Slot, Slot]:
        """Return both slots in that of the form around them."""
        if self.how == "one_place":
            return whole, whole
        by_row = self.how == "row_by_row"
        first = replace(whole, sizes=form.sizes, shares_rows=by_row)
        apart = form.sizes[-1] if by_row else first.span_elements
        offset = whole.offset + apart * ITEMSIZE_BYTES[form.dtype]
        second = replace(first, offset=offset, storage_offset=whole.storage_offset + apart)
        return replace(first, behind=apart), second


@dataclass(frozen=True)
class Closed:
    """Pages of the arena that a guest may only read, or not touch at all, while a layout lasts."""

    start: int
    end: int
    access: Literal["read", "none"]


def closed_after(sets: Sequence[SlotSet], arena_bytes: int) -> tuple[Closed, ...]:
    """Return the page behind each input, and the whole arena behind the last operand, as offsets in bytes.

    A kernel that reads past the end of an input then faults, instead of reading what happens to lie there.
    """
    pages = [_aligned(slot.offset + slot.size_bytes) for one in sets for slot in one.inputs]
    end = max(_aligned(s.offset + s.size_bytes) for one in sets for s in (*one.inputs, *one.outputs)) + RED_ZONE_BYTES
    rest = (Closed(end, arena_bytes, "none"),) if end < arena_bytes else ()
    return (*(Closed(page, page + PAGE_BYTES, "none") for page in pages), *rest)


def closed_before(sets: Sequence[SlotSet]) -> tuple[Closed, ...]:
    """Return the page of `PAGE_BYTES` in front of each input, as offsets in bytes, closed to reads and writes.

    A kernel that reads before the beginning of an input then faults, instead of reading what happens to lie there.
    """
    pages = [slot.offset // PAGE_BYTES * PAGE_BYTES for one in sets for slot in one.inputs]
    return tuple(Closed(page - PAGE_BYTES, page, "none") for page in pages)


def closed_to_writing(sets: Sequence[SlotSet]) -> tuple[Closed, ...]:
    """Return the pages that inputs lie on, as offsets in bytes. A kernel that writes to an input then faults."""
    spans = [(s.offset // PAGE_BYTES * PAGE_BYTES, _aligned(s.offset + s.size_bytes)) for o in sets for s in o.inputs]
    return tuple(Closed(start, end, "read") for start, end in spans if start < end)


def contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides in elements; the last axis is the fastest."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def set_bytes(inputs: tuple[Form, ...], outputs: tuple[Form, ...]) -> int:
    """Return the size of one set of operands in bytes."""
    return sum(form.span_bytes for form in (*inputs, *outputs))


class Arena:
    """A shared memory of fixed size, with its current layout."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = _aligned(size_bytes + 2 * RED_ZONE_BYTES)
        self.descriptor = _anonymous_file(self.size_bytes)
        self._map = mmap.mmap(self.descriptor, self.size_bytes, mmap.MAP_SHARED)
        self._pattern = os.urandom(2 * RED_ZONE_BYTES)
        self._red_zones: list[tuple[int, int]] = []
        self._end = 0

    def lay_out(
        self,
        count: int,
        inputs: tuple[Form, ...],
        outputs: tuple[Form, ...],
        *,
        together: Together | None = None,
    ) -> tuple[SlotSet, ...]:
        """Place `count` sets of operands between red zones; forget the previous layout.

        The second input of `together` lies in or beside the first one; its own place stays empty.
        """
        self._red_zones = []
        cursor = self._red_zone(0, RED_ZONE_BYTES)
        sets = []
        for _ in range(count):
            placed = []
            for place, form in enumerate((*inputs, *outputs)):
                used = together.around(form) if together is not None and place == together.first else form
                slot, end = used.at(cursor), cursor + used.span_bytes
                placed.append(slot)
                self._red_zone(cursor, slot.offset)
                cursor = self._red_zone(slot.offset + slot.size_bytes, end)
            if together is not None:
                first, second = together.first, together.second
                placed[first], placed[second] = together.slots(placed[first], inputs[first])
            sets.append(SlotSet(tuple(placed[: len(inputs)]), tuple(placed[len(inputs) :])))
        self._end = cursor
        self._clear_behind_layout()
        return tuple(sets)

    def _red_zone(self, start: int, end: int) -> int:
        if end > self.size_bytes:
            raise ValueError(f"the layout needs {end} bytes, the arena has {self.size_bytes}")
        for piece in range(start, end, len(self._pattern)):  # in front of one that begins far in, there are several
            behind = min(end, piece + len(self._pattern))
            self._map[piece:behind] = self._pattern[: behind - piece]
            self._red_zones.append((piece, behind))
        return end

    def _clear_behind_layout(self) -> None:
        """Free the memory behind the layout, so that unwritten bytes stay a hole in the file."""
        if _SEES_HOLES and self._end < self.size_bytes:
            self._map.madvise(mmap.MADV_REMOVE, self._end, self.size_bytes - self._end)

    def red_zones_intact(self) -> bool:
        """Return whether the bytes between the operands and behind the last one are unchanged."""
        between = all(self._map[start:end] == self._pattern[: end - start] for start, end in self._red_zones)
        return between and self._is_clear_behind_layout()

    def _is_clear_behind_layout(self) -> bool:
        """Return whether the bytes behind the layout are a hole, or zeros after a read or in a large page.

        Without holes in files (not on Linux) this isn't checked: the bytes behind the last red zone are then
        unwatched.
        """
        position = self._end
        while _SEES_HOLES and position < self.size_bytes:
            try:
                start = os.lseek(self.descriptor, position, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole up to the end
                    return True
                raise
            position = os.lseek(self.descriptor, start, os.SEEK_HOLE)
            if self._map[start:position].strip(b"\0"):
                return False
        return True

    def write(self, slot: Slot, tensor: "torch.Tensor") -> None:
        """Copy an input, with the sizes of the slot, into the slot.

        Elements between its rows become NaN if they aren't another operand's.
        """
        if slot.shares_rows:
            self._view(slot).copy_(tensor)
        elif slot.size_bytes:
            self.bytes_of(slot).copy_(_as_bytes(slot, tensor))

    def poison(self, slot: Slot) -> None:
        """Fill an output's slot with NaN, or with a byte that is no answer."""
        if slot.size_bytes:
            self.bytes_of(slot).fill_(INTEGER_POISON if slot.dtype in INTEGERS else POISON)

    def read(self, slot: Slot) -> "torch.Tensor":
        """Return a copy of a slot's current content, with the sizes of the slot."""
        return self._view(slot).clone()

    def holds(self, slot: Slot, tensor: "torch.Tensor") -> bool:
        """Return whether a slot still has exactly the bytes of a tensor with its sizes."""
        import torch

        if slot.shares_rows:
            return same_bytes(*(one.contiguous().view(-1).view(torch.uint8) for one in (self._view(slot), tensor)))
        return slot.size_bytes == 0 or same_bytes(self.bytes_of(slot), _as_bytes(slot, tensor))

    def bytes_of(self, slot: Slot) -> "torch.Tensor":
        """Return the bytes between a slot's first and last element, uint8 [size_bytes].

        They are the memory itself, without a copy.
        """
        import torch

        return torch.frombuffer(self._map, dtype=torch.uint8, count=slot.size_bytes, offset=slot.offset)

    def memory_of(self, slot: Slot) -> memoryview:
        """Return a slot's bytes as writable memory."""
        return memoryview(self._map)[slot.offset : slot.offset + slot.size_bytes]

    def word_sum(self, slot: Slot) -> int:
        """Return the sum of a slot's bytes as 64-bit integers, modulo 2^64.

        The guest computes the same (forge/guest/word_sum.py).
        """
        import torch

        if not slot.size_bytes:
            return 0
        content = self.bytes_of(slot)
        words = content[: content.numel() // 8 * 8].view(torch.int64) if content.numel() >= 8 else content
        return int(words.sum())

    def _view(self, slot: Slot) -> "torch.Tensor":
        import torch

        dtype = getattr(torch, TORCH_NAMES[slot.dtype])
        if slot.size_bytes == 0:
            return torch.empty(slot.sizes, dtype=dtype)
        flat = torch.frombuffer(self._map, dtype=dtype, count=slot.span_elements, offset=slot.offset)
        return flat.as_strided(slot.sizes, slot.strides)

    def untrusted_bytes(self, length: int) -> bytes:
        """Return the first `length` bytes, as the guest left them."""
        return self._map[: min(length, self.size_bytes)]

    def close(self) -> None:
        """Free the memory."""
        with contextlib.suppress(BufferError):  # a tensor still uses the memory; the last one frees it
            self._map.close()
        os.close(self.descriptor)


_SEES_HOLES = hasattr(mmap, "MADV_REMOVE") and hasattr(os, "memfd_create")


def _as_bytes(slot: Slot, tensor: "torch.Tensor") -> "torch.Tensor":
    """Return the slot's span with the tensor in it, and poison between its elements."""
    import torch

    if slot.is_dense:
        return tensor.contiguous().view(-1).view(torch.uint8)
    span = torch.full((slot.size_bytes,), POISON, dtype=torch.uint8)
    at = span.view(tensor.dtype).as_strided(slot.sizes, slot.strides)
    # an expanded tensor repeats itself along an axis of stride 0: its first entry stands for all
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in slot.strides)
    at[once].copy_(tensor[once])
    return span


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


def _anonymous_file(size_bytes: int) -> int:
    """Return a file without a name: memory on Linux, an unlinked temporary file elsewhere.

    The memory's size is sealed. A guest that could shrink it would kill the host by SIGBUS at its next access.
    """
    if not hasattr(os, "memfd_create"):
        descriptor, path = tempfile.mkstemp(prefix="forge-arena-")
        os.unlink(path)
        os.ftruncate(descriptor, size_bytes)
        return descriptor
    descriptor = os.memfd_create("forge-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size_bytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor
