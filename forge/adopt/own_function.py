"""Lets a model keep its own function where no kernel could answer, so that a compiler fuses it as before.

A compiler can't fuse an operation that it knows only by name. So a model calls a function that asks first. While a
program is traced, the answer is a constant, and torch guards it. After a publication that changes the answer, the
next call traces the program again. Sizes that vary aren't known by then: the operation decides on them at each call.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from forge.adopt.guards import KnownCall, KnownOperand
from forge.adopt.refusal import WhyNot
from forge.adopt.tally import CallKind, Tally

if TYPE_CHECKING:
    import torch

    Known = tuple[tuple[torch.device, torch.dtype, tuple[int, ...] | None], ...]

Function = Callable[..., object]
Operands = tuple[KnownOperand, ...]
RuledOut = Callable[[Operands], tuple[KnownCall | None, WhyNot] | None]
"""Function that says why no kernel could answer a call; None if one might."""
Counter = Callable[[], object]
Kind = tuple[object, ...]
"""Element types and devices of an eager call's tensors."""
KindFunction = Callable[..., Kind]


class _Answers:
    """Holds one attribute for each question of a traced program: whether a kernel might answer. torch guards it."""


class OwnFunctions:
    """Decides which calls of one operation stay with the model's own function, and counts them."""

    def __init__(self, op: str, rule_out: RuledOut, tally: Tally) -> None:
        self._op, self._rule_out, self._tally = op, rule_out, tally
        self._answers = _Answers()
        self._names: dict[Operands, str] = {}
        """Question of a traced program -> its attribute. torch bounds the number of programs of one function."""
        self._lock = Lock()
        """Held while an answer is found and noted, so that an older one never replaces a newer one."""
        self._counters: dict[Kind, Counter | None] = {}
        """Kind of an eager call -> its counter; None where the operation is called."""

    def forget(self) -> None:
        """Answer every question anew. Programs whose answer changed are traced again, the others aren't."""
        with self._lock:
            self._counters = {}
            for operands, name in self._names.items():
                setattr(self._answers, name, self._rule_out(operands) is None)

    def after_fork(self) -> None:
        """Replace the lock, which another thread may have held."""
        self._lock = Lock()

    def function(self, own: Function, operation: Function, inputs: int) -> Function:
        """Return the function that a model calls in place of `own`.

        It calls the operation if a kernel might answer, and `own` otherwise. `inputs` is the operation's number of
        tensors. A call with fewer arguments by place goes to the operation.
        """
        import torch

        is_compiling = torch.compiler.is_compiling
        answers, static, kind_of = self._answers, static_size(), _WRITTEN_OUT.get(inputs) or _of_first(inputs)

        def attribute(known: "Known") -> str:
            return self._ask(known)

        # torch marks a function, which a bound method doesn't let it do
        ask: Callable[[Known], str] = torch.compiler.assume_constant_result(attribute)

        def call(*arguments: Any, **named: Any) -> object:  # Any: a model's call has no types
            if len(arguments) < inputs:
                return operation(*arguments, **named)
            if not is_compiling():
                try:
                    count = self._counters[kind_of(*arguments)]
                except (KeyError, AttributeError):  # a new kind of call, or an operand that is left out
                    count = self._new_kind(arguments[:inputs], kind_of)
                if count is None:
                    return operation(*arguments, **named)
                count()
                return own(*arguments, **named)
            known = _known(arguments[:inputs], static)
            if known is not None and getattr(answers, ask(known)):
                return operation(*arguments, **named)
            return own(*arguments, **named)

        return call

    def _ask(self, known: "Known") -> str:
        """Return the attribute with the answer for a traced call, and count a program that keeps the own function."""
        operands = tuple(KnownOperand(*one) for one in known)
        with self._lock:
            name = self._names.setdefault(operands, f"question_{len(self._names)}")
            ruled_out = self._rule_out(operands)
            setattr(self._answers, name, ruled_out is None)
        if ruled_out is not None:
            self._new_counter(*ruled_out)()
        return name

    def _new_kind(self, operands: "Sequence[torch.Tensor]", kind_of: KindFunction) -> Counter | None:
        """Return the counter of an eager call that stays with the own function; None if the operation is called.

        It is kept for calls whose operands all lie on GPUs or on the processor: a kind doesn't tell other devices.
        A call elsewhere may be counted with them, and is answered rightly, since operations look again.
        """
        try:
            known = tuple([KnownOperand(one.device, one.dtype, None) for one in operands])
        except AttributeError:  # the model leaves an operand out
            return self._new_counter(None, WhyNot("tensor_type", "an operand is None"))
        counts = self._counters
        ruled_out = self._rule_out(known)
        found = None if ruled_out is None else self._new_counter(*ruled_out)
        if len({one.device.type for one in known}) == 1 and known[0].device.type in ("cpu", "cuda"):
            counts[kind_of(*operands)] = found
        return found

    def _new_counter(self, slot: KnownCall | None, why: WhyNot) -> Counter:
        gpu, dtype, shape = slot or KnownCall("", "", None)
        taken = CallKind(self._op, gpu, dtype, tuple((shape or {}).items()), "fallback", None, None, why.reason)
        return self._tally.line(taken, why.detail).hits.add


def _of_one(a: "torch.Tensor", *_: object) -> Kind:
    return a.dtype, a.get_device()


def _of_two(a: "torch.Tensor", b: "torch.Tensor", *_: object) -> Kind:
    return a.dtype, b.dtype, a.get_device(), b.get_device()


def _of_three(a: "torch.Tensor", b: "torch.Tensor", c: "torch.Tensor", *_: object) -> Kind:
    return a.dtype, b.dtype, c.dtype, a.get_device(), b.get_device(), c.get_device()


def _of_first(count: int) -> KindFunction:
    """Return a function from a call's arguments, of which the first `count` are tensors, to the call's kind."""

    def kind(*arguments: "torch.Tensor") -> Kind:
        return tuple([(one.dtype, one.get_device()) for one in arguments[:count]])

    return kind


_WRITTEN_OUT: dict[int, KindFunction] = {1: _of_one, 2: _of_two, 3: _of_three}
"""Number of tensors -> function to the call's kind. A loop costs more: in eager steps of a small model, a call that
keeps the own function took 4.2 us more than without adoption. With these it takes 2.7 us more."""


def _known(operands: "Sequence[torch.Tensor | None]", static: Callable[[object], bool]) -> "Known | None":
    """Return what is known of a traced call's operands; None if the model leaves one out."""
    known = []
    for one in operands:
        if one is None:
            return None
        sizes: tuple[int, ...] | None = tuple(one.shape)
        for size in one.shape:
            if not static(size):
                sizes = None
        known.append((one.device, one.dtype, sizes))
    return tuple(known)


def static_size() -> Callable[[object], bool]:
    """Return a function that says whether a traced size doesn't vary; without one in torch, every size may vary."""
    from torch.fx.experimental import symbolic_shapes

    found: Callable[[object], bool] | None = getattr(symbolic_shapes, "has_static_value", None)
    return found or (lambda _: False)
