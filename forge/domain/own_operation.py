"""What an operation of the user's own is: a reference file by digest, and all that was inferred of it and shown.

The file is foreign code. Nothing here runs it, and nothing here is its word alone: forms come from a guest and are
parsed, ranges of values and tolerances are computed by the host from bytes that it was given.
"""

import math
from typing import Annotated, Literal

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from forge.domain.digest import Digest, Value
from forge.domain.operation import InputKind
from forge.domain.task import Name
from forge.domain.tensors import ITEMSIZE_BYTES, DType, ElementType

BATCH = "batch"
"""The one axis of an own operation: what the first tensor's first size is."""
PREFIX = "own_"
"""What the name of an own operation begins with, and no other's does."""
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
StateName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,256}$")]
Literally = Annotated[str, StringConstraints(max_length=4096)]
"""A plain Python value as it is written: numbers, text, tuples, lists, dictionaries."""
Size = Annotated[int, Field(ge=0, le=2**31)]
Sizes = Annotated[tuple[Size, ...], Field(max_length=8)]


class Uniform(Value):
    """All values from `low` to `high` alike."""

    family: Literal["uniform"] = "uniform"
    low: float
    high: float


class Normal(Value):
    """Normally distributed values."""

    family: Literal["normal"] = "normal"
    mean: float
    deviation: Annotated[float, Field(gt=0)]


class Among(Value):
    """A few values, all alike."""

    family: Literal["among"] = "among"
    values: Annotated[tuple[float, ...], Field(min_length=1, max_length=16)]


class Integers(Value):
    """Whole numbers from `low` to `high`."""

    family: Literal["integers"] = "integers"
    low: int
    high: int


class Generated(Value):
    """Values with a structure that a distribution doesn't give: the file's own get_inputs, under the host's seed."""

    family: Literal["generated"] = "generated"
    structure: str
    """What was seen of it."""


Family = Annotated[Uniform | Normal | Among | Integers | Generated, Field(discriminator="family")]


class Operand(Value):
    """A tensor among the arguments."""

    name: Word
    element: ElementType | None
    """Its own element type; None is the task's."""
    sizes: Sizes
    batched: bool = False
    """Whether its first size is the batch."""
    drawn: Family


class Constant(Value):
    """An argument that is no tensor: frozen as it is."""

    name: Word
    literal: Literally


class Weight(Value):
    """A tensor of the module's state dict, under all of its names."""

    names: Annotated[tuple[StateName, ...], Field(min_length=1, max_length=64)]
    element: ElementType | None
    sizes: Sizes
    parameter: bool
    """Whether it is a parameter; else a buffer."""


Around = Literal["all", "row", "sample", "channel"]
"""The values around one: all, those along the last axis, or those at its place on the first or second axis."""


class Local(Value):
    """That a result's errors follow the values at hand: each value's own size, and a share of those around it."""

    around: Around
    share: Annotated[float, Field(ge=0, le=1)]
    """Of the root mean square of the values around, beside the value's own size."""
    error: Annotated[float, Field(ge=0)]
    """Largest error over that size; of several seeds, rounded up to a power of two."""


class Result(Value):
    """A tensor that the reference returns."""

    element: ElementType | None
    sizes: Sizes
    batched: bool = False
    error: Annotated[float, Field(ge=0)] = 0.0
    """Largest error of the reference in the task's type, over the root mean square of its exact values; of several
    seeds, rounded up to a power of two."""
    local: Local | None = None
    """What narrows the bound further, where that error alone lets known wrong answers pass."""

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Without `local` where there is none: contracts from before it keep their digests."""
        written: dict[str, object] = write(self)
        if self.local is None:
            del written["local"]
        return written


class Contract(Value):
    """Everything that judging a candidate against a reference file needs, but for the file itself."""

    slug: Name
    source_sha256: Digest
    form: Literal["model", "function"]
    entry: Word
    init: Literally
    """What the model is constructed with."""
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    """Under which it is: what isn't in the state dict is drawn from it, in the reference and in a candidate."""
    dtype: DType
    arguments: Annotated[tuple[Operand | Constant, ...], Field(max_length=64)]
    weights: Annotated[tuple[Weight, ...], Field(max_length=4096)] = ()
    results: Annotated[tuple[Result, ...], Field(min_length=1, max_length=4)]
    kinds: tuple[InputKind, ...] = ()
    """Kinds of values beside those inferred, at which the reference stays finite."""
    batch: Size = 1
    varies: bool = False
    """Whether other batches were seen to run."""
    wide: bool = True
    """Whether the reference runs in fp64; else it is its own oracle, with a wider tolerance."""

    @property
    def tensors(self) -> tuple[Operand, ...]:
        """The arguments that are tensors."""
        return tuple(one for one in self.arguments if isinstance(one, Operand))

    @property
    def set_bytes(self) -> int:
        """All operands and results of one call, at the frozen sizes; results count in fp64."""
        operands = sum(self.bytes_of(one.element, one.sizes) for one in self.tensors)
        weights = sum(self.bytes_of(one.element, one.sizes) for one in self.weights)
        return operands + weights + sum(8 * math.prod(one.sizes) for one in self.results)

    @property
    def still(self) -> frozenset[int]:
        """Places of operands, arguments' first, whose values may not change places.

        Those with a structure, and of weights all but floating parameters.
        """
        arguments = [one.drawn.family == "generated" for one in self.tensors]
        weights = [not one.parameter or one.element is not None for one in self.weights]
        return frozenset(place for place, still in enumerate((*arguments, *weights)) if still)

    def bytes_of(self, element: ElementType | None, sizes: tuple[int, ...]) -> int:
        """Of one tensor."""
        return math.prod(sizes) * ITEMSIZE_BYTES[element or self.dtype]


def is_own(op: str) -> bool:
    """Whether an operation's name is that of somebody's own."""
    return op.startswith(PREFIX)
