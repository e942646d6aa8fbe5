"""Lets torch.compile see promoted Triton sources, so that it may fuse around them and compile them into a package.

The operation stays opaque wherever that isn't possible, and in eager mode: there the judged bytes run, behind their
guards. A compiled program runs the promoted source, compiled by torch. These aren't the judged bytes, and only the
compiler's own guards protect its calls. So only what is certain while tracing is taken: sizes that don't vary, and
scalars that don't vary, in the kernel's verified domain.
"""

import secrets
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from forge.errors import EnvironmentUnfit

if TYPE_CHECKING:
    import torch

Function = Callable[..., object]


class TracedSource(NamedTuple):
    """A promoted source in a form that a compiler sees."""

    function: Function
    compiled: Callable[[], object]
    """Function to call once for each program that holds the source."""


class TracedOperation(Protocol):
    """An operation whose calls a compiler traces."""

    def filled(self, arguments: Sequence[object]) -> tuple[object, ...]:
        """Return a call's arguments with the scalars that torch leaves out."""

    def traced(self, arguments: Sequence[object]) -> TracedSource | None:
        """Return the promoted source for a traced call; None if the operation stays opaque."""

    def keep_opaque(self, error: Exception) -> None:
        """Count that the source can't be traced."""


def marking(traced: Function) -> Function:
    """Return an operation's function for tracing, which keeps torch from reusing programs on disk that hold the call.

    Their key knows the operation's name alone, so a program from another adoption may hold another source, or none.
    torch traces in the thread that compiles, and before it looks for such a program. The mark stays in that thread;
    afterwards torch compiles there what it would have found on disk. Raise EnvironmentUnfit without such marks.
    """
    import torch
    from torch.compiler import config

    if not hasattr(config, "cache_key_tag"):
        raise EnvironmentUnfit(
            f"torch {torch.__version__} has no torch.compiler.config.cache_key_tag, which keeps its programs on disk "
            'apart: upgrade torch, or adopt with mode="opaque"'
        )
    mark = f"forge {secrets.token_hex(8)}"

    def marked(*arguments: object) -> object:
        if mark not in config.cache_key_tag:
            config.cache_key_tag = f"{config.cache_key_tag} {mark}".lstrip()
        return traced(*arguments)

    return marked


def register_transparent(operation: TracedOperation, name: str, library: "torch.library.Library") -> None:
    """Let a tracing compiler run the promoted source in place of the operation, where it is a Triton kernel."""
    from torch._functorch import config
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    # Any: torch's own protocol of a mode
    def seen(mode: Any, overload: Any, types: Any, arguments: Any, keywords: Any) -> object:
        if getattr(config, "decompose_custom_triton_ops", True):  # torch.export keeps operations whole
            given = operation.filled(arguments)
            try:
                source = operation.traced(given)
                if source is not None:
                    with mode:
                        answer = source.function(*given)
                    source.compiled()
                    return answer
            except Exception as error:  # noqa: BLE001 - a source may raise at its import, or do what can't be traced
                operation.keep_opaque(error)
        return mode.__torch_dispatch__(overload, types, arguments, keywords)

    library._register_torch_dispatch_rule(name, FunctionalTensorMode, seen)


def traceable(function: Function, *, has_scalars: bool) -> Function | None:
    """Return a copy of a Triton source's function whose launches a compiler sees; None if it launches none.

    Device functions keep their own globals, since Triton reads other device functions from there. None also for a
    source with scalars that reads numbers' bits: a compiler passes scalars in fp64, Triton's own launcher in fp32.
    """
    from torch.library import wrap_triton
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if not isinstance(function, FunctionType):
        return None
    own = function.__globals__
    if has_scalars and any(isinstance(one, JITFunction) and "bitcast" in one.src for one in own.values()):
        return None
    made: dict[str, object] = dict(own)
    launched = 0
    for name, value in own.items():
        if isinstance(value, JITFunction | Autotuner):
            made[name], launched = wrap_triton(value), launched + 1
        elif isinstance(value, FunctionType) and value.__globals__ is own:
            made[name] = _with_globals(value, made)
    return _with_globals(function, made) if launched else None


def _with_globals(function: FunctionType, names: dict[str, object]) -> FunctionType:
    found = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    found.__kwdefaults__ = function.__kwdefaults__
    return found
