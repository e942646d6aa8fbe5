"""One adopted operation: registered with torch, and what each of its calls takes."""

from collections.abc import Callable, Sequence
from threading import RLock
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn

from forge.adopt.call_key import Key, key_function
from forge.adopt.choice import CallChoice, FallbackChoice, Function
from forge.adopt.deciding import CallDecision, Decider
from forge.adopt.described import OperationForm
from forge.adopt.guards import KnownCall
from forge.adopt.own_function import Operands, OwnFunctions
from forge.adopt.refusal import Reason, WhyNot
from forge.adopt.schema import fake, torch_schema
from forge.adopt.shadow import ShadowChoice
from forge.adopt.tally import CallKind, Tally
from forge.adopt.transparent import TracedSource, marking, register_transparent
from forge.errors import AdoptionRefused

if TYPE_CHECKING:
    import torch

NAMESPACE = "forge"
MOST_CHOICES = 4096
"""Number of kinds of calls that are kept. Engines make the same few; the limit bounds memory."""
Breached = Callable[[str, dict[str, object]], None]


class Choices:
    """The choices of one generation of the registry; a newer one takes their place as a whole."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[Key, CallChoice] = {}


class AdoptedOperation:
    """One operation: its choices, and the functions that torch calls."""

    def __init__(
        self,
        described: OperationForm,
        fallback: Function,
        decider: Decider,
        tally: Tally,
        *,
        strict: bool,
        shadow: float,
        breached: Breached,
    ) -> None:
        self.described, self.fallback = described, fallback
        self._decider, self._tally = decider, tally
        self._strict, self._shadow, self._breached = strict, shadow, breached
        self._choices = Choices()
        self._lock = RLock()
        self._stopped: WhyNot | None = None
        """Why every call takes the fallback; None while kernels may run."""
        self._arity = len(described.inputs) + len(described.scalars)
        self._key = key_function(described)
        self._own = OwnFunctions(described.op, self.rule_out, tally)

    def forget(self) -> None:
        """Decide anew from the next call on."""
        self._choices = Choices()
        self._own.forget()

    def after_fork(self) -> None:
        """Let every call of a forked child take the fallback. Another thread may have held the lock."""
        self._lock = RLock()
        self._own.after_fork()
        self.stop(WhyNot("forked", "the process was forked after adopt: adopt in the child"))

    def stop(self, refusal: WhyNot | None) -> None:
        """Let every call take the fallback, or end that."""
        self._stopped = refusal
        self.forget()

    def function(self, own: Function | None) -> Function:
        """Return what a model calls in place of its own function, by default the fallback."""
        import torch

        operation: Function = getattr(getattr(torch.ops, NAMESPACE), self.described.op)
        return self._own.function(own or self.fallback, operation, len(self.described.inputs))

    def rule_out(self, operands: Operands) -> tuple[KnownCall | None, WhyNot] | None:
        """Return why no kernel could answer a call; None where the operation is called, always so in strict mode."""
        if self._stopped is not None:
            return (None, self._stopped) if self._stopped.reason == "off" else None
        return None if self._strict else self._decider.rule_out(self.described, operands)

    def on_host(self, *arguments: Any) -> object:  # Any: torch checked the schema
        """Answer a call on the host's processor."""
        if len(arguments) != self._arity:
            arguments = self.filled(arguments)
        key = self._key(*arguments)
        found = self._choices.by_key.get(key)
        if found is None:
            found = self._decided(key, arguments, None)
        return found(*arguments)

    def on_device(self, *arguments: Any) -> object:  # Any: torch checked the schema
        """Answer a call on a GPU. While a graph is captured nothing is decided or loaded."""
        if len(arguments) != self._arity:
            arguments = self.filled(arguments)
        key = self._key(*arguments)
        found = self._choices.by_key.get(key)
        if found is None:
            import torch

            if torch.cuda.is_current_stream_capturing():
                return self.refuse(
                    arguments, "unprepared_capture", "call prepare() with this shape before the capture"
                )
            found = self._decided(key, arguments, arguments[0].get_device())
        return found(*arguments)

    def elsewhere(self, *arguments: Any) -> object:  # Any: torch checked the schema
        """Answer a call on a device that has no promoted kernels."""
        return self.refuse(arguments, "tensor_type", f"device {arguments[0].device}")

    def refuse(self, arguments: Sequence[object], reason: Reason, detail: str) -> object:
        """Answer one call with the fallback and count it; in strict mode raise AdoptionRefused."""
        choice = self._fallback(WhyNot(reason, detail), None)
        return choice(*self.filled(arguments))

    def filled(self, arguments: Sequence[object]) -> tuple[object, ...]:
        """Return a call's arguments with the scalars that torch leaves out, since they equal their defaults."""
        missing = self._arity - len(arguments)
        return (*arguments, *list(self.described.scalars.values())[len(self.described.scalars) - missing :])

    def _failed(self, kernel_id: str, error: Exception, arguments: Sequence[object]) -> object:
        """Withdraw a kernel that raised an exception, and answer with the fallback if nothing was written yet."""
        import torch

        if isinstance(error, torch.OutOfMemoryError):
            raise error
        refusal = WhyNot("failed", f"{kernel_id} raised {error!r}"[:400])
        self._decider.withdrawn[kernel_id] = refusal
        self.forget()
        if self.described.updates:
            raise error
        return self.refuse(arguments, refusal.reason, refusal.detail)

    def judge(self, arguments: Sequence[object], index: int | None) -> CallDecision:
        """Return the kernel or the fallback that a call with these arguments would take, and why."""
        if self._stopped is not None:
            return CallDecision(None, None, None, (("process", self._stopped),))
        return self._decider.judge(self.described, arguments, index)

    def told(self, arguments: Sequence[object], index: int | None) -> CallDecision:
        """Return what a call would take, as far as calls before it have shown what can be loaded."""
        return self._decider.as_tried(self.judge(arguments, index))

    def traced(self, arguments: Sequence[object]) -> TracedSource | None:
        """Return the promoted source of a call that a compiler traces; None if the operation stays opaque."""
        if self._stopped is not None:
            return None
        judged = self._decider.judge_traced(self.described, arguments)
        return None if judged.backend is None else self._decider.load_traceable(self.described, judged)

    def keep_opaque(self, error: Exception) -> None:
        """Count that a compiler couldn't see the promoted source; the operation's own calls are still counted."""
        taken = CallKind(self.described.op, "", "", (), "fallback", None, None, "untraceable")
        self._tally.line(taken, repr(error)[:400]).hits.add()

    def _decided(self, key: Key, arguments: Sequence[object], index: int | None) -> CallChoice:
        with self._lock:
            choices = self._choices
            found = choices.by_key.get(key)
            if found is None:
                found = self._decide(arguments, index)
                if len(choices.by_key) >= MOST_CHOICES:
                    choices.by_key.clear()
                choices.by_key[key] = found
            return found

    def _decide(self, arguments: Sequence[object], index: int | None) -> CallChoice:
        judged = self.judge(arguments, index)
        if judged.backend is None:
            return self._fallback(judged.refusal, judged)
        loaded = self._decider.load(self.described, judged, index, self._failed)
        if isinstance(loaded, WhyNot):
            return self._fallback(loaded, judged)
        if not self._shadow:
            return loaded
        kernel_id, line = loaded.kernel_id, loaded.line
        about = line.taken._asdict() | {"shape": dict(line.taken.shape)}
        about["scalars"] = dict(zip(self.described.scalars, judged.call.scalars if judged.call else (), strict=False))
        return ShadowChoice(
            loaded,
            self.described,
            self.fallback,
            share=self._shadow,
            about=about,
            breached=lambda document: self._breached(kernel_id, document),
        )

    def _fallback(self, refusal: WhyNot, judged: CallDecision | None) -> CallChoice:
        call = judged.call if judged else None
        gpu, dtype = (call.gpu, call.dtype) if call else ("", "")
        shape = tuple(call.shape.items()) if call else ()
        kernel = judged.kernel if judged else None
        taken = CallKind(self.described.op, gpu, dtype, shape, "fallback", None, None, refusal.reason)
        line = self._tally.line(taken, refusal.detail)
        if not self._strict or refusal.reason == "off":
            return FallbackChoice(line, self.fallback, refusal)
        about = f" ({kernel.kernel_id})" if kernel else ""
        message = f"{self.described.op} takes no promoted kernel{about}: {refusal.reason}: {refusal.detail}"

        def refused(*_: object) -> NoReturn:
            raise AdoptionRefused(f"{message}; call within the evidence, or adopt without strict=True")

        return FallbackChoice(line, refused, refusal)

    def register(self, library: "torch.library.Library", *, transparent: bool) -> None:
        """Register the operation with torch: its signature, calls on each device, tracing and gradients.

        With `transparent`, a compiler sees the promoted Triton source instead of one opaque call.
        """
        import torch

        name = self.described.op
        library.define(torch_schema(self.described))
        library.impl(name, self.on_host, "CPU")
        library.impl(name, self.on_device, "CUDA")
        library.impl(name, self.elsewhere, "CompositeExplicitAutograd")
        traced = fake(self.described, self.fallback)
        traced = marking(traced) if transparent else traced
        torch.library.register_fake(f"{NAMESPACE}::{name}", traced, lib=library)
        overload = getattr(torch.ops, NAMESPACE).__getattr__(name).default
        library.impl(name, self._with_gradients(overload), "Autograd", with_keyset=True)
        if transparent:
            register_transparent(self, name, library)

    # Any: torch's operator has no type
    def _with_gradients(self, overload: Any) -> Function:
        """Return what torch calls for tensors that may ask for a gradient: then the fallback, which has one."""
        import torch

        plain = frozenset((torch.Tensor, torch.nn.Parameter))
        count, modes, grad = len(self.described.inputs), torch._C._len_torch_dispatch_stack, torch.is_grad_enabled
        after = torch._C._after_autograd_keyset
        places = [place for place, one in enumerate(self.described.inputs) if one.name in self.described.updates]
        host, device = self.on_host, self.on_device

        def call(keyset: Any, *arguments: Any) -> object:  # Any: torch checked the schema
            operands = arguments[:count]
            types = set(map(type, operands))
            if NoneType in types:  # torch lets None through
                name = self.described.inputs[[one is None for one in operands].index(True)].name
                raise TypeError(f"{self.described.op}: operand {name} is None, expected a tensor")
            if grad():
                for one in operands:
                    if one.requires_grad:
                        return self.refuse(arguments, "gradient", "a gradient is asked for")
            for place in places:
                if not arguments[place].is_inference():
                    torch.autograd.graph.increment_version(arguments[place])
            if not modes() and types <= plain:
                inner = device if operands[0].is_cuda else host if operands[0].is_cpu else None
                if inner is not None and (inner is device or not any(one.is_cuda for one in operands)):
                    with torch._C._AutoDispatchBelowAutograd():
                        return inner(*arguments)
            with torch._C._AutoDispatchBelowAutograd():
                return overload.redispatch(keyset & after, *arguments)

        return call
