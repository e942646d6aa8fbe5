"""Defines what the lab must know of an operation's definition, so that no gate asks where the operation is from."""

import random
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from forge.domain.input_kind import InputKind
from forge.lab.observed import Case
from forge.sandbox.session import GuestFunction

Declaration = Literal["sizes", "integers", "specials", "layouts", "relations"]
"""Part of an operation's definition that its author has declared.

- `sizes`: it is defined at every size of every axis.
- `integers`: which outputs are exact on small integers.
- `specials`: what outputs are where inputs hold NaN or infinities.
- `layouts`: which layouts of inputs must be accepted, and the strides of outputs.
- `relations`: which relations hold between answers.
"""
Shape = Mapping[str, int]


class Definition(Protocol):
    """How an operation is defined: what a candidate for it may be asked, and how its reference is run."""

    @property
    def declares(self) -> frozenset[Declaration]:
        """Declarations that the operation comes with; a gate that needs another one isn't asked."""

    @property
    def records_gradients(self) -> bool:
        """Whether calls may record gradients. Parameters of a module would need some."""

    @property
    def runs_here(self) -> bool:
        """Whether the reference is Forge's own code, which may run in this process and in trusted guests."""

    @property
    def allows_libraries(self) -> bool:
        """Whether a candidate may call any library, as the reference may."""

    @property
    def outputs_apart(self) -> bool:
        """Whether each output must have memory of its own; results of a reference file may share theirs."""

    @property
    def wrap(self) -> Literal["none", "module"]:
        """Way in which a candidate's entry point is called: directly, or as a contract describes."""

    @property
    def files(self) -> Mapping[str, bytes]:
        """Files that lie beside the candidate and beside the reference in their guests."""

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the state dict that a candidate's class must have."""

    @property
    def set_bytes(self) -> int:
        """Bytes of one call's operands, several of which must fit into an arena; 0 if the usual arena has room."""

    def reference(self, *, compiled: bool = False) -> GuestFunction:
        """Return the reference in `reference.py` for a guest, plain or by torch.compile."""

    def shapes(self, public: Shape, *wanted: Shape) -> tuple[Shape, ...]:
        """Return the wanted shapes, or the public one alone if the operation isn't defined at other sizes."""

    def kinds(self, wanted: tuple[InputKind, ...]) -> tuple[InputKind, ...]:
        """Return those of the wanted kinds of values at which the operation is defined."""

    @property
    def finite_kinds(self) -> tuple[InputKind, ...]:
        """Other kinds of values, at which answers must be finite where the reference's are, and no more is asked."""

    def kept_calls(self, wanted: int, call_bytes: int) -> int:
        """Return how many calls, with operands of `call_bytes` each, keep their outputs at once: at most `wanted`."""

    @property
    def continuous(self) -> frozenset[int]:
        """Positions of the inputs that may have any value between their smallest and their largest."""

    def related(self, draw: Callable[[], Case], rng: random.Random) -> list[Case]:
        """Return questions that differ little from each other, for the same tensors. The first comes again last."""
