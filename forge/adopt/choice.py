"""What one kind of calls takes: a launch plan, the promoted source, or the fallback. It is made once and kept."""

from collections.abc import Callable, Sequence
from typing import Protocol

from forge.adopt.refusal import WhyNot
from forge.adopt.tally import TallyLine

Function = Callable[..., object]
Failed = Callable[[str, Exception, Sequence[object]], object]
"""Function that answers a call whose kernel raised: from the kernel's id, the exception and the operands."""


class CallChoice(Protocol):
    """A kind of calls: call it with the operands."""

    line: TallyLine

    def __call__(self, *arguments: object) -> object:
        """Answer one call and count it."""


class FallbackChoice:
    """Calls that no promoted kernel may answer."""

    __slots__ = ("_count", "_function", "line", "refusal")

    def __init__(self, line: TallyLine, function: Function, refusal: WhyNot) -> None:
        self.line, self.refusal = line, refusal
        self._count, self._function = line.hits.add, function

    def __call__(self, *arguments: object) -> object:
        """Answer one call and count it."""
        self._count()
        return self._function(*arguments)


class HostChoice:
    """Calls that a promoted source answers on the host's processor."""

    __slots__ = ("_count", "_failed", "_function", "kernel_id", "line")

    def __init__(self, line: TallyLine, function: Function, kernel_id: str, failed: Failed) -> None:
        self.line, self.kernel_id = line, kernel_id
        self._count, self._function, self._failed = line.hits.add, function, failed

    def __call__(self, *arguments: object) -> object:
        """Answer one call and count it."""
        self._count()
        try:
            return self._function(*arguments)
        except Exception as error:  # noqa: BLE001 - promoted code may raise anything
            return self._failed(self.kernel_id, error, arguments)


class DeviceChoice:
    """Calls that a plan or a promoted source answers on one GPU: on its current stream, whichever is current."""

    __slots__ = ("_capturing", "_count", "_current", "_failed", "_function", "_index", "kernel_id", "line")

    def __init__(self, line: TallyLine, function: Function, kernel_id: str, failed: Failed, index: int) -> None:
        import torch

        self.line, self.kernel_id = line, kernel_id
        self._count, self._function, self._failed, self._index = line.hits.add, function, failed, index
        self._capturing = torch._C._cuda_isCurrentStreamCapturing
        self._current = torch._C._cuda_getDevice

    def __call__(self, *arguments: object) -> object:
        """Answer one call and count it."""
        if self._current() != self._index:
            import torch

            with torch.cuda.device(self._index):
                return self(*arguments)
        self._count()
        if self._capturing():
            self.line.captured.add()
        try:
            return self._function(*arguments)
        except Exception as error:  # noqa: BLE001 - promoted code may raise anything
            return self._failed(self.kernel_id, error, arguments)


def checked_outputs(function: Function, outputs: int) -> Function:
    """Return a promoted function whose outputs are contiguous, as the traced program was told.

    A kernel that returned another number of outputs fails.
    """
    import torch

    def one(*arguments: object) -> object:
        found = function(*arguments)
        if not isinstance(found, torch.Tensor):
            raise TypeError(f"the kernel returned a {type(found).__name__}, expected a tensor")
        return found if found.is_contiguous() else found.contiguous()

    def several(*arguments: object) -> object:
        found: Sequence[torch.Tensor] = function(*arguments)  # type: ignore[assignment]  # checked below
        if not isinstance(found, tuple | list) or len(found) != outputs:
            raise TypeError(f"the kernel returned a {type(found).__name__}, expected {outputs} tensors")
        return tuple([tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in found])

    def in_place(*arguments: object) -> None:
        function(*arguments)

    return in_place if outputs == 0 else one if outputs == 1 else several
