"""Runs beside hostile code. Makes a launch plan callable: the candidate's device code, none of its host code.

The host has validated the plan (forge/sandbox/plans.py); only the device code is hostile. Forge sets buffers, order
and arguments. A call launches on the current stream, so that it can be captured and timed like any other function.
"""

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is

_SMALL_SHARED_BYTES = 48 * 1024
"""Size in bytes up to which a kernel needs no permission for its dynamic shared memory."""
_STREAM_AT = 32
"""Offset in bytes of the stream in the driver's CUlaunchConfig: after seven 4-byte numbers, aligned to 8."""
Addresses = list[int]
"""Addresses of a call's memory: inputs, then outputs, then workspaces."""


class LaunchError(RuntimeError):
    """The driver refused a plan's code or a launch of it."""


class PlanFunction:
    """A loaded plan; call it with the operation's operands."""

    def __init__(self, plan: Mapping[str, Any], contents: Mapping[str, bytes]) -> None:
        """Load a plan with its device code, by the names that its steps have for it."""
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes torch's context the current one
        self._device = torch.cuda.current_device()
        self._allocate = _allocator()
        self._outputs = [_contiguous(o["sizes"], getattr(torch, o["dtype"])) for o in plan["outputs"]]
        self._inputs = [tuple(sizes) for sizes in plan["inputs"]]
        self._scalars = tuple(plan["scalars"])
        self._workspaces = [_contiguous([size], torch.uint8) for size in plan["workspaces"]]
        counts = {"input": len(self._inputs), "output": len(self._outputs), "workspace": len(self._workspaces)}
        self._first = {"input": 0, "output": counts["input"], "workspace": counts["input"] + counts["output"]}
        self._modules: dict[str, object] = {}
        self._described: list[dict[str, object]] = plan["steps"]
        self._contents = contents
        self._steps: list[Callable[[Addresses, int], None]] = []
        self.reload()

    @classmethod
    def read(cls, path: Path) -> "PlanFunction":
        """Load the plan in a file; its device code lies beside it. Several plans may share a folder."""
        plan = json.loads(path.read_text())
        named = {str(step["cubin"]) for step in plan["steps"] if step["kind"] == "kernel"}
        return cls(plan, {name: (path.parent / name).read_bytes() for name in named})

    def __call__(self, *operands: object) -> torch.Tensor | tuple[torch.Tensor, ...] | None:
        """Launch once; raise LaunchError for shapes or scalars that aren't the plan's."""
        tensors = [one for one in operands if isinstance(one, torch.Tensor)]
        if [tuple(one.shape) for one in tensors] != self._inputs or operands[len(tensors) :] != self._scalars:
            raise LaunchError("a plan is valid only for the shapes and scalars that it was captured with")
        outputs = self.outputs()
        self.launch(tensors, outputs, self.workspaces())
        return tuple(outputs) if len(outputs) > 1 else outputs[0] if outputs else None

    def outputs(self) -> list[torch.Tensor]:
        """Allocate memory for one call's outputs."""
        return [self._allocate(*one) for one in self._outputs]

    def workspaces(self) -> list[torch.Tensor]:
        """Allocate memory for one call's workspaces."""
        return [self._allocate(*one) for one in self._workspaces]

    def launch(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], workspaces: Sequence[torch.Tensor]
    ) -> None:
        """Launch once on the given memory, on the current stream."""
        addresses = [one.data_ptr() for one in (*inputs, *outputs, *workspaces)]
        stream = torch._C._cuda_getCurrentRawStream(self._device)
        for step in self._steps:
            step(addresses, stream)

    def reload(self) -> None:
        """Load the device code anew, with its variables at their initial values. No launch of it may be running."""
        for module in self._modules.values():
            checked(driver.cuModuleUnload(module))
        self._modules.clear()
        self._steps = [self._step(one) for one in self._described]

    def _step(self, described: dict[str, object]) -> Callable[[Addresses, int], None]:
        if described["kind"] == "kernel":
            function = self._function(described)
            _require_arguments(function, described["arguments"])  # type: ignore[arg-type]  # validated by the host
            return _Kernel(described, function, self._first)
        return _memset(described, self._first) if described["kind"] == "memset" else _copy(described, self._first)

    def _function(self, described: dict[str, object]) -> object:
        file = str(described["cubin"])
        if file not in self._modules:
            self._modules[file] = checked(driver.cuModuleLoadData(self._contents[file]))
        function = checked(driver.cuModuleGetFunction(self._modules[file], str(described["name"]).encode()))
        shared = int(str(described["shared_bytes"]))
        if shared > _SMALL_SHARED_BYTES:
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            checked(driver.cuFuncSetAttribute(function, most, shared))
        return function


def _require_arguments(function: object, arguments: Sequence[dict[str, object]]) -> None:
    """Raise LaunchError unless the arguments have the sizes in bytes that the kernel reads."""
    sizes, taken = [len(str(one["content"])) // 2 for one in arguments], []
    for index in range(len(sizes) + 1):
        failed, _, size = driver.cuFuncGetParamInfo(function, index)
        if int(failed):
            break
        taken.append(size)
    if sizes != taken:
        raise LaunchError(f"a launch has arguments of {sizes} bytes, the kernel takes {taken}")


# Any: torch's own function has no type
def _allocator() -> Callable[..., Any]:
    """Return torch's quickest function for new memory on the current device, by sizes, strides and element type."""
    try:
        quick: Callable[..., Any] = torch._C._dynamo.guards._empty_strided_cuda
    except AttributeError:
        return lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device="cuda")
    return quick


def _contiguous(sizes: Sequence[int], dtype: torch.dtype) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
    """Return sizes, strides and element type of a contiguous tensor."""
    strides, step = [1] * len(sizes), 1
    for place in reversed(range(len(sizes))):
        strides[place], step = step, step * max(1, sizes[place])
    return tuple(sizes), tuple(strides), dtype


class _Kernel:
    """One launch. Its argument buffers are made once; each call writes the addresses and the stream into them.

    The driver's function is called without its bindings, so that a launch makes no objects.
    """

    def __init__(self, described: dict[str, object], function: object, first: Mapping[str, int]) -> None:
        arguments: list[dict[str, object]] = described["arguments"]  # type: ignore[assignment]  # validated by the host
        contents = [bytes.fromhex(str(one["content"])) for one in arguments]
        self._buffers = [ctypes.create_string_buffer(content, max(1, len(content))) for content in contents]
        self._pointers = (ctypes.c_void_p * max(1, len(contents)))(*map(ctypes.addressof, self._buffers))
        self._patches: list[tuple[ctypes.c_uint64, int, int]] = []
        for buffer, one in zip(self._buffers, arguments, strict=True):
            for at, *place in one["references"]:  # type: ignore[attr-defined]  # validated by the host
                self._patches.append((ctypes.c_uint64.from_buffer(buffer, at), *_place(place, first)))
        self._config = _launch_config(described)
        config = self._config.getPtr()
        self._stream = ctypes.c_uint64.from_address(config + _STREAM_AT)
        self._stream.value = 1
        if int(self._config.hStream) != 1:
            raise LaunchError(
                "this version of cuda-bindings lays out a launch in another way; expected the stream at byte 32"
            )
        self._given = ctypes.c_void_p(config), ctypes.c_void_p(int(function)), self._pointers, None  # type: ignore[call-overload]  # the driver's handle
        self._launch = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx

    def __call__(self, addresses: Addresses, stream: int) -> None:
        for argument, index, offset in self._patches:
            argument.value = addresses[index] + offset
        self._stream.value = stream
        status = self._launch(*self._given)
        if status:
            checked((driver.CUresult(status),))


# Any: the driver's bindings have no types
def _launch_config(described: dict[str, object]) -> Any:
    grid: list[int] = described["grid"]  # type: ignore[assignment]  # validated by the host
    block: list[int] = described["block"]  # type: ignore[assignment]  # validated by the host
    cluster: list[int] = described["cluster"]  # type: ignore[assignment]  # validated by the host
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = int(str(described["shared_bytes"]))
    attributes = []
    if max(cluster) > 1:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        one.value.clusterDim.x, one.value.clusterDim.y, one.value.clusterDim.z = cluster
        attributes.append(one)
    if described["cooperative"]:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        one.value.cooperative = 1
        attributes.append(one)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _memset(described: dict[str, object], first: Mapping[str, int]) -> Callable[[Addresses, int], None]:
    index, offset = _place(described["to"], first)
    value, count = int(str(described["value"])), int(str(described["count"]))
    fills = {1: driver.cuMemsetD8Async, 2: driver.cuMemsetD16Async, 4: driver.cuMemsetD32Async}
    fill = fills[int(str(described["item_bytes"]))]

    def run(addresses: Addresses, stream: int) -> None:
        checked(fill(addresses[index] + offset, value, count, stream))

    return run


def _copy(described: dict[str, object], first: Mapping[str, int]) -> Callable[[Addresses, int], None]:
    index, offset = _place(described["to"], first)
    from_index, from_offset = _place(described["source"], first)
    size = int(str(described["size_bytes"]))

    def run(addresses: Addresses, stream: int) -> None:
        checked(
            driver.cuMemcpyDtoDAsync(addresses[index] + offset, addresses[from_index] + from_offset, size, stream)
        )

    return run


def _place(described: object, first: Mapping[str, int]) -> tuple[int, int]:
    """Return a place's position among a call's addresses, and its offset in bytes."""
    to, index, offset = described  # type: ignore[misc]  # validated by the host
    return first[str(to)] + int(index), int(offset)  # type: ignore[has-type]  # validated by the host


def checked(answer: tuple[object, ...]) -> object:
    """Return the driver's answer without its status; raise LaunchError if the status is an error."""
    if int(answer[0]):  # type: ignore[call-overload]  # the driver's status
        raise LaunchError(f"the driver answered {answer[0]!s}")
    return answer[1] if len(answer) > 1 else None
