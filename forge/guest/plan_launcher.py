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
Places = dict[str, list[int]]


class LaunchError(RuntimeError):
    """The driver refused a plan's code or a launch of it."""


class PlanFunction:
    """A loaded plan; call it with the operation's operands."""

    def __init__(self, plan: Mapping[str, Any], contents: Mapping[str, bytes]) -> None:
        """Load a plan with its device code, by the names that its steps have for it."""
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes torch's context the current one
        self._outputs = [(tuple(o["sizes"]), getattr(torch, o["dtype"])) for o in plan["outputs"]]
        self._inputs = [tuple(sizes) for sizes in plan["inputs"]]
        self._scalars = tuple(plan["scalars"])
        self._workspaces: list[int] = plan["workspaces"]
        self._modules: dict[str, object] = {}
        self._described: list[dict[str, object]] = plan["steps"]
        self._contents = contents
        self._steps: list[Callable[[Places, int], None]] = []
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
        return [torch.empty(sizes, dtype=dtype, device="cuda") for sizes, dtype in self._outputs]

    def workspaces(self) -> list[torch.Tensor]:
        """Allocate memory for one call's workspaces."""
        return [torch.empty(size, dtype=torch.uint8, device="cuda") for size in self._workspaces]

    def launch(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], workspaces: Sequence[torch.Tensor]
    ) -> None:
        """Launch once on the given memory, on the current stream."""
        places = {
            "input": [one.data_ptr() for one in inputs],
            "output": [one.data_ptr() for one in outputs],
            "workspace": [one.data_ptr() for one in workspaces],
        }
        stream = torch.cuda.current_stream().cuda_stream
        for step in self._steps:
            step(places, stream)

    def reload(self) -> None:
        """Load the device code anew, with its variables at their initial values. No launch of it may be running."""
        for module in self._modules.values():
            checked(driver.cuModuleUnload(module))
        self._modules.clear()
        self._steps = [self._step(one) for one in self._described]

    def _step(self, described: dict[str, object]) -> Callable[[Places, int], None]:
        if described["kind"] == "kernel":
            function = self._function(described)
            _require_arguments(function, described["arguments"])  # type: ignore[arg-type]  # validated by the host
            return _Kernel(described, function)
        return _memset(described) if described["kind"] == "memset" else _copy(described)

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


class _Kernel:
    """One launch. Its argument buffers are made once; each call writes the addresses into them."""

    def __init__(self, described: dict[str, object], function: object) -> None:
        arguments: list[dict[str, object]] = described["arguments"]  # type: ignore[assignment]  # validated by the host
        self._function = function
        self._config = _launch_config(described)
        contents = [bytes.fromhex(str(one["content"])) for one in arguments]
        self._buffers = [ctypes.create_string_buffer(content, max(1, len(content))) for content in contents]
        self._pointers = (ctypes.c_void_p * max(1, len(contents)))(*map(ctypes.addressof, self._buffers))
        self._patches: list[tuple[int, str, int, int]] = []
        for buffer, one in zip(self._buffers, arguments, strict=True):
            for at, to, index, offset in one["references"]:  # type: ignore[attr-defined]  # validated by the host
                self._patches.append((ctypes.addressof(buffer) + at, to, index, offset))

    def __call__(self, places: Places, stream: int) -> None:
        for address, to, index, offset in self._patches:
            ctypes.c_uint64.from_address(address).value = places[to][index] + offset
        self._config.hStream = driver.CUstream(stream)
        checked(driver.cuLaunchKernelEx(self._config, self._function, ctypes.addressof(self._pointers), 0))


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


def _memset(described: dict[str, object]) -> Callable[[Places, int], None]:
    to, index, offset = _place(described["to"])
    value, count = int(str(described["value"])), int(str(described["count"]))
    fills = {1: driver.cuMemsetD8Async, 2: driver.cuMemsetD16Async, 4: driver.cuMemsetD32Async}
    fill = fills[int(str(described["item_bytes"]))]

    def run(places: Places, stream: int) -> None:
        checked(fill(places[to][index] + offset, value, count, stream))

    return run


def _copy(described: dict[str, object]) -> Callable[[Places, int], None]:
    to, index, offset = _place(described["to"])
    source, from_index, from_offset = _place(described["source"])
    size = int(str(described["size_bytes"]))

    def run(places: Places, stream: int) -> None:
        target, origin = places[to][index] + offset, places[source][from_index] + from_offset
        checked(driver.cuMemcpyDtoDAsync(target, origin, size, stream))

    return run


def _place(described: object) -> tuple[str, int, int]:
    to, index, offset = described  # type: ignore[misc]  # validated by the host
    return str(to), int(index), int(offset)  # type: ignore[has-type]  # validated by the host


def checked(answer: tuple[object, ...]) -> object:
    """Return the driver's answer without its status; raise LaunchError if the status is an error."""
    if int(answer[0]):  # type: ignore[call-overload]  # the driver's status
        raise LaunchError(f"the driver answered {answer[0]!s}")
    return answer[1] if len(answer) > 1 else None
