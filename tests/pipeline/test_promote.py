"""Each rule alone is enough to deny; all of them together are needed to promote."""

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.contender import Absence, ContenderAbsent, ContenderStanding
from forge.domain.digest import digest_of, sha256
from forge.domain.evidence import GateResult, Isolation
from forge.domain.policy import Policy, TimingAuthority
from forge.domain.target import Target
from forge.events import KernelPromoted, PromotionDenied
from forge.pipeline.promote import RULES, PromotionEvidence, promote
from forge.pipeline.promotion_rule import NotMet
from tests.pipeline.making import POLICY, case, confirmed, in_cache, made, taken, timing

OTHER = sha256(b"another")
BARE = Isolation(level="none", parts=(), missing=("user_ns",))
FAILED = GateResult(name="scales", verdict="failed", observed="3 x the bound", threshold="1")
PASSED = GateResult(name="numerics", verdict="passed", observed="0.1 x the bound", threshold="1")


def on_a_gpu(method: TimingAuthority, *, policy: Policy = POLICY, **measured: object) -> PromotionEvidence:
    """Everything is about that GPU's task, judged by that policy and timed in that way."""
    task = made(policy).model_copy(update={"target": Target(platform="cuda", gpu="h200")})
    named = {"task_id": task.task_id, "policy_sha256": digest_of(policy)}
    facts = {"candidate": taken(method=method), "confirmation": confirmed(method=method), **measured}
    return case(
        task=task,
        policy=policy,
        verified=named,
        benchmark={**named, "workloads": (timing(**facts),)},  # type: ignore[arg-type]  # a test's
    )


def with_policy(policy: Policy, **measured: object) -> PromotionEvidence:
    named = {"task_id": (task := made(policy)).task_id, "policy_sha256": digest_of(policy)}
    workloads = (timing(**measured),)  # type: ignore[arg-type]  # a test's
    return case(task=task, policy=policy, verified=named, benchmark={**named, "workloads": workloads})


BREAKS: dict[str, tuple[Callable[[], PromotionEvidence], ...]] = {
    "same bytes": (
        lambda: case(verified={"candidate": OTHER}),
        lambda: case(benchmark={"candidate": OTHER}),
        lambda: case(submitted=case().submitted.model_copy(update={"candidate": OTHER})),
    ),
    "same task": (
        lambda: case(verified={"task_id": "another"}),
        lambda: case(benchmark={"task_id": "another"}),
        lambda: case(benchmark={"verified_seq": 9}),
    ),
    "same policy": (
        lambda: case(verified={"policy_sha256": OTHER}),
        lambda: case(benchmark={"policy_sha256": OTHER}),
        lambda: case(policy=Policy(baselines=("eager",), minimum_speedup=1.2)),
    ),
    "not simulated": (lambda: case(verified={"simulated": True}),),
    "isolation": (
        lambda: case(verified={"isolation": BARE}),
        lambda: case(benchmark={"isolation": BARE}),
    ),
    "gates": (lambda: case(verified={"gates": (PASSED, FAILED)}),),
    "held-out shapes": (lambda: case(draws_held_out=True),),
    "timing authority": (lambda: on_a_gpu("host_slope"),),
    "measured shape": (
        lambda: case(benchmark={"workloads": (timing(shape={"batch": 5, "hidden_size": 64}),)}),
        lambda: case(benchmark={"workloads": (timing(), timing(shape={"batch": 5, "hidden_size": 64}))}),
    ),
    "benchmark stands": (lambda: case(benchmark_invalidated=True),),
    "kernel on offer": (
        lambda: case(incumbent="newer"),
        lambda: case(incumbent="newer", measured_beside="older"),
    ),
    "process pairs": (lambda: case(benchmark={"workloads": (timing(process_pairs=4),)}),),
    "control": (
        lambda: case(benchmark={"workloads": (timing(control=(0.94, 1.0)),)}),
        lambda: case(benchmark={"workloads": (timing(control=(1.0, 1.06)),)}),
        lambda: on_a_gpu("launch_plan", control=(0.97, 1.0)),
    ),
    "floor": (lambda: case(benchmark={"workloads": (timing(p90_ns=484.0, floor_ns=500.0),)}),),
    "speedup": (
        lambda: case(benchmark={"workloads": (timing(low=1.09),)}),
        lambda: case(benchmark={"workloads": (timing(pairs_lost=1),)}),
        lambda: case(task=case().task.model_copy(update={"minimum_speedup": 1.45}), **_same_task(1.45)),
    ),
    "resident": (
        lambda: case(benchmark={"workloads": (timing(residency=None),)}),
        lambda: case(benchmark={"workloads": (timing(residency=in_cache(low=1.09)),)}),
    ),
    "confirmation": (
        lambda: case(benchmark={"workloads": (timing(confirmation=None),)}),
        lambda: case(benchmark={"workloads": (timing(confirmation=confirmed(low=1.09)),)}),
        lambda: case(benchmark={"workloads": (timing(confirmation=confirmed(pairs_lost=1)),)}),
        lambda: case(benchmark={"workloads": (timing(confirmation=confirmed(control=(0.94, 1.0))),)}),
        lambda: on_a_gpu("launch_plan", confirmation=confirmed(control=(0.97, 1.0), method="launch_plan")),
    ),
}


def _same_task(minimum: float) -> dict[str, dict[str, str]]:
    task_id = case().task.model_copy(update={"minimum_speedup": minimum}).task_id
    return {"verified": {"task_id": task_id}, "benchmark": {"task_id": task_id}}


def test_every_rule_has_a_case_that_only_it_denies() -> None:
    assert set(BREAKS) == {rule.name for rule in RULES}
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_one_rule_that_is_not_met_denies_and_is_named(rule: object) -> None:
    name, code = rule.name, rule.code  # type: ignore[attr-defined]
    for broken in BREAKS[name]:
        found = broken()
        assert [one.name for one in RULES if isinstance(one.apply(found), NotMet)] == [name]
        denied = promote(found, earlier_versions=0)
        assert isinstance(denied, PromotionDenied)
        assert denied.reason.code == code
        assert denied.reason.message.startswith(f"{name}: ")
        assert [gate.verdict for gate in denied.gates] == ["passed"] * (len(denied.gates) - 1) + ["failed"]
        assert denied.gates[-1].name == name
        assert denied.family == found.task.family


def test_evidence_that_meets_every_rule_is_promoted_as_the_next_version() -> None:
    found = case()
    kernel = promote(found, earlier_versions=3)
    assert isinstance(kernel, KernelPromoted)
    assert kernel.kernel_id == f"{found.task.family}_v4"
    assert [gate.name for gate in kernel.gates] == [rule.name for rule in RULES]
    assert {gate.verdict for gate in kernel.gates} == {"passed"}
    assert (kernel.verified_seq, kernel.benchmark_seq) == (10, 12)
    assert kernel.candidate == found.submitted.files.sha256
    assert kernel.files == found.submitted.files.files
    again = found.benchmark.event.workloads[0].confirmation
    assert kernel.speedup == again.speedups[0].interval != found.speedup.interval
    assert kernel.candidate_median_ns == again.candidate.median_ns
    assert kernel.policy_sha256 == digest_of(POLICY)
    assert kernel.coverage.measured == (found.task.shape,)


def test_a_policy_that_asks_for_no_confirmation_promotes_on_the_first_number() -> None:
    policy = Policy(baselines=("eager",), minimum_speedup=1.1, confirmation=False)
    found = with_policy(policy, confirmation=None)
    kernel = promote(found, earlier_versions=0)
    assert isinstance(kernel, KernelPromoted)
    assert kernel.speedup == found.speedup.interval
    assert kernel.candidate_median_ns == found.benchmark.event.workloads[0].candidate.median_ns


@pytest.mark.parametrize(
    ("wanted", "method", "met"),
    [
        ("launch_plan", "launch_plan", True),
        ("launch_plan", "host_slope", False),
        ("host_slope", "launch_plan", True),
        ("host_slope", "host_slope", True),
    ],
)
def test_on_a_gpu_the_policy_says_whose_word_a_time_is(
    wanted: TimingAuthority, method: TimingAuthority, met: bool
) -> None:
    policy = Policy(baselines=("eager",), minimum_speedup=1.1, gpu_timing_authority=wanted)
    decided = promote(on_a_gpu(method, policy=policy), earlier_versions=0)
    assert isinstance(decided, KernelPromoted) == met
    if isinstance(decided, PromotionDenied):
        assert decided.reason.message == "timing authority: host_slope, expected launch_plan or stronger"


def test_what_is_asked_of_a_gpu_is_not_asked_of_a_processor() -> None:
    assert POLICY.gpu_timing_authority == "launch_plan"
    assert isinstance(promote(case(), earlier_versions=0), KernelPromoted)


@given(low=st.floats(0.01, 10), control=st.floats(0.01, 0.2), lost=st.integers(0, 3), pairs=st.integers(1, 9))
def test_only_evidence_within_every_threshold_is_promoted(low: float, control: float, lost: int, pairs: int) -> None:
    measured = timing(
        ratio=low, low=low, high=low, control=(1 - control, 1 + control), pairs_lost=lost, process_pairs=pairs
    )
    kernel = promote(case(benchmark={"workloads": (measured,)}), earlier_versions=0)
    band = 1 - control >= 1 - 0.05 and 1 + control <= 1 + 0.05
    assert isinstance(kernel, KernelPromoted) == (low >= 1.1 and band and lost == 0 and pairs >= 5)


REQUIRING = POLICY.model_copy(update={"baselines": ("eager", "contenders"), "required_contenders": ("liger",)})


def standing(contender: str, cause: Absence) -> ContenderStanding:
    absent = ContenderAbsent(cause=cause, detail="no package 'liger-kernel' is installed here")
    return ContenderStanding(contender=contender, package="liger-kernel", standing=absent)


def beside(*standings: ContenderStanding, policy: Policy = REQUIRING) -> PromotionEvidence:
    found = with_policy(policy)
    event = found.benchmark.event.model_copy(update={"contenders": standings})
    return dataclasses.replace(found, benchmark=dataclasses.replace(found.benchmark, event=event))


@pytest.mark.parametrize("cause", ["not_installed", "version", "no_toolkit"])
def test_without_a_required_contender_nothing_is_promoted(cause: Absence) -> None:
    denied = promote(beside(standing("liger.softmax", cause)), earlier_versions=0)
    assert isinstance(denied, PromotionDenied)
    assert denied.reason.code == "INFRASTRUCTURE"
    assert denied.reason.message == "contenders: liger.softmax not there, expected liger, where they apply"


def test_a_contender_that_is_not_required_or_does_not_apply_is_not_missed() -> None:
    allowed = beside(standing("liger.softmax", "not_applicable"), standing("other.softmax", "not_installed"))
    promoted = promote(allowed, earlier_versions=0)
    assert isinstance(promoted, KernelPromoted)
    assert promoted.gates[-1].name == "contenders"
    as_before = promote(beside(standing("liger.softmax", "not_installed"), policy=POLICY), earlier_versions=0)
    assert isinstance(as_before, KernelPromoted)
    assert "contenders" not in {gate.name for gate in as_before.gates}
