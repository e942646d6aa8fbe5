"""Only on a machine with a GPU: elsewhere nothing in this folder is collected."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.executor.turns import lock_of, turn
from forge.sandbox.stage import GPU_NODES
from tests.gpu.place import gpu

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # its own processes would count as left by a candidate
collect_ignore_glob = [] if GPU_NODES else ["test_*.py"]
TIMED = {"test_replays", "test_several_shapes"}
"""Names of the modules that time. No time counts while another process has a context on the GPU, as pytest's other
workers have."""
ALONE = {*TIMED, "test_room"}
"""Names of the modules that have the GPU alone. The third takes nearly all of its memory, which others would lack."""


@pytest.fixture(scope="module", autouse=True)
def in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge beside other tests and programs on this GPU, and do alone what others would disturb."""
    if request.path.stem in TIMED and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip(f"other workers have contexts on the GPU: python -m pytest -n 0 {request.path}")
    with turn(lock_of(gpu()), alone=request.path.stem in ALONE, progress=print):
        yield


@pytest.fixture(scope="session")
def folder_of_turns() -> Iterator[str]:
    """Return a folder that lives as long as this process, which keeps compiled references beside the locks."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        yield folder


@pytest.fixture
def turns_of_its_own(monkeypatch: pytest.MonkeyPatch, folder_of_turns: str) -> None:
    """Lock in another folder: an executor asks for the GPU, and the module holds it already."""
    monkeypatch.setattr(tempfile, "tempdir", folder_of_turns)
