"""Which kernel answers, and which never does."""

import pytest

from forge.events.environment import EnvironmentCaptured
from forge.lookup import Policy
from tests.lookup.asking import ASK, BETWEEN, OUTSIDE, published
from tests.projections.histories import benchmarked, deprecate, invalidate, promoted, revoke
from tests.projections.values import EDGES, SHAPE, captured, environment, task


def test_an_exact_answer_brings_its_bytes_and_its_evidence(history, tmp_path):
    run = benchmarked(history)
    kernel_id = run.promote()
    found = published(history, tmp_path).lookup(**ASK)
    assert (found.match, found.kernel.kernel_id, found.kernel.language) == ("exact", kernel_id, "triton")
    assert found.kernel.source_path == str(tmp_path / "kernel_registry" / "kernels" / kernel_id / "kernel.py")
    assert found.kernel.sha256 == run.candidate.files[0].sha256
    assert found.kernel.entry_point == "rmsnorm"
    evidence = found.evidence
    assert (evidence.shape, evidence.distance, evidence.median_ns) == (SHAPE, 0.0, 1000.0)
    assert (evidence.baseline, evidence.baseline_median_ns, evidence.speedup) == ("eager", 1500.0, 1.5)
    assert evidence.low < evidence.speedup < evidence.high
    assert evidence.abi_key == environment().abi_key
    assert (evidence.verified_seq, evidence.benchmark_seq) == (run.verified_seq, run.benchmark_seq)
    assert history.events[evidence.promoted_seq - 1].event.kernel_id == kernel_id
    assert found.rejected == []


def test_an_answer_shows_what_it_is_made_of(history, tmp_path):
    kernel_id = promoted(history)
    registry = published(history, tmp_path)
    shown = repr(registry.lookup(**ASK))
    assert "match='exact'" in shown
    assert f"kernel_id={kernel_id!r}" in shown
    assert "speedup=1.5" in shown
    assert f"ledger_seq={registry.health().ledger_seq}" in repr(registry.health())


def test_an_operation_without_kernels_is_named(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    found = registry.lookup(**{**ASK, "op": "rmsnrm"})
    assert (found.match, found.rejected) == ("none", [])
    assert found.reason == "the registry has no kernel of the operation 'rmsnrm'"
    assert "`rejected` has the reason" in registry.lookup(**{**ASK, "gpu": "b200"}).reason


def test_a_verified_shape_that_was_not_measured_is_covered_by_the_nearest_point(history, tmp_path):
    promoted(history, shapes=EDGES, also=(EDGES[0],))
    found = published(history, tmp_path).lookup(**{**ASK, "shape": EDGES[2]})
    assert (found.match, found.evidence.shape, found.evidence.distance) == ("covered", SHAPE, 3.0)


def test_a_shape_between_verified_ones_is_answered_only_if_the_policy_allows(history, tmp_path):
    kernel_id = promoted(history, shapes=EDGES)
    registry = published(history, tmp_path)
    asked = {**ASK, "shape": BETWEEN}
    refused = registry.lookup(**asked)
    assert (refused.match, refused.kernel, refused.evidence) == ("none", None, None)
    assert refused.rejected == [(kernel_id, "shape is only nearest, the policy asks for between")]
    assert registry.lookup(**asked, policy=Policy(shape="nearest")).match == "nearest"
    near = Policy(shape="nearest", max_octaves=0.1)
    assert registry.lookup(**asked, policy=near).rejected[0][1].startswith("nearest measured shape")


@pytest.mark.parametrize(
    "shape",
    [OUTSIDE, {"batch": 16, "hidden_size": 1022}, {"batch": 16}, {"batch": 16, "hidden_size": 4096, "x": 1}],
)
def test_a_shape_outside_the_verified_domain_is_never_answered(history, tmp_path, shape):
    promoted(history, shapes=EDGES)
    found = published(history, tmp_path).lookup(**{**ASK, "shape": shape}, policy=Policy(shape="nearest"))
    assert found.match == "none"
    assert found.rejected[0][1].startswith("shape")


@pytest.mark.parametrize(("size", "match"), [(64, "nearest"), (96, "none"), (128, "nearest")])
def test_a_size_between_two_is_not_answered_where_an_axis_was_not_varied(history, tmp_path, size, match):
    """As a head's size: one of the task and another of a listed workload say nothing of those between."""
    others = [{"batch": 1, "hidden_size": 64}, {"batch": 32, "hidden_size": 128}]
    promoted(history, wanted=task(shape={"batch": 64, "hidden_size": 128}), shapes=tuple(others))
    asked = {**ASK, "shape": {"batch": 16, "hidden_size": size}}
    found = published(history, tmp_path).lookup(**asked, policy=Policy(shape="nearest"))
    assert found.match == match
    if match == "none":
        assert (
            found.rejected[0][1] == "shape outside the verified domain: hidden_size 96, verified at 64 and 128 alone"
        )


def test_exact_beats_covered_beats_nearest_whatever_the_times(history, tmp_path):
    measured = promoted(history, name="a", median_ns=9000.0, shapes=())
    other = task(shape={"batch": 64, "hidden_size": 8192})
    promoted(history, name="b", wanted=other, median_ns=10.0, shapes=(SHAPE,))
    few = tuple({"batch": batch, "hidden_size": size} for batch, size in ((1, 1), (32, 64)))
    promoted(history, name="c", wanted=other, median_ns=1.0, shapes=few)
    found = published(history, tmp_path).lookup(**ASK, policy=Policy(shape="nearest"))
    assert (found.match, found.kernel.kernel_id) == ("exact", measured)
    assert {reason for _, reason in found.rejected} == {f"{measured} is the better match"}


def test_the_highest_version_is_not_automatically_the_best(history, tmp_path):
    fast = promoted(history, name="a", median_ns=500.0)
    promoted(history, name="b", median_ns=600.0)
    assert published(history, tmp_path).lookup(**ASK).kernel.kernel_id == fast


def test_equal_times_go_by_kernel_id(history, tmp_path):
    first = promoted(history, name="a")
    promoted(history, name="b")
    assert published(history, tmp_path).lookup(**ASK).kernel.kernel_id == first


def test_the_nearer_measurement_wins_before_the_lower_time(history, tmp_path):
    asked, near, far = ({"batch": 16, "hidden_size": size} for size in (1000, 2000, 8000))
    nearer = promoted(history, name="a", wanted=task(shape=near), shapes=(asked,), median_ns=900.0)
    promoted(history, name="b", wanted=task(shape=far), shapes=(asked,), median_ns=100.0)
    found = published(history, tmp_path).lookup(**{**ASK, "shape": asked})
    assert (found.match, found.kernel.kernel_id, found.evidence.distance) == ("covered", nearer, 1.0)


def test_a_language_can_be_asked_for(history, tmp_path):
    promoted(history, name="a", median_ns=1.0)
    cpp = promoted(history, name="b", wanted=task(language="cpp"))
    registry = published(history, tmp_path)
    found = registry.lookup(**ASK, language="cpp")
    assert found.kernel.kernel_id == cpp
    assert [reason for _, reason in found.rejected] == ["language triton, asked cpp"]
    assert registry.lookup(**ASK, language="torch").match == "none"


def test_another_gpu_answers_only_as_family_of_the_same_architecture(history, tmp_path):
    hopper = promoted(history, wanted=task(gpu="h100"))
    ada = promoted(history, wanted=task(gpu="rtx4070"))
    history.add(captured("h200"))
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK).match == "none"
    found = registry.lookup(**ASK, policy=Policy(gpu="family"))
    assert (found.match, found.kernel.kernel_id, found.kernel.gpu) == ("family", hopper, "h100")
    assert found.rejected == [(ada, "gpu rtx4070 of architecture sm_89, asked h200 of sm_90")]


def test_the_architecture_of_a_gpu_never_seen_is_the_callers_to_say(history, tmp_path):
    promoted(history, wanted=task(gpu="h100"))
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK, policy=Policy(gpu="family")).match == "none"
    assert registry.lookup(**ASK, policy=Policy(gpu="family", gpu_arch="sm_90")).match == "family"


def test_two_unknown_architectures_are_not_the_same(history, tmp_path):
    promoted(history, wanted=task(gpu="h100"))
    found = environment("h100")
    other = found.model_copy(update={"gpu": found.gpu.model_copy(update={"arch": "sm_91"})})
    digests = {"env_sha256": other.env_sha256, "perf_key": other.perf_key, "abi_key": other.abi_key}
    history.add(EnvironmentCaptured(environment=other, **digests))
    answer = published(history, tmp_path).lookup(**ASK, policy=Policy(gpu="family"))
    assert answer.match == "none"
    assert answer.rejected[0][1] == "gpu h100 of architecture None, asked h200 of None"


def test_the_asked_gpu_comes_before_its_family(history, tmp_path):
    promoted(history, wanted=task(gpu="h100"), median_ns=1.0)
    own = promoted(history, shapes=(*EDGES, BETWEEN))
    found = published(history, tmp_path).lookup(**{**ASK, "shape": BETWEEN}, policy=Policy(gpu="family"))
    assert (found.match, found.kernel.kernel_id) == ("covered", own)


def test_a_gpu_may_be_asked_for_by_its_market_name(history, tmp_path):
    promoted(history, wanted=task(gpu="rtx4070"))
    assert published(history, tmp_path).lookup(**{**ASK, "gpu": "RTX 4070"}).match == "exact"


def test_a_revoked_kernel_is_never_returned(history, tmp_path):
    kernel_id = promoted(history)
    revoke(history, kernel_id)
    policy = Policy(shape="nearest", gpu="family", deprecated=True)
    found = published(history, tmp_path).lookup(**ASK, policy=policy)
    assert found.match == "none"
    assert found.rejected == [(kernel_id, "revoked: wrong_result: off by one")]


def test_a_kernel_whose_benchmark_was_withdrawn_is_never_returned(history, tmp_path):
    run = benchmarked(history)
    kernel_id = run.promote()
    invalidate(history, run.benchmark_seq)
    found = published(history, tmp_path).lookup(**ASK, policy=Policy(deprecated=True))
    assert found.rejected == [(kernel_id, "evidence_invalid: clock was wrong")]


def test_a_deprecated_kernel_answers_only_if_allowed_and_nothing_else_does(history, tmp_path):
    old = promoted(history, name="a", median_ns=1.0)
    deprecate(history, old)
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK).rejected == [(old, "deprecated: a better one")]
    assert registry.lookup(**ASK, policy=Policy(deprecated=True)).kernel.kernel_id == old
    new = promoted(history, name="b", median_ns=1000.0, wanted=task(shape=EDGES[2]), shapes=(SHAPE,))
    registry = published(history, tmp_path)
    found = registry.lookup(**ASK, policy=Policy(deprecated=True))
    assert (found.match, found.kernel.kernel_id) == ("covered", new)


def test_a_kernel_built_for_another_machine_can_be_passed_over(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    assert registry.lookup(**ASK, policy=Policy(abi_key=environment().abi_key)).match == "exact"
    assert registry.lookup(**ASK, policy=Policy(abi_key="0" * 64)).match == "none"
