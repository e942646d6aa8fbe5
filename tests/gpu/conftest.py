"""Only on a machine with a GPU: elsewhere nothing in this folder is collected."""

import os
from collections.abc import Iterator

import pytest

from forge.executor.turns import lock_of, turn
from forge.sandbox.stage import GPU_NODES
from tests.gpu.place import gpu

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # its own processes would count as left by a candidate
collect_ignore_glob = [] if GPU_NODES else ["test_*.py"]
ALONE = {"test_replays", "test_several_shapes", "test_room"}
"""Names of the modules that have the GPU alone. Two time: beside others the host's clock disagrees with the device's.
The third takes nearly all of its memory, which others would lack."""


@pytest.fixture(scope="module", autouse=True)
def in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge beside other tests and programs on this GPU, and do alone what others would disturb."""
    with turn(lock_of(gpu()), alone=request.path.stem in ALONE, progress=print):
        yield
