"""Shared memory that the host makes: inputs go in, outputs come out, red zones lie between.

The guest maps the same bytes and is trusted with none of them: what it may not touch is compared afterwards.
"""

import contextlib
import fcntl
import mmap
import os
import tempfile
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from forge.domain.tensors import ITEMSIZE_BYTES, DType

if TYPE_CHECKING:
    import torch

RED_ZONE_BYTES = 4096
POISON = 0xFF
"""Every element type here reads all-ones bytes as NaN: an output that was never written shows."""
TORCH_NAMES: dict[DType, str] = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Slot:
    """One tensor's place in the arena."""

    offset: int
    sizes: tuple[int, ...]
    dtype: DType

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, contiguous."""
        return prod(self.sizes) * ITEMSIZE_BYTES[self.dtype]

    def describe(self) -> dict[str, object]:
        """The slot as the guest's layout command takes it."""
        return {"offset": self.offset, "sizes": list(self.sizes), "dtype": TORCH_NAMES[self.dtype]}


@dataclass(frozen=True)
class SlotSet:
    """The operands of one call."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


@dataclass(frozen=True)
class Form:
    """Sizes and element type of one operand, before it has a place."""

    sizes: tuple[int, ...]
    dtype: DType

    @property
    def span_bytes(self) -> int:
        """What one operand takes of the arena, its red zone included."""
        content = prod(self.sizes) * ITEMSIZE_BYTES[self.dtype]
        return _aligned(content + RED_ZONE_BYTES)


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

    def lay_out(self, count: int, inputs: tuple[Form, ...], outputs: tuple[Form, ...]) -> tuple[SlotSet, ...]:
        """Give `count` sets of operands their places, each between red zones; forget the layout before."""
        self._red_zones = []
        cursor = self._red_zone(0, RED_ZONE_BYTES)
        sets = []
        for _ in range(count):
            placed = []
            for form in (*inputs, *outputs):
                slot = Slot(cursor, form.sizes, form.dtype)
                placed.append(slot)
                cursor = self._red_zone(cursor + slot.size_bytes, cursor + form.span_bytes)
            sets.append(SlotSet(tuple(placed[: len(inputs)]), tuple(placed[len(inputs) :])))
        return tuple(sets)

    def _red_zone(self, start: int, end: int) -> int:
        if end > self.size_bytes:
            raise ValueError(f"the layout needs {end} bytes, the arena has {self.size_bytes}")
        self._map[start:end] = self._pattern[: end - start]
        self._red_zones.append((start, end))
        return end

    def red_zones_intact(self) -> bool:
        """Whether nobody has written between the operands."""
        return all(self._map[start:end] == self._pattern[: end - start] for start, end in self._red_zones)

    def write(self, slot: Slot, tensor: "torch.Tensor") -> None:
        """Put an input in its place."""
        if slot.size_bytes:
            self._view(slot).copy_(tensor)

    def poison(self, slot: Slot) -> None:
        """Fill an output's place with NaN."""
        if slot.size_bytes:
            self._bytes(slot).fill_(POISON)

    def read(self, slot: Slot) -> "torch.Tensor":
        """A copy of what stands in a slot now."""
        return self._view(slot).clone()

    def holds(self, slot: Slot, tensor: "torch.Tensor") -> bool:
        """Whether a slot still has exactly these bytes."""
        import torch

        if slot.size_bytes == 0:
            return True
        given = tensor.contiguous().view(torch.uint8).view(-1)
        return bool(torch.equal(self._bytes(slot), given))

    def _bytes(self, slot: Slot) -> "torch.Tensor":
        import torch

        return torch.frombuffer(self._map, dtype=torch.uint8, count=slot.size_bytes, offset=slot.offset)

    def _view(self, slot: Slot) -> "torch.Tensor":
        import torch

        dtype = getattr(torch, TORCH_NAMES[slot.dtype])
        if slot.size_bytes == 0:
            return torch.empty(slot.sizes, dtype=dtype)
        flat = torch.frombuffer(self._map, dtype=dtype, count=prod(slot.sizes), offset=slot.offset)
        return flat.view(slot.sizes)

    def untrusted_bytes(self, length: int) -> bytes:
        """The first `length` bytes, as the guest left them."""
        return self._map[:length]

    def close(self) -> None:
        """Give the memory back."""
        with contextlib.suppress(BufferError):  # a tensor still looks at it: the last one to go frees it
            self._map.close()
        os.close(self.descriptor)


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // 4096) * 4096


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
