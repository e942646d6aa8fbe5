"""What must hold before a promoted kernel may run: checked on the real tensors, once for each kind of calls."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from forge.adopt.described import TORCH_NAMES, OperationForm
from forge.adopt.memory import LOW_BITS, alignment, find_overlap
from forge.adopt.refusal import WhyNot
from forge.adopt.schema import call_dtype, element_type
from forge.lookup.question import slug

if TYPE_CHECKING:
    import torch

    from forge.lookup.answer import Kernel


ALIASES = {
    "h100sxm": "h100",
    "h100sxm5": "h100",
    "h10080gbhbm3": "h100",
    "h100pcie80gb": "h100pcie",
    "h100nvl94gb": "h100nvl",
    "gh20096gb": "gh200",
    "gh200480gb": "gh200",
    "a10080gb": "a100",
    "a10080gbsxm": "a100",
    "a100sxm480gb": "a100",
    "a10040gbsxm": "a10040gb",
    "a100sxm440gb": "a10040gb",
    "geforcertx4070": "rtx4070",
    "geforcertx4090": "rtx4090",
    "geforcertx5090": "rtx5090",
    "rtx6000adageneration": "rtx6000ada",
}
"""Drivers' names of GPUs -> the registry's. A test compares them with the table of processors."""
HOST_ALIGNMENT_BYTES = 64
"""Alignment of torch's own memory on the processor, in bytes. A kernel that wasn't verified with offsets had this."""


class KnownOperand(NamedTuple):
    """What is known of an operand while a compiler traces a call, or of every operand of a kind of calls."""

    device: "torch.device"
    dtype: "torch.dtype"
    sizes: tuple[int, ...] | None
    """None if they vary."""


class KnownCall(NamedTuple):
    """What a call asks the registry for, as far as it is known."""

    gpu: str
    dtype: str
    shape: dict[str, int] | None
    """None if sizes vary."""


class ExaminedCall(NamedTuple):
    """A call whose operands fit the operation: what a lookup asks by, and how its memory lies."""

    gpu: str
    """The registry's name of the device."""
    dtype: str
    shape: dict[str, int]
    layout: str
    """`contiguous`, `strided_rows`, or `other`."""
    alignment_bytes: int
    """Number of bytes that divides every address, up to 256."""
    scalars: tuple[float, ...]


def examine(op: OperationForm, arguments: Sequence[object], device_index: int | None) -> ExaminedCall | WhyNot:
    """Return the call's device, dtype, shape, layout, alignment and scalars, which a lookup asks by.

    Return a refusal if no promoted kernel could answer such a call, whatever is published. For example, an operand is
    a subclass of Tensor, or two operands share memory.
    """
    import torch

    count = len(op.inputs)
    operands: list[torch.Tensor] = list(arguments[:count])
    scalars = tuple(map(float, arguments[count:]))  # type: ignore[arg-type]  # torch checked the schema
    for one in operands:
        if type(one) not in (torch.Tensor, torch.nn.Parameter) or one.layout is not torch.strided:
            return WhyNot("tensor_type", f"an operand is a {type(one).__name__} of layout {one.layout}")
    if len({one.device for one in operands}) > 1:
        return WhyNot("devices", ", ".join(sorted({str(one.device) for one in operands})))
    fitted = _fitted(op, *_forms(operands), scalars)
    if isinstance(fitted, WhyNot):
        return fitted
    dtype, shape = fitted
    name = find_overlap(op)(operands)
    if name is not None:
        return WhyNot("overlap", f"{name} shares memory with another operand")
    gpu = "cpu" if device_index is None else gpu_name(torch.cuda.get_device_name(device_index))
    address = 0
    for one in operands:
        address |= one.data_ptr()
    return ExaminedCall(gpu, dtype, shape, _layout(operands), alignment(address), scalars)


def examine_traced(op: OperationForm, arguments: Sequence[object]) -> ExaminedCall | WhyNot:
    """Return what a call on a GPU is while a compiler traces it, when tensors have no addresses.

    Memory that torch allocates is aligned, so the operands' offsets in it say how they are aligned.
    """
    import torch

    count = len(op.inputs)
    operands: list[torch.Tensor] = list(arguments[:count])
    devices = {one.device for one in operands}
    if len(devices) > 1 or not operands[0].is_cuda:
        return WhyNot("devices", ", ".join(sorted(map(str, devices))))
    sizes = [size for one in operands for size in (*one.shape, *one.stride(), one.storage_offset())]
    if any(type(size) is not int for size in sizes):
        return WhyNot("operands", "sizes vary in the compiled program")
    if any(type(one) not in (int, float) for one in arguments[count:]):
        return WhyNot("scalars", "scalars vary in the compiled program")
    scalars = tuple(map(float, arguments[count:]))  # type: ignore[arg-type]  # checked above
    fitted = _fitted(op, *_forms(operands), scalars)
    if isinstance(fitted, WhyNot):
        return fitted
    gpu = gpu_name(torch.cuda.get_device_name(operands[0].device))
    offset = 0
    for one in operands:
        offset |= one.storage_offset() * one.element_size()
    return ExaminedCall(gpu, *fitted, _layout(operands), alignment(offset), scalars)


def known_call(op: OperationForm, operands: Sequence[KnownOperand]) -> KnownCall | WhyNot:
    """Return what a call with these operands asks for; a refusal if no promoted kernel can be for it."""
    import torch

    devices = {one.device for one in operands}
    device = operands[0].device
    if len(devices) > 1:
        return WhyNot("devices", ", ".join(sorted(map(str, devices))))
    if device.type not in ("cpu", "cuda"):
        return WhyNot("tensor_type", f"device {device}")
    dtypes, sizes = [one.dtype for one in operands], [one.sizes for one in operands if one.sizes is not None]
    shape: dict[str, int] | None = None
    if len(sizes) == len(operands):
        fitted = _fitted(op, dtypes, sizes, tuple(op.scalars.values()))
        if isinstance(fitted, WhyNot):
            return fitted
        dtype, shape = fitted
    else:
        found = _dtype(op, dtypes)
        if isinstance(found, WhyNot):
            return found
        dtype = found
    gpu = "cpu" if device.type == "cpu" else gpu_name(torch.cuda.get_device_name(device))
    return KnownCall(gpu, dtype, shape)


def _forms(operands: "list[torch.Tensor]") -> "tuple[list[torch.dtype], list[tuple[int, ...]]]":
    """Return the element type and the sizes of each operand."""
    return [one.dtype for one in operands], [tuple(one.shape) for one in operands]


def _fitted(
    op: OperationForm,
    dtypes: "Sequence[torch.dtype]",
    sizes: Sequence[tuple[int, ...]],
    scalars: Sequence[float],
) -> tuple[str, dict[str, int]] | WhyNot:
    """Return a call's element type and each axis's size, if its operands and scalars are those of the operation."""
    dtype = _dtype(op, dtypes)
    if isinstance(dtype, WhyNot):
        return dtype
    shape = op.shape_of(sizes)
    if shape is None:
        given = ", ".join(f"{one.name} {list(size)}" for one, size in zip(op.inputs, sizes, strict=True))
        return WhyNot("operands", f"these sizes don't fit together: {given}")
    outside = _outside(op, scalars)
    return (dtype, shape) if outside is None else outside


def fits_source(op: OperationForm, call: ExaminedCall, kernel: "Kernel") -> WhyNot | None:
    """Return why the promoted source wasn't verified for how the call's memory lies; None if it was."""
    declared = kernel.domain
    layouts = op.layouts if declared is None or declared.layouts is None else frozenset(declared.layouts)
    if call.layout not in layouts:
        return WhyNot("layout", f"{call.layout}; {kernel.kernel_id} was verified with {', '.join(sorted(layouts))}")
    asked = 1 if declared is None else declared.alignment_bytes
    if asked == 1 and "offset" not in layouts:
        asked = HOST_ALIGNMENT_BYTES if call.gpu == "cpu" else LOW_BITS + 1
    if call.alignment_bytes % asked:
        return WhyNot("alignment", f"{call.alignment_bytes} bytes; {kernel.kernel_id} asks for {asked}")
    return None


def _dtype(op: OperationForm, dtypes: "Sequence[torch.dtype]") -> str | WhyNot:
    names = {f"torch.{theirs}": ours for ours, theirs in TORCH_NAMES.items()}
    common = call_dtype(op, dtypes)
    dtype = op.dtypes[0] if common is None and len(op.dtypes) == 1 else names.get(str(common))
    if dtype not in op.dtypes:
        return WhyNot("dtype", f"{common}, expected one of {', '.join(op.dtypes)}")
    for operand, given in zip(op.inputs, dtypes, strict=True):
        if given != element_type(operand, common or given):
            return WhyNot("dtype", f"{operand.name} has {given}")
    return dtype


def _outside(op: OperationForm, scalars: Sequence[float]) -> WhyNot | None:
    """Return a refusal for a scalar beyond the verified values: zero, a part of the default, and one more than it."""
    for (name, default), value in zip(op.scalars.items(), scalars, strict=True):
        least, most = min(0.0, default), max(0.0, default + 1)
        if not (math.isfinite(value) and least <= value <= most):
            return WhyNot("scalars", f"{name} is {value!r}, verified from {least!r} to {most!r}")
    return None


def _layout(operands: "list[torch.Tensor]") -> str:
    if all(one.is_contiguous() for one in operands):
        return "contiguous"
    wide = [one for one in operands if one.dim() > 1]
    rows = all(one.dim() == 2 and one.stride(1) == 1 and one.stride(0) > one.shape[1] for one in wide)
    return "strided_rows" if rows and all(one.is_contiguous() for one in operands if one.dim() < 2) else "other"


def gpu_name(driver_name: str) -> str:
    """Return the registry's name of a GPU from the driver's."""
    plain = slug(driver_name)
    return ALIASES.get(plain, plain)
