"""The published reference as the fallback: loaded from bytes that match their digest, never a candidate's file."""

import importlib.abc
import importlib.util
import inspect
from collections.abc import Callable

from forge.adopt.described import OperationForm
from forge.errors import BlobCorrupt, UsageError

Function = Callable[..., object]


class _Published(importlib.abc.SourceLoader):
    """Loads the published text itself, whose digest was checked, and not what a file may hold by then."""

    def __init__(self, op: str, source: bytes) -> None:
        self._op, self._source = op, source

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 (importlib's own form)
        """Return what a traceback shows as the file."""
        return f"<ops/{self._op}.py>"

    def get_data(self, path: str) -> bytes:  # noqa: ARG002 (importlib's own form)
        """Return the text."""
        return self._source


def load_reference(op: OperationForm, source: bytes) -> Function:
    """Return the reference; raise BlobCorrupt if its text has no such function."""
    loader = _Published(op.op, source)
    spec = importlib.util.spec_from_loader(f"forge_reference_{op.op}", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
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
