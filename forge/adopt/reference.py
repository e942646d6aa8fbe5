"""The published reference as the fallback: loaded from bytes that match their digest, never a candidate's file."""

import inspect
from collections.abc import Callable
from types import ModuleType

from forge.adopt.described import OperationForm
from forge.errors import BlobCorrupt, UsageError

Function = Callable[..., object]


def load_reference(op: OperationForm, source: bytes) -> Function:
    """Return the reference; raise BlobCorrupt if its text has no such function."""
    module = ModuleType(f"forge_reference_{op.op}")
    module.__dict__["__name__"] = module.__name__
    exec(compile(source, f"<ops/{op.op}.py>", "exec"), module.__dict__)  # noqa: S102 - Forge's own, by digest
    function = module.__dict__.get(op.entry)
    if not callable(function):
        raise BlobCorrupt(f"ops/{op.op}.py has no function {op.entry!r}: describe the operation again")
    found: Function = function
    return found


def require_signature(op: OperationForm, function: object) -> Function:
    """Return a caller's fallback; raise UsageError unless it can be called with the operation's arguments."""
    names = [operand.name for operand in op.inputs] + list(op.scalars)
    if not callable(function):
        raise UsageError(f"bad fallback {function!r:.100} for {op.op!r}: expected a function of {', '.join(names)}")
    try:
        inspect.signature(function).bind(*names)
    except TypeError as error:
        raise UsageError(
            f"the fallback for {op.op!r} can't be called with {len(names)} arguments ({', '.join(names)}): {error}"
        ) from error
    except ValueError:
        pass  # a builtin without a signature
    found: Function = function
    return found
