"""A launch plan: one call of a GPU kernel as data, without the author's host code.

It holds for the shape, strides, alignments and scalars that it was captured with. Every address is a reference to an
input, an output or a workspace of the call; the rest of each argument is kept byte for byte.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.digest import Digest, Value

Bytes = Annotated[int, Field(ge=0, le=2**40)]
CubinName = Annotated[str, StringConstraints(pattern=r"^plan[0-9]{1,2}\.cubin$")]
Hex = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})*$", max_length=2 * 4096)]
Memory = Literal["input", "output", "workspace"]
NoPlanKind = Literal[
    "foreign_kernel",
    "foreign_address",
    "node",
    "capture_failed",
    "tensor_map",
    "driver",
    "external",
    "too_large",
    "strides",
]
"""A kernel that isn't the candidate's (a fallback to the framework or a vendor); memory that isn't the call's own; a
host function or a copy from the host in the graph; host code that can't run under capture; a tensor map whose address
isn't known; the driver refused; the device code calls what isn't in it (prints, allocates, starts kernels); more
steps or operands than are taken; results that a launcher's memory can't have the form of."""


class Place(Value):
    """An address within a tensor of the call."""

    to: Memory
    index: Annotated[int, Field(ge=0, le=63)]
    offset_bytes: Bytes = 0


class Pointer(Value):
    """An address within an argument."""

    at: Annotated[int, Field(ge=0, le=4088)]
    """Bytes into the argument."""
    place: Place


class Argument(Value):
    """One argument of a kernel."""

    content: Hex
    """As captured; where an address stands, the bytes are replaced at each launch."""
    pointers: Annotated[tuple[Pointer, ...], Field(max_length=64)] = ()


Extent = Annotated[int, Field(ge=1, le=2**31 - 1)]
Extents = tuple[Extent, Extent, Extent]


class KernelLaunch(Value):
    """One launch of the author's device code."""

    kind: Literal["kernel"] = "kernel"
    cubin: CubinName
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_$.][A-Za-z0-9_$.]{0,1023}$")]
    grid: Extents
    block: Extents
    cluster: Extents = (1, 1, 1)
    cooperative: bool = False
    shared_bytes: Annotated[int, Field(ge=0, le=2**20)]
    """Dynamic shared memory."""
    arguments: Annotated[tuple[Argument, ...], Field(max_length=256)]


class Memset(Value):
    """A fill of consecutive items."""

    kind: Literal["memset"] = "memset"
    to: Place
    value: Annotated[int, Field(ge=0, le=2**32 - 1)]
    item_bytes: Literal[1, 2, 4]
    count: Annotated[int, Field(ge=1, le=2**38)]

    @property
    def size_bytes(self) -> int:
        """What it overwrites."""
        return self.item_bytes * self.count


class Copy(Value):
    """A copy within the device."""

    kind: Literal["copy"] = "copy"
    to: Place
    source: Place
    size_bytes: Annotated[int, Field(ge=1, le=2**40)]


Step = Annotated[KernelLaunch | Memset | Copy, Field(discriminator="kind")]


class LaunchPlan(Value):
    """Launches in order, and the memory that they need besides the operands."""

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=64)]
    workspaces: Annotated[tuple[Annotated[int, Field(ge=1, le=2**36)], ...], Field(max_length=64)] = ()
    """Bytes of each; their content is undefined when a call begins."""
    scalars: tuple[float, ...]
    cubins: dict[CubinName, Digest]

    @property
    def kernels(self) -> tuple[KernelLaunch, ...]:
        """The launches among the steps."""
        return tuple(step for step in self.steps if isinstance(step, KernelLaunch))


class NoPlan(Value):
    """Why a call can't be told as a launch plan; it can still be timed, by the host's clock (`host_slope`)."""

    kind: NoPlanKind
    detail: Annotated[str, StringConstraints(max_length=400)]
