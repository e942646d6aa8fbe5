"""Makes torch compute small work in the calling thread.

Torch divides its work among threads of its own, which wait in a loop for the next piece. The calling thread alone
does small work sooner, and with a third of the processor time.
"""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from forge.lab.inputs.shape_budget import largest_operand
from forge.operations.operation import Operation

DIVIDED_FROM = 2**22
"""Number of elements of a tensor from which torch may divide work on it. Chosen; work on fewer takes some
milliseconds, and waiting threads would take as many again."""
COSTLY_FROM, COSTLY_FLOPS = 2**20, 2**30
"""Numbers of elements and of floating-point operations from which torch may divide the work as well, as in products
of matrices. 2^30 operations take 0.1 s in fp64 on one core."""


class _Undivided:
    """Makes torch compute in the calling thread, since it would split each small item once more otherwise.

    Torch keeps a number for each thread and one for future threads. Several threads may be inside at once. Each one
    that leaves sets both numbers to their value before the first one entered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    def __enter__(self) -> None:
        import torch

        with self._lock:
            if not self._inside:
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        import torch

        with self._lock:
            self._inside -= 1
            torch.set_num_threads(self._before)


UNDIVIDED = _Undivided()
"""Context in which torch computes small work in the calling thread."""
NOTHING_DIVIDED = _Undivided()
"""Context around others in which torch computes all work in the calling thread, as other processes need the rest."""


def undivided_if_small(
    operation: Operation, shape: Mapping[str, int], *, answers: int = 1
) -> AbstractContextManager[None]:
    """Return a context for work on one call's operands, or on `answers` answers: small work isn't divided."""
    elements = largest_operand(operation, shape) * answers
    costly = elements >= COSTLY_FROM and operation.flops(shape) >= COSTLY_FLOPS
    return nullcontext() if costly or elements >= DIVIDED_FROM else UNDIVIDED
