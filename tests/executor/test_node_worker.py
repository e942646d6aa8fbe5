"""A worker on a node of a cluster: which GPU it takes. The cluster itself isn't needed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.executor.ray import NodeWorker
from forge.platforms import cuda
from tests.lookup.test_machine import SMI


@pytest.fixture
def _two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose driver's tool reports two GPUs."""
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "all that there are")
    cuda.devices.cache_clear()
    yield
    cuda.devices.cache_clear()


@pytest.mark.usefixtures("_two_gpus")
@pytest.mark.parametrize(("device", "visible"), [(None, ""), ("0", "GPU-aaa"), ("1", "GPU-bbb")])
def test_a_place_without_a_gpu_sees_none_also_where_the_machine_has_some(device: str | None, visible: str) -> None:
    NodeWorker(device)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == visible
