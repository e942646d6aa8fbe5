"""A configuration of an autotuned kernel: the values with which it is compiled and launched."""

from typing import Annotated

from pydantic import Field, StringConstraints

from forge.domain.digest import Value

Word = Annotated[str, StringConstraints(max_length=200)]
Option = Annotated[int, Field(ge=0, le=2**31 - 1)] | None


class Configuration(Value):
    """What one `triton.Config` says, for one kernel. The names and values are the candidate's own."""

    kernel: Word
    """Name of the kernel's function."""
    values: Annotated[dict[Word, bool | int | float | Word | None], Field(max_length=64)]
    """Values of its own parameters, by name."""
    num_warps: Option = None
    num_stages: Option = None
    num_ctas: Option = None
    maxnreg: Option = None
    """Number of registers of a thread, at most; None if the compiler decides."""

    def __str__(self) -> str:
        options = {name: getattr(self, name) for name in ("num_warps", "num_stages", "num_ctas", "maxnreg")}
        said = {**self.values, **{name: value for name, value in options.items() if value is not None}}
        return f"{self.kernel}({', '.join(f'{name}={value!r}' for name, value in said.items())})"
