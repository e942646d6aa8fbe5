"""What a registry says of an operation is read by digest; a registry without such files says so."""

import pytest

from forge.domain.digest import sha256
from forge.errors import BlobCorrupt, UnknownName, UsageError
from forge.lookup import Registry
from forge.projections.files import put
from forge.projections.snapshot import render
from tests.lookup.asking import publish_kernels, publish_snapshot, shown_kernel
from tests.projections.values import ARCHITECTURES

BASE = shown_kernel()
FILES = {"ops/rmsnorm.json": b'{"op": "rmsnorm"}', "ops/rmsnorm.py": b"def rmsnorm(x): ...\n"}


def describe(directory, digests: tuple[str, str]) -> Registry:
    put(directory, FILES)
    publish_snapshot(directory, render([], ARCHITECTURES, [("rmsnorm", *digests)]))
    return Registry.open(directory)


def test_the_description_and_the_reference_are_read_by_their_digests(tmp_path):
    digests = tuple(sha256(content) for content in FILES.values())
    registry = describe(tmp_path, digests)
    assert registry.operations == {"rmsnorm": digests}
    assert registry.read_operation("rmsnorm") == tuple(FILES.values())
    with pytest.raises(UnknownName, match="nearest: rmsnorm"):
        registry.read_operation("rmsnrm")
    (tmp_path / "ops" / "rmsnorm.py").write_bytes(b"def rmsnorm(x): return x\n")
    with pytest.raises(BlobCorrupt, match="has digest"):
        registry.read_operation("rmsnorm")


def test_a_registry_from_before_descriptions_answers_and_names_the_next_step(tmp_path):
    publish_kernels(tmp_path, [BASE])
    registry = Registry.open(tmp_path)
    assert registry.operations == {}
    with pytest.raises(UsageError, match="describes no operation") as refused:
        registry.read_operation("rmsnorm")
    assert refused.value.hint == "forge op describe"


def test_an_operation_without_digests_is_damage(tmp_path):
    with pytest.raises(BlobCorrupt, match="expected two digests"):
        describe(tmp_path, ("0" * 64, "../kernel.py"))


def test_a_kernel_names_the_shape_of_its_task(tmp_path):
    own, further = BASE["points"][0], {**BASE["points"][0], "shape": {"batch": 1, "hidden_size": 1}}
    publish_kernels(tmp_path, [{**BASE, "points": [own, {**further, "provisional": True}]}])
    found = Registry.open(tmp_path).lookup(op="rmsnorm", gpu="h200", dtype="bf16", shape=own["shape"])
    assert dict(found.kernel.shape) == own["shape"]
