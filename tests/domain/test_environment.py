"""Three digests of a machine: everything, what times are compared under, where a build may be loaded."""

from typing import Any

import pytest

from forge.domain.digest import sha256
from forge.domain.environment import Environment
from tests.projections.values import environment

HERE = environment("h200")
PERF, ABI = "perf_key", "abi_key"
CHANGES: dict[str, tuple[Any, set[str]]] = {
    "cpu_model": ("another", {PERF}),
    "cpu_cores": (9, {PERF}),
    "cpu_features": (("avx512f",), {ABI}),
    "system": ("Darwin", {ABI}),
    "machine": ("aarch64", {PERF, ABI}),
    "kernel": ("6.9", set()),
    "glibc": ("2.17", {ABI}),
    "python": ("3.12.0", {ABI}),
    "torch": ("2.10.0", {PERF, ABI}),
    "triton": ("3.6.0", {PERF}),
    "compiler": ("clang 20", {PERF}),
    "gpu": (None, {PERF, ABI}),
    "driver": ("999", {PERF}),
    "cuda": ("14", {PERF, ABI}),
    "clock_policy": ("powersave", set()),
    "forge_version": ("9", set()),
    "forge_commit": ("abc", set()),
    "host_sha256": (sha256(b"another host"), set()),
    "node": ("a" * 56, set()),
}


def keys(machine: Environment) -> dict[str, str]:
    return {"env_sha256": machine.env_sha256, PERF: machine.perf_key, ABI: machine.abi_key}


def test_every_field_is_tried() -> None:
    assert set(CHANGES) == set(Environment.model_fields)


@pytest.mark.parametrize("field", CHANGES)
def test_a_field_changes_exactly_the_keys_that_depend_on_it(field: str) -> None:
    value, wanted = CHANGES[field]
    changed = Environment.model_validate({**HERE.model_dump(), field: value})
    differ = {name for name, key in keys(changed).items() if key != keys(HERE)[name]}
    assert differ == {"env_sha256", *wanted}


def test_the_head_s_own_environment_is_written_as_before_nodes_had_names() -> None:
    assert "node" not in HERE.model_dump()
    assert (HERE.worker, HERE.model_copy(update={"node": "b" * 56}).worker) == (HERE.host_sha256[:12], "b" * 12)


def test_a_patch_release_of_python_loads_the_same_builds() -> None:
    patched = HERE.model_copy(update={"python": "3.11.99"})
    assert patched.abi_key == HERE.abi_key
    assert patched.env_sha256 != HERE.env_sha256


def test_another_gpu_of_the_same_model_is_the_same_to_compare_with() -> None:
    assert HERE.gpu is not None
    other = HERE.model_copy(update={"gpu": HERE.gpu.model_copy(update={"uuid": "GPU-2", "power_limit_w": 600.0})})
    assert (other.perf_key, other.abi_key) == (HERE.perf_key, HERE.abi_key)
    assert other.env_sha256 != HERE.env_sha256
