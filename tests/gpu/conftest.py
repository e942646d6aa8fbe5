"""Only on a machine with a GPU: elsewhere nothing in this folder is collected."""

from collections.abc import Iterator

import pytest

from forge.executor.turns import lock_of, turn
from forge.platforms.cuda import devices
from forge.sandbox.stage import GPU_NODES

collect_ignore_glob = [] if GPU_NODES else ["test_*.py"]
TIMED = "test_replays"


@pytest.fixture(scope="module", autouse=True)
def in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge beside others, and time alone, whoever runs tests on this GPU."""
    with turn(lock_of(devices()[0]), alone=request.path.stem == TIMED, progress=print):
        yield
