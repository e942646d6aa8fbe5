"""The registry: what a promotion must bear out, and what becomes of a kernel."""

import json

import pytest

from forge.errors import LedgerCorrupt
from forge.projections import registry
from forge.projections.fold import Position
from tests.projections.histories import (
    LEDGER_ID,
    History,
    benchmarked,
    deprecate,
    invalidate,
    opened,
    promoted,
    revoke,
)
from tests.projections.values import digest, task

FAMILIAR = {
    *("kernel_id", "op", "language", "source_path", "target_gpu", "dtype", "shape", "verification"),
    *("benchmark", "skill_ids", "evidence_level", "created_at"),
}
FAMILIAR_VERIFICATION = {
    *("passed", "max_abs_error", "max_rel_error", "tolerance", "tested_shapes", "failure_reason"),
}
FAMILIAR_BENCHMARK = {
    *("passed", "baseline_latency_us", "candidate_latency_us", "speedup", "warmup_iters"),
    *("benchmark_iters", "gpu_name", "notes"),
}


def folded(history: History) -> registry.RegistryState:
    return registry.fold(registry.EMPTY, history.events)


def rendered(history: History) -> dict:
    head = history.head
    return json.loads(registry.render(folded(history), Position(LEDGER_ID, head.seq, head.event_hash)))


def test_an_entry_has_every_field_that_readers_of_such_registries_know():
    history = opened()
    promoted(history)
    (entry,) = rendered(history)["kernels"]
    assert entry.keys() >= FAMILIAR
    assert entry["verification"].keys() >= FAMILIAR_VERIFICATION
    assert entry["benchmark"].keys() >= FAMILIAR_BENCHMARK
    assert entry["source_path"] == f"kernel_registry/kernels/{entry['kernel_id']}/kernel.py"
    assert entry["benchmark"]["candidate_latency_us"] == 1.0
    assert entry["benchmark"]["gpu_name"] == "H200"
    assert entry["benchmark"]["warmup_iters"] is None


def test_every_number_of_an_entry_can_be_followed_to_its_event():
    history = opened()
    promoted(history)
    (entry,) = rendered(history)["kernels"]
    by_seq = {recorded.seq: recorded for recorded in history.events}
    assert by_seq[entry["promoted_seq"]].event_hash == entry["promoted_event_hash"]
    assert by_seq[entry["verified_seq"]].event.report_sha256 == entry["verification"]["report_sha256"]
    measured = by_seq[entry["benchmark_seq"]].event
    assert measured.report_sha256 == entry["benchmark"]["report_sha256"]
    assert measured.workloads[0].samples_sha256 == entry["benchmark"]["samples_sha256"]
    assert measured.workloads[0].candidate.median_ns == entry["candidate_median_ns"]


def test_the_file_names_the_head_it_was_derived_from():
    history = opened()
    promoted(history)
    head = history.head
    assert rendered(history)["ledger"] == {
        "ledger_id": LEDGER_ID,
        "seq": head.seq,
        "event_hash": head.event_hash,
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"version": 2}, id="a version that skips one"),
        pytest.param({"kernel_id": "triton_rmsnorm_v1"}, id="an id that isn't family and version"),
        pytest.param({"family": "other"}, id="a family that isn't the task's"),
        pytest.param({"files": ()}, id="no kernel.py"),
        pytest.param({"verified_seq": 1}, id="a verification that is none"),
        pytest.param({"benchmark_seq": 99}, id="a benchmark that doesn't exist"),
        pytest.param({"candidate": digest("another")}, id="evidence about another candidate"),
        pytest.param({"candidate_median_ns": 999.0}, id="another candidate time"),
        pytest.param({"baseline_median_ns": 9999.0}, id="another baseline time"),
        pytest.param({"speedup": {"ratio": 2.0, "low": 1.9, "high": 2.1}}, id="another speedup"),
        pytest.param({"baseline": "compile"}, id="a baseline that wasn't measured"),
        pytest.param(
            {"coverage": {"verified": ({"batch": 9, "hidden_size": 9},), "measured": ()}},
            id="coverage beyond what was verified",
        ),
        pytest.param(
            {"coverage": {"verified": (), "measured": ({"batch": 1, "hidden_size": 4096},)}},
            id="coverage beyond what was measured",
        ),
    ],
)
def test_a_promotion_that_its_evidence_does_not_bear_out_is_a_broken_ledger(changes):
    history = opened()
    run = benchmarked(history)
    history.add(run.promotion(**changes))
    with pytest.raises(LedgerCorrupt):
        folded(history)


def test_a_simulated_verification_is_never_promoted():
    history = opened()
    run = benchmarked(history)
    simulated = run.verify(simulated=True).benchmark()
    history.add(simulated.promotion())
    with pytest.raises(LedgerCorrupt, match="simulated"):
        folded(history)


def test_a_benchmark_that_stands_on_another_verification_is_refused():
    history = opened()
    run = benchmarked(history)
    earlier = run.benchmark_seq
    run.verify()
    history.add(run.promotion(benchmark_seq=earlier))
    with pytest.raises(LedgerCorrupt, match="another verification"):
        folded(history)


def test_versions_count_on_after_a_revocation():
    history = opened()
    first = promoted(history)
    revoke(history, first)
    assert promoted(history, name="b").endswith("_v2")
    assert folded(history).kernels[first].status == "revoked"


@pytest.mark.parametrize("act", [deprecate, revoke])
def test_a_word_about_a_kernel_that_was_never_promoted_is_a_broken_ledger(act):
    history = opened()
    act(history, f"{task().family}_v1")
    with pytest.raises(LedgerCorrupt, match="never promoted"):
        folded(history)


def test_the_gravest_status_wins_and_a_revocation_is_final():
    history = opened()
    kernel_id = promoted(history)
    benchmark_seq = folded(history).kernels[kernel_id].benchmark.seq
    seen = []
    for act in (
        lambda: deprecate(history, kernel_id, by="another"),
        lambda: invalidate(history, benchmark_seq),
        lambda: revoke(history, kernel_id),
        lambda: deprecate(history, kernel_id),
    ):
        act()
        seen.append(folded(history).kernels[kernel_id].status)
    assert seen == ["deprecated", "evidence_invalid", "revoked", "revoked"]
    assert rendered(history)["kernels"][0]["status_reason"] == "wrong_result: off by one"


def test_a_second_revocation_does_not_soften_the_first():
    history = opened()
    kernel_id = promoted(history)
    revoke(history, kernel_id)
    event = history.events[-1].event
    history.add(event.model_copy(update={"severity": "withdrawn", "reason": "changed my mind"}))
    assert rendered(history)["kernels"][0]["status_reason"] == "wrong_result: off by one"


def test_evidence_withdrawn_before_the_promotion_does_not_count_either():
    history = opened()
    run = benchmarked(history)
    invalidate(history, run.benchmark_seq)
    kernel_id = run.promote()
    assert folded(history).kernels[kernel_id].status == "evidence_invalid"


def test_withdrawing_one_benchmark_leaves_kernels_on_others_alone():
    history = opened()
    first, second = promoted(history, name="a"), promoted(history, name="b")
    invalidate(history, folded(history).kernels[first].benchmark.seq)
    assert folded(history).kernels[second].status == "active"


def test_applying_an_event_leaves_the_earlier_state_as_it_was():
    history = opened()
    kernel_id = promoted(history)
    before = folded(history)
    revoke(history, kernel_id)
    after = registry.apply(before, history.events[-1])
    assert before.kernels[kernel_id].status == "active"
    assert after.kernels[kernel_id].status == "revoked"


def test_an_environment_that_was_never_captured_shows_as_unknown():
    history = opened()
    promoted(history)
    events = [recorded for recorded in history.events if recorded.event.TYPE != "EnvironmentCaptured"]
    (kernel,) = registry.ordered(registry.fold(registry.EMPTY, events))
    assert kernel.environment is None
    head = Position(LEDGER_ID, 1, digest("h"))
    (entry,) = json.loads(registry.render(registry.fold(registry.EMPTY, events), head))["kernels"]
    assert entry["environment"]["driver"] is None
