"""A launch plan: one call of a GPU kernel as data, without the author's host code.

It is valid for the shape, strides, alignments and scalars that it was captured with. Every address refers to an
input, an output or a workspace of the call. The other bytes of each argument are kept as captured.
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
"""Reason why a call has no launch plan.

- `foreign_kernel`: a kernel that isn't the candidate's, such as a fallback to the framework or a vendor.
- `foreign_address`: memory that isn't the call's own.
- `node`: a host function, or a copy from the host, in the graph.
- `capture_failed`: host code that can't run under capture.
- `tensor_map`: a tensor map whose address isn't known.
- `driver`: the driver refused.
- `external`: device code that calls code outside of it (prints, allocates, starts kernels).
- `too_large`: more steps or operands than a plan may have.
- `strides`: results whose layout a launcher can't provide.
"""


class Place(Value):
    """An address in an input, an output or a workspace of the call."""

    to: Memory
    index: Annotated[int, Field(ge=0, le=63)]
    offset_bytes: Bytes = 0


class Pointer(Value):
    """An address that is stored in a kernel's argument."""

    at: Annotated[int, Field(ge=0, le=4088)]
    """Offset in the argument, in bytes."""
    place: Place


class Argument(Value):
    """One argument of a kernel."""

    content: Hex
    """Captured bytes in hex. At each launch, the bytes of addresses are replaced."""
    pointers: Annotated[tuple[Pointer, ...], Field(max_length=64)] = ()


Extent = Annotated[int, Field(ge=1, le=2**31 - 1)]
Extents = tuple[Extent, Extent, Extent]


class KernelLaunch(Value):
    """One launch of a kernel of the author's device code."""

    kind: Literal["kernel"] = "kernel"
    cubin: CubinName
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_$.][A-Za-z0-9_$.]{0,1023}$")]
    grid: Extents
    block: Extents
    cluster: Extents = (1, 1, 1)
    cooperative: bool = False
    shared_bytes: Annotated[int, Field(ge=0, le=2**20)]
    """Size of the dynamic shared memory."""
    arguments: Annotated[tuple[Argument, ...], Field(max_length=256)]


class Memset(Value):
    """A fill of consecutive items with one value."""

    kind: Literal["memset"] = "memset"
    to: Place
    value: Annotated[int, Field(ge=0, le=2**32 - 1)]
    item_bytes: Literal[1, 2, 4]
    count: Annotated[int, Field(ge=1, le=2**38)]

    @property
    def size_bytes(self) -> int:
        """Number of bytes that it overwrites."""
        return self.item_bytes * self.count


class Copy(Value):
    """A copy within the device."""

    kind: Literal["copy"] = "copy"
    to: Place
    source: Place
    size_bytes: Annotated[int, Field(ge=1, le=2**40)]


Step = Annotated[KernelLaunch | Memset | Copy, Field(discriminator="kind")]


class LaunchPlan(Value):
    """The steps of one call in order, and the memory that they need besides the operands."""

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=64)]
    workspaces: Annotated[tuple[Annotated[int, Field(ge=1, le=2**36)], ...], Field(max_length=64)] = ()
    """Size of each workspace in bytes. Its content is undefined when a call begins."""
    scalars: tuple[float, ...]
    cubins: dict[CubinName, Digest]

    @property
    def kernels(self) -> tuple[KernelLaunch, ...]:
        """The launches among the steps."""
        return tuple(step for step in self.steps if isinstance(step, KernelLaunch))


class NoPlan(Value):
    """The reason why a call has no launch plan. It can still be timed by the host's clock (`host_slope`)."""

    kind: NoPlanKind
    detail: Annotated[str, StringConstraints(max_length=400)]
