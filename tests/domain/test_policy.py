"""The policy's bounds: none of them can be set to where it no longer protects."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.digest import digest_of
from forge.domain.policy import Policy

BEYOND = {
    "minimum_speedup": (0.99, 1000.1),
    "build_limit_s": (0.0, 3601.0),
    "verify_limit_s": (0.0, 3601.0),
    "benchmark_limit_s": (0.0, 7201.0),
    "memory_limit_bytes": (2**28 - 1, 2**44 + 1),
    "baselines": ((), ("promoted",)),
    "required_contenders": (("Liger",), ("liger.softmax.more",)),
    "gpu_timing_authority": ("", "events"),
    "confirmation": ("perhaps", 2),
    "process_pairs": (1, 65),
    "rounds": (3, 401),
    "replay_rounds": (3, 401),
    "candidate_limit_s": (0.0, 1e9),
    "control_half_width": (0.0, 0.51),
    "replay_control_half_width": (0.0, 0.51),
    "most_dropped": (-0.01, 0.51),
    "floor_slack": (0.0, 1.01),
    "tolerance_baseline_multiple": (0.99, 16.1),
    "tolerance_accumulate_multiple": (0.99, 16.1),
    "minimum_isolation": ("", "hope"),
    "regimes": ((), ("warm",)),
    "sanitizer": ("perhaps", 2),
}


def test_every_field_has_a_bound_that_is_tried() -> None:
    assert set(BEYOND) == set(Policy.model_fields)


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in BEYOND for value in BEYOND[field]])
def test_a_value_beyond_its_bound_is_no_policy(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        Policy.model_validate({field: value})
    assert refused.value.errors()[0]["loc"][0] == field


@given(st.sampled_from(sorted(BEYOND)), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_no_bound_can_be_a_number_that_is_none(field: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({field: value})


def test_the_default_is_valid_and_every_field_changes_the_digest() -> None:
    changes = {
        "minimum_isolation": "none",
        "regimes": ("cold", "resident"),
        "sanitizer": False,
        "gpu_timing_authority": "host_slope",
        "confirmation": False,
        "replay_rounds": 21,
        "replay_control_half_width": 0.1,
        "most_dropped": 0.1,
        "baselines": ("eager",),
        "process_pairs": 7,
        "rounds": 21,
        "memory_limit_bytes": 2**30,
        "control_half_width": 0.1,
        "floor_slack": 0.5,
    }
    digests = {digest_of(Policy())}
    for field in set(Policy.model_fields) - {"required_contenders"}:
        digests.add(digest_of(Policy.model_validate({field: changes.get(field, 3.5)})))
    digests.add(digest_of(Policy(baselines=("eager", "contenders"), required_contenders=("liger",))))
    assert len(digests) == len(Policy.model_fields) + 1


def test_a_policy_that_requires_contenders_measures_them() -> None:
    with pytest.raises(ValidationError, match="baselines lacks 'contenders'"):
        Policy(required_contenders=("liger",))


def test_a_policy_that_requires_no_contender_has_the_digest_from_before_there_was_the_field() -> None:
    assert "required_contenders" not in Policy().model_dump()
    assert "required_contenders" in Policy(baselines=("contenders",), required_contenders=("liger",)).model_dump()
