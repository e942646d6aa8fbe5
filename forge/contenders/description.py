"""Reads a description file: one library, and the calls of it that answer an operation."""

import ast
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from forge.contenders.versions import Versions
from forge.domain.digest import Value
from forge.domain.misfit import misfit
from forge.domain.parsed_source import parse_source
from forge.domain.task import Name
from forge.domain.tensors import DType
from forge.errors import UsageError

FILE_LIMIT_BYTES = 1 << 20
"""Largest description file that is read, in bytes. Chosen; the limit keeps a wrong file out of memory."""
ENTRY = "contender"
"""Name of the function that the Python text of a description defines."""
ANY_OPERATION = "*"
"""Operation of a contender that compiles the reference itself."""
Line = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Short = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
CompileMode = Literal["max-autotune-no-cudagraphs"]


class Library(Value):
    """The package that contenders come from."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    """First part of its contenders' names."""
    package: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$")]
    """Name of the distribution, as pip knows it."""
    versions: Versions
    licence: Line
    homepage: Line = ""


class AxisRange(Value):
    """Sizes of one axis at which a contender applies."""

    least: Annotated[int, Field(ge=0)] = 0
    most: Annotated[int, Field(ge=0)] | None = None
    multiple_of: Annotated[int, Field(ge=1)] = 1
    is_one_of: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if self.most is not None and self.most < self.least:
            raise ValueError(f"least {self.least} is more than most {self.most}: no size fits")
        return self

    def why_not(self, axis: str, size: int) -> str | None:
        """Return in words why a size is outside; None if it is inside."""
        if size < self.least:
            return f"{axis} is {size}: expected at least {self.least}"
        if self.most is not None and size > self.most:
            return f"{axis} is {size}: expected at most {self.most}"
        if size % self.multiple_of:
            return f"{axis} is {size}: expected a multiple of {self.multiple_of}"
        if self.is_one_of and size not in self.is_one_of:
            return f"{axis} is {size}: expected one of {', '.join(map(str, self.is_one_of))}"
        return None


class Call(Value):
    """One contender of a library: where it applies, and how it is called."""

    name: Short
    operation: Name | Literal["*"]
    """Operation that it answers; `*` for any, if the reference itself is compiled."""
    devices: Annotated[tuple[Literal["cpu", "cuda"], ...], Field(min_length=1)]
    dtypes: Annotated[tuple[DType, ...], Field(min_length=1)] = ("fp32", "fp16", "bf16")
    axes: dict[str, AxisRange] = Field(default_factory=dict)
    """Sizes at which it applies, by axis; an axis that isn't named may have any size."""
    archs: tuple[Annotated[str, StringConstraints(pattern=r"^sm_[0-9]{2,3}$")], ...] = ()
    """GPU architectures on which it applies; empty for all."""
    call: str = ""
    """Python text that defines `contender(...)` with the operation's operands and scalars."""
    compile_mode: CompileMode | None = None
    """Mode of torch.compile for the reference itself, instead of a call."""
    nvcc: bool = False
    """Whether it is compiled from the package's headers when it is loaded, by the CUDA toolkit of this machine."""

    @model_validator(mode="after")
    def _is_called_in_one_way(self) -> Self:
        if bool(self.call) == (self.compile_mode is not None):
            raise ValueError("expected either `call` or `compile_mode`")
        if self.call and self.operation == ANY_OPERATION:
            raise ValueError("operation '*' has a `call`: expected one operation, or `compile_mode`")
        if self.call and ENTRY not in _functions_of(self.call):
            raise ValueError(f"`call` defines no function {ENTRY!r} at its top level")
        return self


class DescriptionFile(Value):
    """A whole description file."""

    library: Library
    contender: Annotated[tuple[Call, ...], Field(min_length=1, max_length=256)]

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        names = [f"{one.name} of {one.operation}" for one in self.contender]
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise ValueError(f"{', '.join(twice)} is described twice: expected each name once")
        return self


def parse_description(untrusted: bytes, origin: str) -> DescriptionFile:
    """Parse a description file; raise UsageError that names the file, the field and what was expected."""
    if len(untrusted) > FILE_LIMIT_BYTES:
        raise UsageError(f"{origin}: the file has {len(untrusted)} bytes: expected at most {FILE_LIMIT_BYTES}")
    try:
        document = tomllib.loads(untrusted.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{origin} can't be read as TOML: {error}; expected a library's description") from error
    try:
        return DescriptionFile.model_validate(_with_tuples(document), strict=True)
    except ValidationError as error:
        raise UsageError(f"{origin}: {misfit(error, DescriptionFile)}") from error


def why_not_applicable(call: Call, dtype: str, shape: Mapping[str, int], *, device: str, arch: str) -> str | None:
    """Return in words why a contender doesn't apply to a task; None if it does."""
    if device not in call.devices:
        return f"the device is {device}: expected {' or '.join(call.devices)}"
    if dtype not in call.dtypes:
        return f"the type is {dtype}: expected {', '.join(call.dtypes)}"
    if call.archs and arch not in call.archs:
        return f"the architecture is {arch}: expected {', '.join(call.archs)}"
    unknown = sorted(call.axes.keys() - shape.keys())
    if unknown:
        return f"it names the axis {unknown[0]!r}: expected one of {', '.join(sorted(shape))}"
    reasons = (allowed.why_not(axis, shape[axis]) for axis, allowed in call.axes.items())
    return next((reason for reason in reasons if reason is not None), None)


def _functions_of(source: str) -> set[str]:
    try:
        tree = parse_source(source, filename="call")
    except SyntaxError as error:
        raise ValueError(f"`call` isn't Python: {error}") from error
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _with_tuples(value: object) -> object:
    """Convert TOML's lists to the tuples of the fields."""
    if isinstance(value, dict):
        return {name: _with_tuples(one) for name, one in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
