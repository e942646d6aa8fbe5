"""A phase that decides closes the experiment, once, and lessons rest on what was closed."""

import json
from pathlib import Path

import pytest

from forge.app.lessons import lesson
from forge.app.runs.states import GATE, finish_phase
from forge.app.workspace import Workspace
from forge.domain.digest import Digest, sha256
from forge.domain.protocol import SLOPE
from forge.errors import LessonRefused, UnknownName, UsageError
from forge.events import ExperimentClosed
from forge.pipeline.samples import render_samples
from tests.app.prepared import benchmarked, benchmarked_run, rejected_run, samples, verified, verified_run
from tests.cli.asking import HONEST, ask, copied, history


def closed(home: Path) -> list[ExperimentClosed]:
    with Workspace.open(home) as workspace:
        found = [recorded.event for recorded in workspace.ledger.read(types=("ExperimentClosed",))]
    return [event for event in found if isinstance(event, ExperimentClosed)]


def take_up_again(home: Path, run_id: str) -> None:
    with Workspace.open(home) as workspace:
        finish_phase(workspace, workspace.find_run(run_id))


def task_of_last(home: Path) -> str:
    with Workspace.open(home) as workspace:
        return workspace.find_run("last").task_id


def test_a_refused_candidates_experiment_is_closed_once(home: Path) -> None:
    run_id = rejected_run(home, seal=False)
    assert closed(home) == []
    take_up_again(home, run_id)
    (event,) = closed(home)
    assert (event.run_id, event.conclusion.ended) == (run_id, "incorrect")
    assert event.conclusion.reason == "INCORRECT_NUMERICAL"
    take_up_again(home, run_id)
    assert len(closed(home)) == 1


def test_a_timed_candidates_experiment_is_closed_over_the_baseline(home: Path) -> None:
    run_id = benchmarked_run(home)
    take_up_again(home, run_id)
    take_up_again(home, run_id)
    (event,) = closed(home)
    assert (event.conclusion.ended, event.conclusion.against) == ("improved", "eager")
    assert [one["type"] for one in history(home) if one["seq"] == event.decided_seq] == ["BenchmarkRecorded"]


@pytest.mark.parametrize(("protocol", "against"), [(SLOPE, "parent"), ("host_slope.v0", "eager")])
def test_a_parent_counts_where_the_same_clock_timed_it(
    home: Path, tmp_path: Path, protocol: str, against: str
) -> None:
    verified_run(home)
    parent = timed_by(home, copied(home, tmp_path / "elsewhere"), protocol)
    run_id = ask("run", "open", task_of_last(home), "--home", home, "--json").document["run_id"]
    folder = copied(HONEST, tmp_path / "child")
    (folder / "kernel.py").write_text((folder / "kernel.py").read_text() + "\nCHANGED = True\n")
    described = json.loads((folder / "metadata.json").read_text())
    (folder / "metadata.json").write_text(json.dumps({**described, "axis": "fusion", "parents": [parent]}))
    assert ask("submit", run_id, folder, "--home", home).status == 0
    with Workspace.open(home) as workspace:
        verified(workspace, run_id)
        benchmarked(workspace, run_id)
        finish_phase(workspace, workspace.find_run(run_id))
    (event,) = (one for one in closed(home) if one.run_id == run_id)
    assert event.conclusion.against == against


def timed_by(home: Path, elsewhere: Path, protocol: str) -> Digest:
    """Record a benchmark of the last run whose samples say what took them; the candidate's digest."""
    with Workspace.open(elsewhere) as workspace:
        event = benchmarked(workspace, workspace.find_run("last").run_id)
    stored = render_samples(samples()).replace(SLOPE.encode(), protocol.encode())
    with Workspace.open(home) as workspace:
        timing = event.workloads[0].model_copy(update={"samples_sha256": workspace.blobs.put(stored)})
        told = event.model_copy(update={"workloads": (timing,), "baseline_seqs": ()})
        workspace.append((told,), run_id=told.run_id, key="bench", actor=GATE)
    return event.candidate


def test_a_lesson_goes_from_an_experiment_into_the_next_brief(home: Path) -> None:
    run_id = benchmarked_run(home)
    task_id = task_of_last(home)
    words = ("lesson", "propose", "--op", "fused_add_rmsnorm", "--text", "One pass for both outputs.", "--home", home)
    early = ask(*words, "--from", run_id)
    assert early.status == 1
    assert "isn't closed" in early.error
    take_up_again(home, run_id)
    made = ask(*words, "--from", run_id, "--json").document
    assert (made["state"], made["ended"], made["playbook"]) == ("proposed", "improved", "playbook.cpp")
    assert ask(*words, "--from", run_id, "--json").document == made
    contradicted = ask(*words, "--from", run_id, "--ended", "regressed")
    assert contradicted.status == 1
    assert "ended 'improved', the lesson says 'regressed'" in contradicted.error
    taken = ask("lesson", "accept", made["lesson_id"], "--by", "ada", "--home", home, "--json").document
    assert (taken["state"], taken["accepted_by"]) == ("accepted", "ada")
    again = ask("lesson", "accept", made["lesson_id"], "--by", "bob", "--home", home)
    assert again.status == 1
    assert "was accepted by 'ada'" in again.error
    assert [one["state"] for one in ask("lesson", "list", "--home", home, "--json").document] == ["accepted"]
    opened = ask("run", "open", task_id, "--home", home, "--json").document
    brief = ask("prompt", opened["run_id"], "--home", home).out
    assert "One pass for both outputs." in brief.split("## `playbook.cpp`")[1]
    assert "| improved | 1.96x" in brief.split("## Required deliverables")[0]
    plan = [one for one in history(home) if one["type"] == "PlanAccepted"][-1]["payload"]
    (chosen,) = (one for one in plan["skills"] if one["id"] == "playbook.cpp")
    assert chosen["sha256"] == taken["playbook_sha256"]
    with Workspace.open(home) as workspace:
        assert sha256(workspace.blobs.get(chosen["sha256"])) == chosen["sha256"]
    page = ask("notes", "fused_add_rmsnorm", "--home", home)
    assert page.status == 0
    assert "accepted by ada, for `playbook.cpp`, improved" in page.out
    assert ask("notes", "fused_add_rmsnorm", "--home", home).out == page.out


def test_what_is_tried_later_can_stop_a_lesson_from_being_accepted(home: Path) -> None:
    run_id = benchmarked_run(home)
    take_up_again(home, run_id)
    with Workspace.open(home) as workspace:
        (found,) = (one.event for one in workspace.ledger.read(types=("ExperimentClosed",)))
        assert isinstance(found, ExperimentClosed)
        declared = found.model_copy(update={"layer": "L1", "axis": "fusion"})
        workspace.append((declared,), run_id=run_id, key="experiment:declared")
        made = lesson.propose(
            workspace, op="fused_add_rmsnorm", runs=(run_id,), text="One pass.", playbook=None, ended=None
        )
        slower = found.conclusion.model_copy(update={"ended": "regressed"})
        later = declared.model_copy(update={"run_id": "another", "conclusion": slower})
        place = workspace.append((later,), run_id="another", key="experiment:later").last_seq
        with pytest.raises(LessonRefused, match=f"ended otherwise in experiment {place}"):
            lesson.accept(workspace, made.proposed.event.lesson_id, by="ada")
        assert lesson.accepted_lessons(workspace) == {}


def test_bad_words_about_lessons_are_bad_input(home: Path) -> None:
    with Workspace.open(home) as workspace:
        with pytest.raises(UnknownName, match="lesson 'nothing'"):
            lesson.accept(workspace, "nothing", by="ada")
        with pytest.raises(UsageError, match="bad name"):
            lesson.accept(workspace, "nothing", by="a\x1b[2J")
        with pytest.raises(UnknownName, match="operation"):
            lesson.propose(workspace, op="luck", runs=(), text="x", playbook="playbook.cpp", ended=None)
    assert ask("notes", "luck", "--home", home).status == 2
    assert ask("notes", "rmsnorm", "--gpu", "luck", "--home", home).status == 2


def test_two_declared_axes_are_refused_at_the_door(home: Path, tmp_path: Path) -> None:
    folder = copied(HONEST, tmp_path / "two")
    described = json.loads((folder / "metadata.json").read_text())
    for axis, complaint in (("fusion, tiling", "expected one axis"), (["fusion", "tiling"], "expected one axis")):
        (folder / "metadata.json").write_text(json.dumps({**described, "axis": axis}))
        refused = ask("submit", "last", folder, "--home", home, "--json")
        assert refused.status == 1
        assert complaint in refused.document["reason"]["message"]
    (folder / "metadata.json").write_text(json.dumps({**described, "axis": "fusion"}))
    assert ask("submit", "last", folder, "--home", home).status == 0
    (submitted,) = (one["payload"] for one in history(home) if one["type"] == "CandidateSubmitted")
    assert (submitted["layer"], submitted["axis"]) == ("L1", "fusion")
