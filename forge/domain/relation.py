"""Relations that must hold between several answers of one kernel, for all inputs: a closed union.

Each relation changes the inputs in a way whose exact effect on the outputs is known. The two answers may then differ
only by rounding. Inputs and outputs have the operation's names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RowsIndependent:
    """A change to one row of the inputs changes only that row of the outputs."""


@dataclass(frozen=True)
class RowsPermuted:
    """If the input rows are permuted, the output rows are permuted in the same way."""


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """If inputs and scalars are multiplied by powers of two, outputs are multiplied by powers of two.

    For a factor f = 2^k, an operand with exponent e is multiplied by f^e.
    """

    inputs: Mapping[str, int]
    scalars: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int]
    """Exponent of every output; 0: it stays the same."""


@dataclass(frozen=True)
class Additive:
    """If `input` is split into two summands, `outputs` are the sums of the two answers.

    `outputs` are those that depend linearly on this input.
    """

    input: str
    outputs: tuple[str, ...]


Relation = RowsIndependent | RowsPermuted | Scaled | Additive
