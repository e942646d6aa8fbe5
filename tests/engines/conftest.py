"""Without an engine its tests aren't collected: `make test-transformers` and `make test-vllm` install it."""

import importlib.util

import pytest

from tests.adopt.making import RMSNORM, kernel, publish

ENGINES = {"test_transformers.py": ("transformers", "kernels"), "test_vllm.py": ("vllm",)}
collect_ignore = [file for file, names in ENGINES.items() if not all(map(importlib.util.find_spec, names))]


@pytest.fixture
def registry(tmp_path):
    """A registry with an rmsnorm for the processor, in bf16."""
    made = kernel("rmsnorm", RMSNORM, dtype="bf16", kernel_id="torch_rmsnorm_cpu_bf16_v1")
    return publish(tmp_path / "registry", [made])
