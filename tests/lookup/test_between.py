"""A shape between two proven ones is answered, with both measurements; any other shape isn't."""

import pytest

from forge.errors import IntegrityError
from forge.lookup import Policy, Registry
from tests.lookup.asking import publish_kernels, shown_kernel

BASE = shown_kernel()
ASK = {"op": BASE["op"], "gpu": BASE["gpu"], "dtype": BASE["dtype"]}


def sizes(batch: int, hidden_size: int = 64) -> dict[str, int]:
    return {"batch": batch, "hidden_size": hidden_size}


def published(directory, *proven: int, **changes) -> Registry:
    """A kernel that was verified at batch 1 to 512, and is promoted at these batches."""
    points = [{**BASE["points"][0], "shape": sizes(batch), "median_ns": 1000 * batch} for batch in proven]
    verified = [{"batch": [1, 8, 64, 512, 3, 3], "hidden_size": [64, 64, 64, 64, 96, 128]}]
    publish_kernels(directory, [{**BASE, "verified": verified, "points": points, **changes}])
    return Registry.open(directory)


def slow_at(*batches: int) -> list[dict]:
    return [{"shape": sizes(batch), "why": "TOO_SLOW: 1.02x over eager"} for batch in batches]


def test_a_shape_between_two_proven_ones_is_answered_with_both(tmp_path):
    found = published(tmp_path, 1, 8, 64, 512).lookup(**ASK, shape=sizes(17))
    assert found.match == "between"
    assert [one.shape["batch"] for one in found.neighbours] == [8, 64]
    assert found.evidence.shape == sizes(8)
    assert "lies between two that are proven: batch=8,hidden_size=64 at" in found.reason
    assert "batch=64,hidden_size=64 at" in found.reason
    assert published(tmp_path, 1, 8, 64, 512).lookup(**ASK, shape=sizes(8)).match == "exact"


@pytest.mark.parametrize(
    ("proven", "shape", "why"),
    [
        ((8, 64), sizes(4), "shape is only nearest"),
        ((8, 64), sizes(65), "shape is only nearest"),
        ((8,), sizes(9), "shape is only nearest"),
        ((8, 64), sizes(17, 65), "shape is only nearest"),
        ((1, 512), sizes(513), "shape outside the verified domain"),
    ],
)
def test_a_shape_that_is_not_proven_on_both_sides_is_not_answered(tmp_path, proven, shape, why):
    found = published(tmp_path, *proven).lookup(**ASK, shape=shape)
    assert (found.match, found.neighbours) == ("none", ())
    assert found.rejected[0][1].startswith(why)


def test_a_shape_is_not_between_proven_ones_if_one_in_between_is_too_slow(tmp_path):
    registry = published(tmp_path, 1, 8, 512, unproven=slow_at(64))
    assert registry.lookup(**ASK, shape=sizes(4)).match == "between"
    assert registry.lookup(**ASK, shape=sizes(17)).match == "none"
    assert registry.lookup(**ASK, shape=sizes(17), policy=Policy(shape="nearest")).match == "nearest"


def test_a_kernel_never_answers_at_a_shape_at_which_it_is_too_slow(tmp_path):
    registry = published(tmp_path, 8, 512, unproven=slow_at(64))
    for fit in ("covered", "between", "nearest"):
        found = registry.lookup(**ASK, shape=sizes(64), policy=Policy(shape=fit))
        assert found.match == "none"
        assert found.rejected[0][1].startswith("measured at this shape, and not promoted for it: TOO_SLOW")


def test_a_policy_that_asks_for_verified_shapes_takes_none_in_between(tmp_path):
    found = published(tmp_path, 8, 64).lookup(**ASK, shape=sizes(17), policy=Policy(shape="covered"))
    assert found.rejected[0][1] == "shape is only between, the policy asks for covered"


def test_a_kernels_own_domain_holds_between_proven_shapes_too(tmp_path):
    domain = {"axes": {"batch": {"multiple_of": 4}}, "relations": [], "layouts": None, "alignment_bytes": 1}
    registry = published(tmp_path, 8, 64, domain=domain)
    assert registry.lookup(**ASK, shape=sizes(20)).match == "between"
    assert registry.lookup(**ASK, shape=sizes(17)).rejected[0][1].startswith("shape outside the kernel's own domain")


def test_a_point_that_no_replication_measured_is_no_replicated_evidence(tmp_path):
    points = [
        {**BASE["points"][0], "shape": sizes(8)},
        {**BASE["points"][0], "shape": sizes(64), "provisional": True},
    ]
    registry = published(tmp_path, points=points, replicated_seq=9)
    states = [registry.lookup(**ASK, shape=sizes(batch)).evidence.state for batch in (8, 64)]
    assert states == ["replicated", "provisional"]
    strict = Policy(evidence="replicated")
    assert registry.lookup(**ASK, shape=sizes(8), policy=strict).match == "exact"
    assert registry.lookup(**ASK, shape=sizes(17), policy=strict).match == "none"


def test_a_snapshot_with_a_bad_unproven_shape_is_refused(tmp_path):
    for bad in ({"shape": {}, "why": "TOO_SLOW"}, {"shape": sizes(-1), "why": "TOO_SLOW"}, {"shape": sizes(1)}):
        with pytest.raises(IntegrityError):
            published(tmp_path, 8, unproven=[bad]).lookup(**ASK, shape=sizes(8))
