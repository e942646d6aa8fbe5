"""A kernel's own domain is read as it was recorded, and nothing is answered outside it."""

import json

import orjson
import pytest
from hypothesis import given

from forge.domain.digest import canonical
from forge.domain.kernel_domain import KernelDomain
from forge.errors import BlobCorrupt
from forge.lookup import Policy, Registry
from forge.lookup.declared import DeclaredDomain
from tests.domain.domains import domains, shapes
from tests.lookup.asking import publish_kernels, shown_kernel

KERNEL = shown_kernel()
SLOT = {"op": KERNEL["op"], "gpu": KERNEL["gpu"], "dtype": KERNEL["dtype"]}
DOMAIN = {"axes": {"hidden_size": {"multiple_of": 128}}, "layouts": ["contiguous"], "alignment_bytes": 16}
VERIFIED = [{"batch": [1, 16, 64, 64], "hidden_size": [4096, 4096, 5120, 8192]}]


def with_domain(directory, domain):
    publish_kernels(directory, [{**KERNEL, "verified": VERIFIED, "domain": domain}])
    return Registry.open(directory)


@given(domains(), shapes())
def test_the_read_side_reads_a_domain_as_it_was_declared(declared: KernelDomain, shape: dict[str, int]) -> None:
    assert DeclaredDomain(orjson.loads(canonical(declared))).contains(shape) == declared.contains(shape)


def test_an_answer_says_what_its_kernel_promises(tmp_path):
    kernel = with_domain(tmp_path, DOMAIN).lookup(**SLOT, shape=KERNEL["points"][0]["shape"]).kernel
    assert kernel.domain.document() == DOMAIN
    assert kernel.domain.contains({"batch": 3, "hidden_size": 256})
    assert not kernel.domain.contains({"batch": 3, "hidden_size": 255})
    assert (kernel.domain.layouts, kernel.domain.alignment_bytes) == (("contiguous",), 16)


def test_a_kernel_without_a_domain_has_none(tmp_path):
    publish_kernels(tmp_path, [KERNEL])
    assert Registry.open(tmp_path).lookup(**SLOT, shape=KERNEL["points"][0]["shape"]).kernel.domain is None


def test_nothing_is_answered_outside_the_domain_that_a_kernel_declares(tmp_path):
    registry, policy = with_domain(tmp_path, DOMAIN), Policy(shape="nearest")
    assert registry.lookup(**SLOT, shape={"batch": 16, "hidden_size": 4224}, policy=policy).match == "nearest"
    found = registry.lookup(**SLOT, shape={"batch": 16, "hidden_size": 4225}, policy=policy)
    assert found.match == "none"
    assert found.rejected[0][1].startswith("shape outside the kernel's own domain: hidden_size from 128")


def test_a_verified_shape_outside_the_declared_domain_is_not_answered(tmp_path):
    registry = with_domain(tmp_path, {"axes": {"batch": {"values": [1, 2]}}})
    assert registry.lookup(**SLOT, shape={"batch": 16, "hidden_size": 4096}).match == "none"


@pytest.mark.parametrize(
    "domain",
    [
        {"axes": {"batch": {"at_least": 1}}},
        {"colours": []},
        {"relations": [{"kind": "sum", "axes": ["batch"], "most": 1}]},
        {"relations": [{"kind": "product", "axes": ["batch"], "most": "many"}]},
        {"axes": {"batch": {"multiple_of": 0}}},
        {"axes": {"batch": {"values": []}}},
        {"axes": {"batch": {"most": True}}},
        "batch <= 5",
        [],
    ],
    ids=json.dumps,
)
def test_a_domain_that_this_reader_does_not_know_is_refused(tmp_path, domain):
    with pytest.raises(BlobCorrupt):
        with_domain(tmp_path, domain).lookup(**SLOT, shape=KERNEL["points"][0]["shape"])
