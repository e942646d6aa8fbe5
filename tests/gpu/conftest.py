"""Only on a machine with a GPU: elsewhere nothing in this folder is collected."""

import os
from collections.abc import Iterator

import pytest

from forge.executor.turns import lock_of, turn
from forge.sandbox.stage import GPU_NODES
from tests.gpu.place import gpu

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # its own processes would count as left by a candidate
collect_ignore_glob = [] if GPU_NODES else ["test_*.py"]
TIMED = {"test_replays", "test_several_shapes"}
"""Names of the modules that time, alone on the GPU: beside others the host's clock disagrees with the device's."""
TAKES_ITS_TURNS = "test_room"
"""Name of the module whose executor asks for the GPU alone: it would wait for a turn that is held around it."""


@pytest.fixture(scope="module", autouse=True)
def in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge beside other tests and programs on this GPU, and time alone."""
    if request.path.stem == TAKES_ITS_TURNS:
        yield
        return
    with turn(lock_of(gpu()), alone=request.path.stem in TIMED, progress=print):
        yield
