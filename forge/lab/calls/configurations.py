"""Reads what a guest says of its autotuned kernels: how many configurations there are, and which are in use.

The host distrusts it. A guest that names too few is asked too few, and gains nothing by it. The launch plan that is
timed is judged by itself. A reader uses a configuration only if the kernel offers it.
"""

from typing import Annotated

import orjson
from pydantic import Field, StringConstraints

from forge.domain.digest import Value
from forge.lookup.tuned import CONFIGURATION_FILE
from forge.sandbox.log import harmless
from forge.sandbox.reply import ArtifactFile

MOST_BYTES = 2**16
"""Size of what a guest says, in bytes, at most. Chosen; the host parses all of it."""
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


class Configurations(Value):
    """The configurations of a guest's calls so far."""

    most: Annotated[int, Field(ge=0, le=2**31)]
    """Number of configurations from which the calls could choose, at most."""
    configurations: Annotated[tuple[Configuration, ...], Field(max_length=64)]
    """Configurations that were measured, or with which each kernel was last launched."""

    def __str__(self) -> str:
        return harmless("; ".join(map(str, self.configurations)).encode())[:400]


NONE = Configurations(most=0, configurations=())


def parse_configurations(untrusted: bytes) -> Configurations:
    """Read a guest's answer; raise ValueError for anything that no honest guest says."""
    if len(untrusted) > MOST_BYTES:
        raise ValueError(f"{len(untrusted)} bytes about configurations, expected at most {MOST_BYTES}")
    return Configurations.model_validate(orjson.loads(untrusted))


def configuration_file(configurations: tuple[Configuration, ...]) -> ArtifactFile:
    """Return the measured configurations as the file that is kept with the candidate."""
    listed = [one.model_dump(mode="json") for one in configurations]
    return ArtifactFile(CONFIGURATION_FILE, orjson.dumps(listed, option=orjson.OPT_SORT_KEYS))
