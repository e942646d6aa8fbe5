"""A promoted launch plan, read by digest and checked again, in the form that its launcher takes.

The launcher is the one that timed the plan (`forge/guest/plan_launcher.py`): the same code sets buffers, order and
arguments. A plan that can't be replayed faithfully is refused here, before any of its code is loaded.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from forge.adopt.described import TORCH_NAMES, OperationForm
from forge.adopt.memory import alignment
from forge.errors import BlobCorrupt, LoadRefused
from forge.lookup.artifact import listed_files, read_file

if TYPE_CHECKING:
    from forge.lookup.answer import Kernel

PLAN_FILE = "plan.json"
STEPS = {
    "kernel": {
        "kind", "cubin", "name", "grid", "block", "cluster", "cooperative", "shared_bytes", "arguments",
    },
    "memset": {"kind", "to", "value", "item_bytes", "count"},
    "copy": {"kind", "to", "source", "size_bytes"},
}  # fmt: skip
"""Kind of a step -> its fields. Another kind or field is something that this version can't replay."""
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError, struct.error)
"""Errors that reading a damaged plan or cubin raises; each becomes a refusal."""
_ITEM_BYTES = {"fp64": 8, "int64": 8, "fp32": 4, "int32": 4, "fp16": 2, "bf16": 2}
"""Size of one element in bytes, by dtype."""
Document = dict[str, Any]  # a plan is JSON: this module checks it or raises


class LoadablePlan(NamedTuple):
    """A plan in the launcher's form, its device code, and what a call must have to take it."""

    launcher: Document
    cubins: Mapping[str, bytes]
    scalars: tuple[float, ...]
    alignment_bytes: int
    """Number of bytes that must divide every input's address: as it was when the plan was captured, up to 256."""


def read_plan(op: OperationForm, kernel: "Kernel", dtype: str) -> LoadablePlan | None:
    """Return a kernel's plan; None if it has none.

    Raises BlobCorrupt for bytes that aren't those promoted, LoadRefused for a plan that can't be replayed.
    """
    listed = listed_files(kernel)
    if PLAN_FILE not in listed or kernel.shape is None:
        return None
    try:
        plan = json.loads(read_file(kernel, PLAN_FILE, listed[PLAN_FILE]))
        named = {step["cubin"] for step in plan["steps"] if step["kind"] == "kernel"}
        if {name: listed.get(name) for name in named} != {name: plan["cubins"][name] for name in named}:
            raise ValueError("its device code isn't the listed one")
        cubins = {name: read_file(kernel, name, listed[name]) for name in sorted(named)}
        sizes = _bytes(op, kernel.shape, dtype, plan["workspaces"])
        for step in plan["steps"]:
            _check_step(step, sizes)
        for name, content in cubins.items():
            _require_stateless(name, content)
        return LoadablePlan(
            launcher=_launcher_form(op, plan, kernel.shape, dtype),
            cubins=cubins,
            scalars=tuple(map(float, plan["scalars"])),
            alignment_bytes=_alignment(plan["steps"]),
        )
    except _DAMAGE as error:
        raise LoadRefused(
            f"the launch plan of {kernel.kernel_id!r} can't be replayed faithfully: {str(error)[:300]}; expected "
            "kernels, fills and copies on operands of the call"
        ) from error
    except BlobCorrupt:
        raise


def _bytes(
    op: OperationForm, shape: Mapping[str, int], dtype: str, workspaces: Sequence[int]
) -> dict[str, list[int]]:
    """Return the size in bytes of every place that a step may name."""
    return {
        "input": [_size(one.sizes(shape), one.element or dtype) for one in op.inputs],
        "output": [_size(one.sizes(shape), one.element or dtype) for one in op.returned],
        "workspace": [int(size) for size in workspaces],
    }


def _size(sizes: Sequence[int], element: str) -> int:
    size = _ITEM_BYTES.get(element, 1)
    for one in sizes:
        size *= one
    return size


def _check_step(step: Document, sizes: Mapping[str, list[int]]) -> None:
    if step.get("kind") not in STEPS or set(step) != STEPS[step["kind"]]:
        raise ValueError(f"it has a step of kind {step.get('kind')!r} with the fields {sorted(step)}")
    if step["kind"] == "kernel":
        for argument in step["arguments"]:
            for pointer in argument["pointers"]:
                if pointer["at"] + 8 > len(argument["content"]) // 2:
                    raise ValueError("an address lies outside of its argument")
                _check_span(pointer["place"], 1, sizes)
        return
    length = step["size_bytes"] if step["kind"] == "copy" else step["item_bytes"] * step["count"]
    _check_span(step["to"], length, sizes)
    if step["kind"] == "copy":
        _check_span(step["source"], length, sizes)


def _check_span(place: Document, length: int, sizes: Mapping[str, list[int]]) -> None:
    index, offset = place["index"], place["offset_bytes"]
    if not (0 <= index < len(sizes[place["to"]]) and 0 <= offset <= sizes[place["to"]][index] - length):
        raise ValueError(f"an address lies outside of {place['to']} {index}")


def _launcher_form(op: OperationForm, plan: Document, shape: Mapping[str, int], dtype: str) -> Document:
    """Return the plan as the launcher takes it: places as short lists, and the operands' sizes."""
    outputs = [{"sizes": one.sizes(shape), "dtype": TORCH_NAMES[one.element or dtype]} for one in op.returned]
    return {
        "steps": [_launcher_step(step) for step in plan["steps"]],
        "workspaces": plan["workspaces"],
        "scalars": plan["scalars"],
        "inputs": [one.sizes(shape) for one in op.inputs],
        "outputs": outputs,
    }


def _launcher_step(step: Document) -> Document:
    found: Document = step | {key: _short(step[key]) for key in ("to", "source") if key in step}
    if "arguments" in step:
        found["arguments"] = [
            {
                "content": one["content"],
                "references": [[pointer["at"], *_short(pointer["place"])] for pointer in one["pointers"]],
            }
            for one in step["arguments"]
        ]
    return found


def _short(place: Document) -> list[object]:
    return [place["to"], place["index"], place["offset_bytes"]]


def _alignment(steps: Sequence[Document]) -> int:
    """Return the number of bytes, up to 256, that divided each input's address when the plan was captured."""
    low = 0
    for step in steps:
        for argument in step.get("arguments", ()):
            content = bytes.fromhex(argument["content"])
            for pointer in argument["pointers"]:
                if pointer["place"]["to"] == "input":
                    (address,) = struct.unpack_from("<Q", content, pointer["at"])
                    low |= address - pointer["place"]["offset_bytes"]
    return alignment(low)


_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def _require_stateless(name: str, cubin: bytes) -> None:
    """Raise ValueError if device code has variables that keep their values between launches.

    Compilers store texts such as library switches as initialised variables; a text is no state. Layout of the file:
    System V ABI, chapter 4.
    """
    header = _ELF_HEADER.unpack_from(cubin)
    table, entry_bytes, entries, names_index = header[6], header[11], header[12], header[13]
    if header[0][:4] != b"\x7fELF" or entry_bytes != _SECTION.size:
        raise ValueError(f"{name} is no device code")
    sections = [_SECTION.unpack_from(cubin, table + place * entry_bytes) for place in range(entries)]
    names_at = sections[names_index][4]
    for section in sections:
        begin = names_at + section[0]
        label = cubin[begin : cubin.index(b"\0", begin)]
        if not label.startswith((b".nv.global", b".nv.managed")):
            continue
        content = cubin[section[4] : section[4] + section[5]]
        is_text = label.startswith(b".nv.global.init") and all(32 <= byte < 127 or byte == 0 for byte in content)
        if section[5] and not (is_text and any(content)):
            raise ValueError(f"{name} has {section[5]} bytes of variables that keep their values between launches")
