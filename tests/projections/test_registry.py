"""The registry: what a promotion must bear out, and what becomes of a kernel."""

import json
from dataclasses import replace

import pytest

from forge.domain.evidence import GateResult
from forge.errors import LedgerCorrupt
from forge.events.benchmark import BenchmarkInvalidated
from forge.events.run import RunSealed
from tests.projections.histories import (
    ACTOR,
    LEDGER_ID,
    History,
    Run,
    asked,
    benchmarked,
    deprecate,
    invalidate,
    opened,
    promoted,
    rebuild,
    revoke,
)
from tests.projections.values import GATES, candidate, captured, digest, environment, task

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


def rendered(history: History) -> dict:
    return json.loads(rebuild(history.events, history.head)["verified_kernels.json"])


def status_of(history: History, kernel_id: str) -> str:
    return {entry["kernel_id"]: entry["status"] for entry in rendered(history)["kernels"]}[kernel_id]


def benchmark_of(history: History, kernel_id: str) -> int:
    return dict(asked(history, "SELECT kernel_id, benchmark_seq FROM kernels"))[kernel_id]


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


def test_the_file_names_the_newest_event_that_changed_it():
    history = opened()
    assert rendered(history)["ledger"]["seq"] == 1
    kernel_id = promoted(history)
    promotion = history.events[-2]
    assert promotion.event.kernel_id == kernel_id
    assert rendered(history)["ledger"] == {
        "ledger_id": LEDGER_ID,
        "seq": promotion.seq,
        "event_hash": promotion.event_hash,
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
        pytest.param({"files": candidate("another").files}, id="files of another candidate"),
        pytest.param({"entry_point": "softmax"}, id="another entry point"),
        pytest.param({"artifact_sha256": digest("another")}, id="an artifact that wasn't verified"),
        pytest.param({"task_id": f"{task().family}_00000000"}, id="another task's id"),
        pytest.param({"run_id": "another"}, id="another run"),
        pytest.param({"author": "eve"}, id="another author"),
        pytest.param({"skills": ("op.norms",)}, id="skills that its plan didn't choose"),
        pytest.param({"policy_sha256": digest("another")}, id="another policy"),
        pytest.param({"env_sha256": environment("h100").env_sha256}, id="another machine"),
        pytest.param({"perf_key": digest("another")}, id="another machine's times"),
        pytest.param({"abi_key": digest("another")}, id="another machine's software"),
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
    with pytest.raises(LedgerCorrupt, match=f"event {len(history.events)} promotes"):
        rendered(history)


@pytest.mark.parametrize("gpu", ["h100", "cpu"])
@pytest.mark.parametrize("measured_too", [False, True])
def test_a_promotion_stands_on_machines_with_the_gpu_of_its_task(gpu, measured_too):
    """An H100's evidence promotes nothing for an H200, and neither does an interpreter's that is called real."""
    history = opened()
    history.add(captured(gpu))
    elsewhere = environment(gpu)
    run = benchmarked(history).verify(env_sha256=elsewhere.env_sha256).benchmark()
    changes = {}
    if measured_too:
        names = ("env_sha256", "perf_key", "abi_key")
        changes = {name: getattr(elsewhere, name) for name in names}
        last = history.events[-1]
        history.events[-1] = replace(last, event=last.event.model_copy(update={"env_sha256": elsewhere.env_sha256}))
    history.add(run.promotion(**changes))
    with pytest.raises(LedgerCorrupt, match="for a task on 'h200'"):
        rendered(history)


def test_a_simulated_verification_is_never_promoted():
    history = opened()
    run = benchmarked(history)
    simulated = run.verify(simulated=True).benchmark()
    history.add(simulated.promotion())
    with pytest.raises(LedgerCorrupt, match="simulated"):
        rendered(history)


FAILED = GateResult(name="bounds", verdict="failed", observed="a write beyond the end", threshold="none")
NOT_ASKED = GateResult(name="bounds", verdict="not asked", observed="no pointers", threshold="none")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"gates": (*GATES, FAILED)}, "gate 'bounds', which failed", id="a gate that failed"),
        pytest.param({"gates": (NOT_ASKED,)}, "in which no gate passed", id="no gate that passed"),
        pytest.param(
            {"env_sha256": digest("unknown")}, "isn't in the ledger before it", id="a machine that no event has"
        ),
        pytest.param({"reused_seq": 1}, "no judgement of its own", id="a judgement reused that is none"),
        pytest.param({"reused_seq": 99}, "no judgement of its own", id="a judgement reused that doesn't exist"),
    ],
)
def test_a_promotion_stands_on_a_judgement(changes, says):
    history = opened()
    run = benchmarked(history).verify(**changes).benchmark()
    history.add(run.promotion())
    with pytest.raises(LedgerCorrupt, match=says):
        rendered(history)


def test_a_promotion_itself_names_no_gate_that_failed():
    history = opened()
    run = benchmarked(history)
    history.add(run.promotion(gates=(*GATES, FAILED)))
    with pytest.raises(LedgerCorrupt, match="its own gate 'bounds', which failed"):
        rendered(history)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param({"simulated": True}, {}, id="one on a substitute for the target"),
        pytest.param({}, {"report_sha256": digest("another")}, id="one with another report"),
        pytest.param({}, {"gates_sha256": digest("another")}, id="one by another judge"),
    ],
)
def test_a_judgement_that_is_reused_is_the_same_word_for_word(earlier, later):
    history = opened()
    first = Run(history, task(), "a").start().submit().verify(**earlier)
    second = Run(history, task(), "a").start().submit().verify(reused_seq=first.verified_seq, **later).benchmark()
    second.promote()
    with pytest.raises(LedgerCorrupt, match="says something else"):
        rendered(history)


def test_a_judgement_of_the_same_bytes_is_reused_once_and_not_in_turn():
    history = opened()
    first = Run(history, task(), "a").start().submit().verify()
    second = Run(history, task(), "a").start().submit().verify(reused_seq=first.verified_seq).benchmark()
    second.promote()
    assert [entry["status"] for entry in rendered(history)["kernels"]] == ["active"]
    third = Run(history, task(), "a").start().submit().verify(reused_seq=second.verified_seq).benchmark()
    third.promote()
    with pytest.raises(LedgerCorrupt, match="no judgement of its own"):
        rendered(history)


@pytest.mark.parametrize(
    ("successor", "says"),
    [
        pytest.param("another", "which wasn't promoted before it", id="one that doesn't exist"),
        pytest.param(f"{task().family}_v1", "the kernel itself", id="itself"),
        pytest.param(f"{task(dtype='fp16').family}_v1", "expected rmsnorm h200 bf16", id="one of another slot"),
    ],
)
def test_a_successor_is_another_kernel_of_the_same_slot(successor, says):
    history = opened()
    kernel_id = promoted(history)
    promoted(history, wanted=task(dtype="fp16"))
    deprecate(history, kernel_id, by=successor)
    with pytest.raises(LedgerCorrupt, match=says):
        rendered(history)


def test_a_successor_that_is_promoted_later_is_none_yet():
    history = opened()
    kernel_id = promoted(history)
    deprecate(history, kernel_id, by=f"{task().family}_v2")
    promoted(history, name="b")
    with pytest.raises(LedgerCorrupt, match="wasn't promoted before it"):
        rendered(history)


@pytest.mark.parametrize("piece", ["event:1:{other}", "event:99:{own}", "event:0:{own}", "event:1", "event:x:{own}"])
def test_an_event_that_a_revocation_names_is_before_it_and_has_that_hash(piece):
    history = opened()
    kernel_id = promoted(history)
    own = history.events[0].event_hash
    revoke(history, kernel_id, f"event:1:{own}", "sha256:" + digest("a report"))
    assert status_of(history, kernel_id) == "revoked"
    revoke(history, kernel_id, piece.format(own=own, other=digest("other")))
    with pytest.raises(LedgerCorrupt, match="is no event before it"):
        rendered(history)


def test_who_withdraws_a_benchmark_is_who_recorded_that():
    history = opened()
    run = benchmarked(history)
    named = {"candidate": run.candidate.sha256, "benchmark_seq": run.benchmark_seq}
    history.add(BenchmarkInvalidated(**named, why="clock", by="cli:ada@lab"))
    with pytest.raises(LedgerCorrupt, match=f"'cli:ada@lab' as the one who decided; '{ACTOR}' recorded it"):
        rendered(history)


@pytest.mark.parametrize(("candidate", "ahead"), [("another", 0), (None, -1), (None, 99)])
def test_only_an_earlier_benchmark_of_the_named_candidate_is_withdrawn(candidate, ahead):
    history = opened()
    run = benchmarked(history)
    run.promote()
    named = run.candidate.sha256 if candidate is None else digest(candidate)
    withdrawn = run.benchmark_seq + ahead
    history.add(BenchmarkInvalidated(candidate=named, benchmark_seq=withdrawn, why="clock", by=ACTOR))
    with pytest.raises(LedgerCorrupt, match="expected an earlier benchmark of candidate"):
        rendered(history)


def test_a_run_promotes_once():
    """After a revocation its evidence brings no kernel back under the next number."""
    history = opened()
    run = benchmarked(history)
    revoke(history, run.promote())
    history.add(run.promotion())
    with pytest.raises(LedgerCorrupt, match="decided before"):
        rendered(history)


def test_a_run_that_was_sealed_promotes_nothing_more():
    """A forger adds evidence to a run that failed, after its end."""
    history = opened()
    run = benchmarked(history).fail()
    history.add(RunSealed(run_id=run.run_id, outcome="failed", manifest_sha256=digest("manifest")))
    history.add(run.benchmark().promotion())
    with pytest.raises(LedgerCorrupt, match="decided before"):
        rendered(history)


@pytest.mark.parametrize("outcome", ["promoted", "rejected", "benchmarked", "denied"])
def test_a_seal_states_what_became_of_its_run(outcome):
    history = opened()
    run = benchmarked(history).fail()
    history.add(RunSealed(run_id=run.run_id, outcome=outcome, manifest_sha256=digest("manifest")))
    with pytest.raises(LedgerCorrupt, match=f"as '{outcome}': expected 'failed'"):
        rendered(history)


def test_a_candidate_that_was_replaced_in_its_run_is_not_promoted():
    history = opened()
    run = benchmarked(history)
    Run(history, task(), "b", run_id=run.run_id).submit()
    history.add(run.promotion())
    with pytest.raises(LedgerCorrupt, match="but its run submitted"):
        rendered(history)


def test_a_verification_for_another_task_is_refused():
    history = opened()
    easy = Run(history, task(shape={"batch": 1, "hidden_size": 8}), "a").start().submit().verify()
    hard = Run(history, task(), "a").start().submit()
    hard.verified_seq, hard.verified = easy.verified_seq, (*easy.verified, task().shape)
    hard.benchmark()
    history.add(hard.promotion(coverage={"verified": (), "measured": ()}))
    with pytest.raises(LedgerCorrupt, match="another run_id"):
        rendered(history)


def test_a_benchmark_that_stands_on_another_verification_is_refused():
    history = opened()
    run = benchmarked(history)
    earlier = run.benchmark_seq
    run.verify()
    history.add(run.promotion(benchmark_seq=earlier))
    with pytest.raises(LedgerCorrupt, match="another verification"):
        rendered(history)


def test_versions_count_on_after_a_revocation():
    history = opened()
    first = promoted(history)
    revoke(history, first)
    assert promoted(history, name="b").endswith("_v2")
    assert status_of(history, first) == "revoked"


@pytest.mark.parametrize("act", [deprecate, revoke])
def test_a_word_about_a_kernel_that_was_never_promoted_is_a_broken_ledger(act):
    history = opened()
    act(history, f"{task().family}_v1")
    with pytest.raises(LedgerCorrupt, match="expected one that was promoted"):
        rendered(history)


def test_the_gravest_status_wins_and_a_revocation_is_final():
    history = opened()
    kernel_id = promoted(history)
    benchmark_seq = benchmark_of(history, kernel_id)
    seen = []
    for act in (
        lambda: deprecate(history, kernel_id),
        lambda: invalidate(history, benchmark_seq),
        lambda: revoke(history, kernel_id),
        lambda: deprecate(history, kernel_id),
    ):
        act()
        seen.append(status_of(history, kernel_id))
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
    assert status_of(history, kernel_id) == "evidence_invalid"


def test_withdrawing_one_benchmark_leaves_kernels_on_others_alone():
    history = opened()
    first, second = promoted(history, name="a"), promoted(history, name="b")
    invalidate(history, benchmark_of(history, first))
    assert status_of(history, first) == "evidence_invalid"
    assert status_of(history, second) == "active"


def test_a_promotion_on_a_machine_that_was_never_captured_is_refused():
    history = opened()
    run = benchmarked(history)
    history.events = [one for one in history.events if one.event.TYPE != "EnvironmentCaptured"]
    history.events = renumbered(history)
    run.verified_seq, run.benchmark_seq = run.verified_seq - 1, run.benchmark_seq - 1
    run.promote()
    with pytest.raises(LedgerCorrupt, match="which isn't in the ledger before it"):
        rendered(history)


def renumbered(history: History) -> list:
    """The events as if the ones taken out had never been, with places and the evidence they name."""
    other = History()
    for recorded in history.events:
        event = recorded.event
        if event.TYPE == "BenchmarkRecorded":
            event = event.model_copy(update={"verified_seq": event.verified_seq - 1})
        other.add(event)
    return other.events
