"""Runs beside hostile code. Lists a captured graph's nodes in order, with every address as a reference to a tensor.

Each eight-byte word of each argument may be an address: pointers come alone (Triton), in structures and in tensor
maps. If an address belongs to none of the call's tensors, the call isn't a plan.
"""

import ctypes
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is

from .cubins import Found

_FILL = re.compile(r"vectorized_elementwise_kernelILi\d+ENS0_11FillFunctorI(N3c10\d+(?:Half|BFloat16)E|[a-z])EE")
"""Mangled name of the framework's own fill (torch.zeros, torch.full), which includes its element type."""
_FILL_BYTES = {"f": 4, "i": 4, "j": 4, "h": 1, "a": 1, "b": 1, "s": 2, "l": 8, "m": 8, "d": 8}
"""Element size in bytes by the letter of its type in a mangled name."""
_LOWEST_ADDRESS = 1 << 32
"""Address above which all device memory lies; smaller words are counts and sizes."""


class NotAPlanError(Exception):
    """The call can't be written as launches on its own tensors."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail[:300]


@dataclass
class Memory:
    """The memory that the call may refer to, as pairs of address and size in bytes."""

    inputs: Sequence[tuple[int, int]]
    outputs: Sequence[tuple[int, int]]
    pool: Sequence[tuple[int, int]]
    workspaces: list[int] = field(default_factory=list)
    """Size in bytes of each block of the pool that is referred to, without outputs."""
    _places: dict[int, int] = field(default_factory=dict)

    def reference(self, address: int) -> list[object] | None:
        """Return `[to, index, offset_bytes]`; None if the address isn't in the call's memory."""
        for to, spans in (("input", self.inputs), ("output", self.outputs)):
            for index, (start, size) in enumerate(spans):
                if start <= address < start + size:
                    return [to, index, address - start]
        for start, size in self.pool:
            if start <= address < start + size:
                if start not in self._places:
                    self._places[start] = len(self.workspaces)
                    self.workspaces.append(size)
                return ["workspace", self._places[start], address - start]
        return None

    def required(self, address: int) -> list[object]:
        """Return `[to, index, offset_bytes]`; raise NotAPlanError if the address isn't in the call's memory."""
        found = self.reference(address)
        if found is None:
            raise NotAPlanError("foreign_address", "an operation on memory that isn't the call's own")
        return found


@dataclass
class Listed:
    """A graph as data."""

    steps: list[dict[str, object]] = field(default_factory=list)
    cubins: dict[str, bytes] = field(default_factory=dict)


def steps(raw_graph: int, memory: Memory, found: Found) -> Listed:
    """List the graph; raise NotAPlanError if it holds anything that a plan can't."""
    listed = Listed()
    for node in _in_order(driver.CUgraph(raw_graph)):
        kind = _checked(driver.cuGraphNodeGetType(node))[0]
        kinds = driver.CUgraphNodeType
        if kind == kinds.CU_GRAPH_NODE_TYPE_KERNEL:
            listed.steps.append(_kernel(node, memory, found, listed.cubins))
        elif kind == kinds.CU_GRAPH_NODE_TYPE_MEMSET:
            listed.steps.append(_memset(node, memory))
        elif kind == kinds.CU_GRAPH_NODE_TYPE_MEMCPY:
            listed.steps.append(_copy(node, memory))
        elif kind != kinds.CU_GRAPH_NODE_TYPE_EMPTY:
            raise NotAPlanError("node", f"the graph has a node of the kind {kind.name}")
    return listed


# Any: the driver's bindings have no types
def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(answer[0]):
        raise NotAPlanError("driver", f"the driver answered {answer[0]!s}")
    return answer[1:]


def _in_order(graph: Any) -> list[Any]:
    count = _checked(driver.cuGraphGetNodes(graph))[-1]
    found: list[Any] = list(_checked(driver.cuGraphGetNodes(graph, count))[0]) if count else []
    edges = _checked(driver.cuGraphGetEdges(graph))[-1]
    waiting: dict[int, set[int]] = {int(node): set() for node in found}
    if edges:
        begins, ends = _checked(driver.cuGraphGetEdges(graph, edges))[:2]
        for begin, end in zip(begins, ends, strict=True):
            waiting[int(end)].add(int(begin))
    ordered: list[Any] = []
    while found:
        ready = next((node for node in found if not waiting[int(node)]), None)
        if ready is None:
            raise NotAPlanError("node", "the graph has a cycle")
        found.remove(ready)
        ordered.append(ready)
        for others in waiting.values():
            others.discard(int(ready))
    return ordered


def _kernel(node: object, memory: Memory, found: Found, cubins: dict[str, bytes]) -> dict[str, object]:
    params = driver.cuGraphKernelNodeGetParams(node)[1]
    function = params.func
    name = str(_checked(driver.cuFuncGetName(function))[0].decode())
    arguments = _arguments(function, int(params.kernelParams), memory)
    content = found.of(int(function), name)
    if content is None:
        fill = _fill(name, arguments)
        if fill is None:
            raise NotAPlanError("foreign_kernel", name)
        return fill
    file = next((one for one, known in cubins.items() if known == content), f"plan{len(cubins)}.cubin")
    cubins[file] = content
    return {
        "kind": "kernel",
        "cubin": file,
        "name": name,
        "grid": [params.gridDimX, params.gridDimY, params.gridDimZ],
        "block": [params.blockDimX, params.blockDimY, params.blockDimZ],
        "shared_bytes": params.sharedMemBytes,
        "arguments": arguments,
        **_attributes(node),
    }


def _attributes(node: object) -> dict[str, object]:
    names = driver.CUlaunchAttributeID
    cluster = driver.cuGraphKernelNodeGetAttribute(node, names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)[1]
    cooperative = driver.cuGraphKernelNodeGetAttribute(node, names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)[1]
    sizes = [cluster.clusterDim.x, cluster.clusterDim.y, cluster.clusterDim.z] if cluster is not None else [0]
    return {
        "cluster": sizes if max(sizes) > 1 else [1, 1, 1],
        "cooperative": bool(cooperative is not None and cooperative.cooperative),
    }


def _arguments(function: object, address: int, memory: Memory) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = []
    for index in range(4096):
        failed, _, size = driver.cuFuncGetParamInfo(function, index)
        if int(failed):
            break
        value = ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))[index]
        content = ctypes.string_at(value, size)
        listed.append({"content": content.hex(), "references": _references(content, memory)})
    return listed


def _references(content: bytes, memory: Memory) -> list[list[object]]:
    """Return `[at, to, index, offset_bytes]` for each word that is an address of the call's own memory."""
    references: list[list[object]] = []
    for at in range(0, len(content) - 7, 8):
        (word,) = struct.unpack_from("<Q", content, at)
        if word < _LOWEST_ADDRESS:
            continue
        reference = memory.reference(word)
        if reference is not None:
            references.append([at, *reference])
        elif _is_device_memory(word):
            raise NotAPlanError("foreign_address", "a kernel takes the address of memory that isn't the call's own")
    if len(content) == 128 and not references:
        raise NotAPlanError("tensor_map", "a tensor map without an address of the call's memory")
    return references


def _is_device_memory(word: int) -> bool:
    kinds = driver.CUpointer_attribute
    failed, _ = driver.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word)
    return not int(failed)


def _fill(name: str, arguments: list[dict[str, object]]) -> dict[str, object] | None:
    """Return the framework's fill as a memset; its arguments are a count, the value and one pointer."""
    match = _FILL.search(name)
    if match is None or len(arguments) != 3:
        return None
    item_bytes = _FILL_BYTES.get(match[1], 2)
    count = int.from_bytes(bytes.fromhex(str(arguments[0]["content"]))[:4], "little")
    value = bytes.fromhex(str(arguments[1]["content"]))[:item_bytes]
    references: list[list[object]] = arguments[2]["references"]  # type: ignore[assignment]  # made above
    if len(references) != 1 or (item_bytes == 8 and any(value)):
        return None
    width = min(item_bytes, 4)
    return {
        "kind": "memset",
        "to": references[0][1:],
        "value": int.from_bytes(value[:width], "little"),
        "item_bytes": width,
        "count": count * item_bytes // width,
    }


def _memset(node: object, memory: Memory) -> dict[str, object]:
    params = _checked(driver.cuGraphMemsetNodeGetParams(node))[0]
    if params.height > 1:
        raise NotAPlanError("node", "a memset of more than one row")
    return {
        "kind": "memset",
        "to": memory.required(int(params.dst)),
        "value": params.value,
        "item_bytes": params.elementSize,
        "count": params.width,
    }


def _copy(node: object, memory: Memory) -> dict[str, object]:
    params = _checked(driver.cuGraphMemcpyNodeGetParams(node))[0]
    device = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    unified = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    ends = {params.srcMemoryType, params.dstMemoryType}
    if params.Height > 1 or params.Depth > 1 or ends - {device, unified}:
        raise NotAPlanError("node", "a copy that isn't one piece from device to device")
    return {
        "kind": "copy",
        "to": memory.required(int(params.dstDevice)),
        "source": memory.required(int(params.srcDevice)),
        "size_bytes": params.WidthInBytes,
    }
