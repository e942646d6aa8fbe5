"""Shared memory that the host makes: inputs go in, outputs come out, red zones lie between.

The guest maps the same bytes and is trusted with none of them: what it may not touch is compared afterwards.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from forge.domain.tensors import INTEGERS, ITEMSIZE_BYTES, TORCH_NAMES, ElementType
from forge.sandbox.same_bytes import same_bytes

if TYPE_CHECKING:
    import torch

PAGE_BYTES = mmap.PAGESIZE
RED_ZONE_BYTES = PAGE_BYTES
"""A whole page, so that it can be made unreachable."""
POISON = 0xFF
"""Every float type here reads all-ones bytes as NaN: an output that was never written shows."""
POISON_OF_INTEGERS = 0x80
"""Integers have no NaN: in int8 this is -128, which symmetric quantisation never reaches, in wider ones no index."""
Begins = Literal["at_page", "elements_in", "ends_at_page"]
"""Where an operand lies: from a page's first byte on; some elements later; or up to a page's last byte."""


@dataclass(frozen=True)
class Slot:
    """One tensor's place in the arena."""

    offset: int
    """Of the first element, in bytes."""
    sizes: tuple[int, ...]
    dtype: ElementType
    strides: tuple[int, ...]
    """In elements."""
    storage_offset: int = 0
    """Elements between the storage's first and the tensor's."""

    @property
    def span_elements(self) -> int:
        """Elements from the first to the last one, those between rows included."""
        if 0 in self.sizes:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))

    @property
    def size_bytes(self) -> int:
        """Bytes from the first to the last element."""
        return self.span_elements * ITEMSIZE_BYTES[self.dtype]

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of one element."""
        return ITEMSIZE_BYTES[self.dtype]

    @property
    def is_dense(self) -> bool:
        """Whether every byte of the span belongs to exactly one element, in order."""
        return self.strides == contiguous_strides(self.sizes)

    def describe(self) -> dict[str, object]:
        """The slot as the guest's layout command takes it."""
        return {
            "offset": self.offset - self.storage_offset * ITEMSIZE_BYTES[self.dtype],
            "storage_offset": self.storage_offset,
            "span": self.span_elements,
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
    """In elements; without them the operand is contiguous."""
    begins: Begins = "at_page"
    elements_in: int = 1
    """How many, where that is how it begins."""

    @property
    def span_bytes(self) -> int:
        """What one operand takes of the arena, its red zone included."""
        slot = self.at(0)
        return _aligned(slot.offset + slot.size_bytes) + RED_ZONE_BYTES

    def at(self, page: int) -> Slot:
        """The operand in the pages from `page` on."""
        strides = self.strides if self.strides is not None else contiguous_strides(self.sizes)
        slot = Slot(page, self.sizes, self.dtype, strides)
        match self.begins:
            case "at_page":
                return slot
            case "elements_in":
                skipped_bytes = self.elements_in * ITEMSIZE_BYTES[self.dtype]
                return replace(slot, offset=page + skipped_bytes, storage_offset=self.elements_in)
            case "ends_at_page":
                return replace(slot, offset=page + _aligned(slot.size_bytes) - slot.size_bytes)


@dataclass(frozen=True)
class Closed:
    """Pages of the arena that a guest may only read, or not touch at all, while a layout lasts."""

    start: int
    end: int
    access: Literal["read", "none"]


def closed_after(sets: Sequence[SlotSet], arena_bytes: int) -> tuple[Closed, ...]:
    """The page behind each input, and all of the arena behind the last operand."""
    pages = [_aligned(slot.offset + slot.size_bytes) for one in sets for slot in one.inputs]
    end = max(_aligned(s.offset + s.size_bytes) for one in sets for s in (*one.inputs, *one.outputs)) + RED_ZONE_BYTES
    rest = (Closed(end, arena_bytes, "none"),) if end < arena_bytes else ()
    return (*(Closed(page, page + PAGE_BYTES, "none") for page in pages), *rest)


def closed_before(sets: Sequence[SlotSet]) -> tuple[Closed, ...]:
    """The page in front of each input."""
    pages = [slot.offset // PAGE_BYTES * PAGE_BYTES for one in sets for slot in one.inputs]
    return tuple(Closed(page - PAGE_BYTES, page, "none") for page in pages)


def closed_to_writing(sets: Sequence[SlotSet]) -> tuple[Closed, ...]:
    """The pages that inputs lie on."""
    spans = [(s.offset // PAGE_BYTES * PAGE_BYTES, _aligned(s.offset + s.size_bytes)) for o in sets for s in o.inputs]
    return tuple(Closed(start, end, "read") for start, end in spans if start < end)


def contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """In elements, the last axis fastest."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def set_bytes(inputs: tuple[Form, ...], outputs: tuple[Form, ...]) -> int:
    """Bytes that one set of operands takes."""
    return sum(form.span_bytes for form in (*inputs, *outputs))


class Arena:
    """One shared memory of fixed size, and the layout it has at the moment."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = _aligned(size_bytes + 2 * RED_ZONE_BYTES)
        self.descriptor = _anonymous_file(self.size_bytes)
        self._map = mmap.mmap(self.descriptor, self.size_bytes, mmap.MAP_SHARED)
        self._pattern = os.urandom(2 * RED_ZONE_BYTES)
        self._red_zones: list[tuple[int, int]] = []
        self._end = 0

    def lay_out(self, count: int, inputs: tuple[Form, ...], outputs: tuple[Form, ...]) -> tuple[SlotSet, ...]:
        """Give `count` sets of operands their places, each between red zones; forget the layout before."""
        self._red_zones = []
        cursor = self._red_zone(0, RED_ZONE_BYTES)
        sets = []
        for _ in range(count):
            placed = []
            for form in (*inputs, *outputs):
                slot, end = form.at(cursor), cursor + form.span_bytes
                placed.append(slot)
                self._red_zone(cursor, slot.offset)
                cursor = self._red_zone(slot.offset + slot.size_bytes, end)
            sets.append(SlotSet(tuple(placed[: len(inputs)]), tuple(placed[len(inputs) :])))
        self._end = cursor
        self._empty_the_rest()
        return tuple(sets)

    def _red_zone(self, start: int, end: int) -> int:
        if end > self.size_bytes:
            raise ValueError(f"the layout needs {end} bytes, the arena has {self.size_bytes}")
        if start < end:
            self._map[start:end] = self._pattern[: end - start]
            self._red_zones.append((start, end))
        return end

    def _empty_the_rest(self) -> None:
        """Give back whatever lies behind the layout: bytes that nobody writes stay a hole in the file."""
        if _SEES_HOLES and self._end < self.size_bytes:
            self._map.madvise(mmap.MADV_REMOVE, self._end, self.size_bytes - self._end)

    def red_zones_intact(self) -> bool:
        """Whether nobody has written between the operands, or behind the last one."""
        between = all(self._map[start:end] == self._pattern[: end - start] for start, end in self._red_zones)
        return between and self._rest_is_empty()

    def _rest_is_empty(self) -> bool:
        """Whether what lies behind the layout is a hole, or zeros where a read or a large page filled it.

        Without holes in files (not Linux) nobody looks: only there the bytes behind the last red zone aren't watched.
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
        """Put an input in its place; elements between its rows read NaN."""
        if slot.size_bytes:
            self.bytes_of(slot).copy_(_as_bytes(slot, tensor))

    def poison(self, slot: Slot) -> None:
        """Fill an output's place with NaN, or with what isn't an answer."""
        if slot.size_bytes:
            self.bytes_of(slot).fill_(POISON_OF_INTEGERS if slot.dtype in INTEGERS else POISON)

    def read(self, slot: Slot) -> "torch.Tensor":
        """A copy of what stands in a slot now."""
        return self._view(slot).clone()

    def holds(self, slot: Slot, tensor: "torch.Tensor") -> bool:
        """Whether a slot still has exactly these bytes."""
        return slot.size_bytes == 0 or same_bytes(self.bytes_of(slot), _as_bytes(slot, tensor))

    def bytes_of(self, slot: Slot) -> "torch.Tensor":
        """The bytes between a slot's first and last element, as they are now: the memory itself, no copy."""
        import torch

        return torch.frombuffer(self._map, dtype=torch.uint8, count=slot.size_bytes, offset=slot.offset)

    def word_sum(self, slot: Slot) -> int:
        """The sum of a slot's bytes as 64-bit integers, modulo 2^64, as the guest forms it (forge/guest/run.py)."""
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
        """The first `length` bytes, as the guest left them."""
        return self._map[: min(length, self.size_bytes)]

    def close(self) -> None:
        """Give the memory back."""
        with contextlib.suppress(BufferError):  # a tensor still looks at it: the last one to go frees it
            self._map.close()
        os.close(self.descriptor)


_SEES_HOLES = hasattr(mmap, "MADV_REMOVE") and hasattr(os, "memfd_create")


def _as_bytes(slot: Slot, tensor: "torch.Tensor") -> "torch.Tensor":
    """The slot's span with a tensor in it, and poison wherever no element lies."""
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
    """A file without a name: memory on Linux, an unlinked temporary file elsewhere.

    The memory's size is sealed: a guest that could shrink it would end the host, by SIGBUS, at its next look.
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
