"""What must hold between several answers of one kernel, whatever their values: a closed union.

Each changes a question in a way whose effect on the answer is known exactly, so that the only difference between the
two answers is rounding. Inputs and outputs are named as the operation names them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RowsIndependent:
    """Changing one row of the inputs changes that row of the outputs and no other."""


@dataclass(frozen=True)
class RowsPermuted:
    """Rows in another order give the same rows in that order."""


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Inputs and scalars times powers of two give outputs times powers of two: exponents of a common factor."""

    inputs: Mapping[str, int]
    scalars: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int]
    """For every output; 0 where it stays as it is."""


@dataclass(frozen=True)
class Additive:
    """Splitting one input into two summands splits every output that depends on it alone linearly."""

    input: str
    outputs: tuple[str, ...]


Relation = RowsIndependent | RowsPermuted | Scaled | Additive
