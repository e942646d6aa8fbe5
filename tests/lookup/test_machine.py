"""This machine's abi_key, as an engine computes it, is the one that Forge records."""

import os
from pathlib import Path

import pytest

from forge.lookup import abi_key
from forge.platforms import cuda
from forge.platforms.capture import capture_environment

SMI = """#!/bin/sh
case "$1" in
  *index,uuid,compute_cap) printf '0, GPU-aaa, 9.0\\n1, GPU-bbb, 8.0\\n' ;;
  *index,uuid) printf '0, GPU-aaa\\n1, GPU-bbb\\n' ;;
  *driver_version) echo 580.1 ;;
  *name,*) printf 'H200, 1, 1, Enabled, Disabled, GPU-aaa, 9.0\\nA100, 1, 1, Enabled, Disabled, GPU-bbb, 8.0\\n' ;;
esac
"""
"""A driver's tool that reports two GPUs of two architectures."""


def recorded(named: str | None) -> str:
    cuda.devices.cache_clear()
    device = cuda.choose(cuda.devices(), named)
    return capture_environment(forge_version="0", forge_commit=None, device=device).abi_key


@pytest.mark.parametrize("named", [None, "0", "1", "1,0", "GPU-bbb", "", "-1"])
def test_the_key_is_that_of_the_recorded_environment(
    named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool, script in (("nvidia-smi", SMI), ("nvcc", "#!/bin/sh\necho one\necho release 12.8\n")):
        (tmp_path / tool).write_text(script)
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    try:
        assert abi_key() == recorded(named)
    finally:
        cuda.devices.cache_clear()


def test_without_a_gpu_the_key_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert abi_key() == recorded("")
