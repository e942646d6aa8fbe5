"""An author that gets feedback is judged at held-out shapes that are drawn for each candidate alone."""

import dataclasses
from pathlib import Path

import orjson
import pytest

from forge.app.phases.phases import submit_candidate
from forge.app.runs.states import GATE
from forge.app.sessions.judging import WITHHELD, judged_entry
from forge.app.workspace import Workspace
from forge.domain.own_operation import Axis
from forge.domain.task import HeldOut
from forge.domain.verdict import Reason, Rejected
from forge.events import CandidateRejected, CandidateVerified, Recorded
from forge.operations import find_operation
from forge.operations.own import own_operation
from forge.pipeline.held_out import drawn_for_one, gets_feedback
from forge.pipeline.job import RecordedCandidate, job_of
from forge.pipeline.promote import promote
from forge.pipeline.reused_judgement import judged_earlier
from forge.pipeline.verify import asked_held_out
from tests.app.prepared import gathered, submitted, verified
from tests.app.scripted import draft
from tests.cli.asking import HONEST
from tests.guest.test_module import CONTRACT
from tests.pipeline.making import case


def by_an_agent(home: Path) -> RecordedCandidate:
    """The honest candidate, handed in by an agent."""
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        submit_candidate(workspace, run, HONEST, author="agent:search", actor="agent:search")
        return gathered(workspace, run.run_id)


def test_each_judgement_of_an_agents_candidate_has_shapes_of_its_own(home: Path) -> None:
    evidence = by_an_agent(home)
    assert evidence.draws_held_out
    jobs = [job_of(evidence) for _ in range(3)]
    asked = [job.held_out for job in jobs]
    assert len({str(shapes) for shapes in asked}) == 3
    for job in jobs:
        assert len(job.held_out) == len(evidence.held_out.shapes)
        assert not set(map(str, job.held_out)) & set(map(str, (*evidence.held_out.shapes, evidence.task.shape)))
        again = drawn_for_one(evidence.task, job.operation, evidence.held_out, job.seed)
        assert asked_held_out(evidence, job) == again, "the recorded seed gives the shapes again"


def test_a_persons_candidate_is_asked_at_the_tasks_shapes(home: Path) -> None:
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        evidence = gathered(workspace, run_id)
        recorded = workspace.find_run(run_id).submitted
    assert not evidence.draws_held_out
    assert job_of(evidence).held_out == evidence.held_out.shapes
    assert recorded is not None
    for actor, author, fresh in (
        ("cli:ada@lab", "ada", False),
        ("cli:ada@lab", "agent:m", True),
        ("agent:m", "ada", True),
    ):
        event = recorded.event.model_copy(update={"author": author})
        assert gets_feedback(dataclasses.replace(recorded, actor=actor, event=event)) is fresh


def test_an_acceptance_at_the_tasks_shapes_is_not_taken_over_for_an_agent(home: Path) -> None:
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        accepted = verified(workspace, run_id)
        own = gathered(workspace, run_id)
        events = list(workspace.ledger.read(types=("CandidateSubmitted", "CandidateVerified")))
    own = dataclasses.replace(own, gates_sha256="a" * 64)
    history = [_with_gates(one, None) for one in events]
    assert accepted.held_out_seed is None
    assert judged_earlier(own, history) is not None
    by_agent = dataclasses.replace(own, draws_held_out=True)
    assert judged_earlier(by_agent, history) is None
    assert judged_earlier(by_agent, [_with_gates(one, 7) for one in events]) is not None


def _with_gates(recorded: Recorded, seed: int | None) -> Recorded:  # type: ignore[type-arg]  # of any event
    if not isinstance(recorded.event, CandidateVerified):
        return recorded
    changed = {"gates_sha256": "a" * 64, "held_out_seed": seed}
    return dataclasses.replace(recorded, event=recorded.event.model_copy(update=changed))


def test_an_agents_candidate_that_was_judged_at_the_tasks_shapes_is_not_promoted() -> None:
    assert promote(case(), earlier_versions=0).TYPE == "KernelPromoted"
    denied = promote(case(draws_held_out=True), earlier_versions=0)
    assert denied.TYPE == "PromotionDenied"
    drawn = case(draws_held_out=True, verified={"held_out_seed": 5})
    assert promote(drawn, earlier_versions=0).TYPE == "KernelPromoted"


@pytest.mark.parametrize(
    ("message", "counterexample", "withheld"),
    [
        ("wrong at batch=3, hidden_size=77", None, True),
        ("wrong at batch=16, hidden_size=77", None, False),
        ("wrong", {"shape": {"batch": 1, "hidden_size": 8}, "shrunk_from": {"batch": 3, "hidden_size": 77}}, True),
        ("wrong", {"shape": {"batch": 3, "hidden_size": 77}, "shrunk_from": None}, True),
        ("wrong", {"shape": {"batch": 1, "hidden_size": 8}, "shrunk_from": None}, False),
    ],
)
def test_a_refusal_at_a_drawn_shape_does_not_tell_it(
    home: Path, message: str, counterexample: object, withheld: bool
) -> None:
    by_an_agent(home)
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        assert run.submitted is not None
        report = {"held_out": [{"batch": 3, "hidden_size": 77}], "counterexample": counterexample}
        event = CandidateRejected(
            run_id=run.run_id,
            task_id=run.task_id,
            candidate=run.submitted.event.candidate,
            stage="verify",
            reason=Reason(code="INCORRECT_NUMERICAL", message=message),
            report_sha256=workspace.blobs.put(orjson.dumps(report)),
            held_out_seed=5,
        )
        workspace.append((event,), run_id=run.run_id, key="test:rejected", actor=GATE)
        entry = judged_entry(workspace.find_run(run.run_id), draft(), report=report)
    assert isinstance(entry.verdict, Rejected)
    assert entry.verdict.reason.code == "INCORRECT_NUMERICAL"
    assert entry.verdict.reason.message == (WITHHELD if withheld else message)


@pytest.mark.parametrize("seed", range(10))
def test_an_agents_candidate_is_asked_at_the_ends_of_ranges_and_at_odd_and_even_sizes(seed: int) -> None:
    contract = CONTRACT.model_copy(update={"varies": True, "axes": (Axis(name="rows", size=8, low=2, high=4000),)})
    ends = tuple({**contract.shape, **sizes} for sizes in ({"rows": 2}, {"rows": 4000}, {"batch": 1}))
    fixed = HeldOut(salt="0" * 64, shapes=(*ends, {**contract.shape, "batch": 7, "rows": 4000}))
    drawn = drawn_for_one(case().task, own_operation(contract, b"x"), fixed, seed)
    assert drawn[:3] == ends
    assert {shape["rows"] % 2 for shape in drawn[3:]} == {0, 1}
    assert any(shape["batch"] * shape["rows"] % 2 for shape in drawn[3:])
    assert any(shape["batch"] > contract.batch for shape in drawn[3:])


def test_shapes_for_a_reference_file_lie_in_its_declared_ranges() -> None:
    axis = Axis(name="rows", size=8, low=2, high=40)
    contract = CONTRACT.model_copy(update={"varies": True, "axes": (axis,)})
    fixed = HeldOut(salt="0" * 64, shapes=({**contract.shape, "batch": 64, "rows": 40},))
    operation = own_operation(contract, b"x")
    drawn = [shape for seed in range(20) for shape in drawn_for_one(case().task, operation, fixed, seed)]
    assert len({str(shape) for shape in drawn}) > 20
    assert all(2 <= shape["rows"] <= 40 and 2 <= shape["batch"] <= 64 for shape in drawn)
    none = HeldOut(salt="0" * 64, shapes=())
    assert drawn_for_one(case().task, operation, none, 1) == ()
    assert drawn_for_one(case().task, find_operation("softmax"), none, 1) == ()
