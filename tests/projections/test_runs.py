"""Where a run stands after each event."""

import pytest

from forge.domain.verdict import REASON_CODES, UNDECIDED, Reason
from forge.errors import LedgerCorrupt, RunNotFound
from forge.events.benchmark import BenchmarkErrored
from forge.events.candidate import CandidateRejected
from forge.events.plan import ChosenSkill, PlanAccepted
from forge.events.promote import PromotionDenied
from forge.events.prompt import PromptRendered
from forge.events.run import RunAborted, RunStarted
from forge.events.verify import VerificationErrored
from forge.events.work import LastPhase, WorkRequested, WorkWithdrawn
from forge.projections import runs
from forge.projections.run_lookup import the_run
from tests.projections.histories import History, Run, opened
from tests.projections.values import GATES, digest, task


def state_of(run: Run) -> runs.RunState:
    return runs.fold(runs.EMPTY, run.history.events).runs[run.run_id]


def started() -> Run:
    return Run(opened(), task(), "a").start()


def rejected(run: Run, stage: str) -> None:
    run.history.add(
        CandidateRejected.model_validate(
            {**run.ids, "stage": stage, "reason": Reason(code="BAD_SUBMISSION", message="no")}
        )
    )


def test_a_run_goes_through_the_phases_in_order():
    run, seen = started(), []
    ids = {"run_id": run.run_id, "task_id": run.task.task_id}
    seen.append(state_of(run).state)
    skill = ChosenSkill(id="s", sha256=digest("s"), provider="builtin", why="hygiene")
    run.history.add(
        PlanAccepted(**ids, skills=(skill,), queries=(), bottleneck_prior="memory", earlier_experiments=0)
    )
    seen.append(state_of(run).state)
    digests = dict.fromkeys(("template_sha256", "variables_sha256", "rendered_sha256"), digest("t"))
    run.history.add(PromptRendered(**ids, template="brief", template_version=1, **digests))
    seen.append(state_of(run).state)
    for phase in (run.submit, run.verify, run.benchmark, run.promote):
        phase()
        seen.append(state_of(run).state)
    assert seen == [
        *("planned", "planned", "prompt_ready", "candidate_ready", "verified", "benchmarked", "promoted"),
    ]
    last = state_of(run)
    assert last.sealed
    assert last.plan is not None
    assert last.prompt is not None
    assert last.task is not None
    assert last.task.event.task == run.task
    assert last.verified is not None
    assert last.verified.seq == run.verified_seq
    assert last.benchmark is not None
    assert last.benchmark.seq == run.benchmark_seq
    assert last.attempts == runs.Attempts(submit=1, verify=1, benchmark=1, promote=1)
    assert last.last_seq == run.history.head.seq


@pytest.mark.parametrize("code", REASON_CODES)
def test_a_failed_benchmark_allows_another_attempt_only_if_it_decided_nothing(code):
    run = started().submit().verify().fail(code)
    assert state_of(run).state == ("verified" if code in UNDECIDED else "failed")
    assert state_of(run).failure is not None


def test_the_machines_faults_leave_the_run_where_it_was():
    run = started().submit()
    fault = {**run.ids, "attempt": 1, "detail": "gone", "retry_of": None, "env_sha256": digest("e")}
    run.history.add(VerificationErrored(**fault))
    assert state_of(run).state == "candidate_ready"
    run.verify()
    run.history.add(BenchmarkErrored(**fault))
    last = state_of(run)
    assert last.state == "verified"
    assert last.error is not None
    assert last.error.event.TYPE == "BenchmarkErrored"
    assert last.attempts == runs.Attempts(submit=1, verify=2, benchmark=1)


def test_a_refusal_at_the_door_lets_the_author_submit_again():
    run = started()
    rejected(run, "submit")
    assert state_of(run).state == "planned"
    assert state_of(run).rejection is not None
    run.submit()
    last = state_of(run)
    assert (last.state, last.rejection, last.attempts.submit) == ("candidate_ready", None, 2)


@pytest.mark.parametrize("stage", ["screen", "build", "verify"])
def test_a_refusal_on_evidence_ends_in_rejected(stage):
    run = started().submit()
    rejected(run, stage)
    assert state_of(run).state == "rejected"


def test_a_denied_promotion_is_kept_with_its_reason():
    run = started().submit().verify().benchmark()
    reason = Reason(code="TOO_SLOW", message="1.05 < 1.10")
    run.history.add(
        PromotionDenied(**run.ids, family=run.task.family, reason=reason, gates=GATES, policy_sha256=digest("p"))
    )
    last = state_of(run)
    assert last.state == "denied"
    assert last.promotion is not None
    assert last.promotion.event.reason == reason


def test_another_submission_clears_what_was_recorded_about_the_one_before():
    run = started().submit().claim(2.0).verify().benchmark()
    run.name = "b"
    run.submit().claim(3.0)
    last = state_of(run)
    assert (last.state, last.verified, last.benchmark) == ("candidate_ready", None, None)
    assert [claim.event.value for claim in last.claims] == [3.0]


def test_evidence_about_another_candidate_than_the_submitted_one_is_a_broken_ledger():
    run = started().submit()
    run.name = "b"
    with pytest.raises(LedgerCorrupt, match="judges candidate"):
        state_of(run.verify())


def test_nothing_follows_an_aborted_run():
    run = started().submit()
    run.history.add(RunAborted(run_id=run.run_id, reason="the process went away"))
    run.verify()
    assert state_of(run).state == "aborted"
    assert not state_of(run).sealed


def test_an_abort_after_the_seal_changes_nothing():
    run = started().submit().verify().benchmark()
    run.promote()
    run.history.add(RunAborted(run_id=run.run_id, reason="late"))
    assert (state_of(run).state, state_of(run).sealed) == ("promoted", True)


def test_a_task_recorded_after_its_run_is_found_too():
    run = started()
    history = History()
    for recorded in (run.history.events[0], run.history.events[2], run.history.events[1]):
        history.add(recorded.event)
    (found,) = runs.fold(runs.EMPTY, history.events).runs.values()
    assert found.task is not None


def test_an_event_of_a_run_that_never_started_is_a_broken_ledger():
    history = opened()
    history.add(RunAborted(run_id="ghost", reason="?"))
    with pytest.raises(LedgerCorrupt, match="expected one that started before"):
        runs.fold(runs.EMPTY, history.events)


def test_a_run_that_starts_twice_is_a_broken_ledger():
    run = started()
    run.history.add(RunStarted(run_id=run.run_id, task_id=run.task.task_id, command="run", policy_sha256=digest("p")))
    with pytest.raises(LedgerCorrupt, match="second time"):
        state_of(run)


def test_one_event_at_a_time_gives_the_same_runs_and_leaves_earlier_states_alone():
    run = started().submit().claim(2.0, "overstated").verify().benchmark()
    run.promote()
    states = [runs.EMPTY]
    for recorded in run.history.events:
        states.append(runs.fold(states[-1], (recorded,)))
    assert states[-1] == runs.fold(runs.EMPTY, run.history.events)
    assert states[3].runs[run.run_id].state == "planned"


def test_a_run_is_found_by_its_name_or_by_an_unmistakable_beginning():
    history = opened()
    first, second = Run(history, task(), "a").start(), Run(history, task(op="softmax"), "b").start()
    state = runs.fold(runs.EMPTY, history.events)
    assert the_run(state.runs, first.run_id) == first.run_id
    assert the_run(state.runs, second.run_id[:-6]) == second.run_id
    for name in ("2026", "nothing", ""):
        with pytest.raises(RunNotFound):
            the_run(state.runs, name)


def request(run: Run, until: LastPhase = "promote") -> Run:
    run.history.add(WorkRequested(run_id=run.run_id, candidate=run.candidate.sha256, until=until))
    return run


def is_open(run: Run) -> bool:
    return state_of(run).request is not None


@pytest.mark.parametrize(
    ("until", "open_after"),
    [("verify", [False, False, False]), ("bench", [True, False, False]), ("promote", [True, True, False])],
)
def test_a_request_stands_until_its_last_phase(until: LastPhase, open_after: list[bool]):
    run, seen = request(started().submit(), until), []
    assert is_open(run)
    for phase in (run.verify, run.benchmark, run.promote):
        phase()
        seen.append(is_open(run))
    assert seen == open_after


@pytest.mark.parametrize("how", ["withdrawn", "errored", "rejected", "aborted", "another candidate", "undecided"])
def test_a_request_ends_with_whatever_leaves_a_worker_nothing_to_do(how: str):
    run = request(started().submit())
    ids = {"run_id": run.run_id, "task_id": run.task.task_id, "candidate": run.candidate.sha256}
    if how == "withdrawn":
        run.history.add(WorkWithdrawn(run_id=run.run_id, reason="not now"))
    elif how == "errored":
        run.history.add(
            VerificationErrored(**ids, attempt=1, detail="no memory", retry_of=None, env_sha256=digest("env"))
        )
    elif how == "rejected":
        rejected(run, "verify")
    elif how == "aborted":
        run.history.add(RunAborted(run_id=run.run_id, reason="closed"))
    elif how == "another candidate":
        Run(run.history, run.task, "b", run_id=run.run_id).submit()
    else:
        run.verify().fail("NOISE_TOO_HIGH")
    assert not is_open(run)
    request(run)
    assert is_open(run) is (how in ("withdrawn", "errored", "undecided"))
