"""The files of a run: those of who came first, put back after a crash, and sealed as they were recorded."""

from pathlib import Path

import pytest

from forge.app.phases import phases
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.verdict import Reason
from forge.errors import IdempotencyConflict
from forge.events import PromotionDenied
from forge.ledger.runs.directory import RunDirectory
from forge.pipeline.outcome import Outcome
from tests.app.prepared import benchmarked_run, gathered, submitted, verified
from tests.cli.asking import HONEST, ask, copied, files, ledger_stands


def _other(folder: Path) -> Path:
    """Another candidate than the honest one."""
    other = copied(HONEST, folder)
    (other / "kernel.py").write_text((HONEST / "kernel.py").read_text() + "\n# another\n")
    return other


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_who_submits_second_leaves_no_file_and_is_told_who_was_first(home: Path, tmp_path: Path) -> None:
    with Workspace.open(home) as workspace:
        stale = workspace.find_run("last")
        submitted(workspace, stale.run_id)
        before, events = files(home), workspace.ledger.head.seq
        with pytest.raises(
            IdempotencyConflict, match=r"another submit of run '.*' was first \(event \d+\)"
        ) as refused:
            phases.submit_candidate(workspace, stale, _other(tmp_path / "other"), author="eve")
        assert refused.value.hint == f"forge run show {stale.run_id}"
        assert (files(home), workspace.ledger.head.seq) == (before, events)
        folder = workspace.directory(stale.run_id).path / "candidate"
        assert _contents(folder) == {path.name: path.read_bytes() for path in HONEST.iterdir() if path.is_file()}


def test_who_verifies_second_leaves_the_report_of_who_was_first(home: Path) -> None:
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        evidence = gathered(workspace, run_id)
        first = verified(workspace, run_id)
        assert evidence.attempt == 1
        late = Outcome(
            events=(first.model_copy(update={"report_sha256": "0" * 64}),),
            files={"verification_report.json": b"late"},
        )
        with pytest.raises(IdempotencyConflict, match="another verify of run"):
            workspace.record(late, run_id=run_id, key=f"verify:{run_id}:1", actor="system:gate")
        report = workspace.directory(run_id).path / "verification_report.json"
        assert report.read_bytes() == workspace.blobs.get(first.report_sha256)


def test_a_promotion_that_is_refused_leaves_no_file(home: Path) -> None:
    run_id = benchmarked_run(home)
    before = files(home)
    with Workspace.open(home) as workspace:
        stale = workspace.find_run(run_id)
        assert stale.submitted is not None
        denied = PromotionDenied(
            run_id=run_id,
            family="fused_add_rmsnorm",
            task_id=stale.task_id,
            candidate=stale.submitted.event.candidate,
            reason=Reason(code="TOO_SLOW", message="decided by another process"),
            gates=(),
            policy_sha256=workspace.keep_policy(),
        )
        workspace.append((denied,), run_id=run_id, key=f"promote:{run_id}", actor="system:gate")
        with pytest.raises(IdempotencyConflict, match="another promote of run"):
            phases.promote_candidate(workspace, stale)
    assert {name for name in files(home) - before if "promotion" in name} == set()


def _plant(folder: Path) -> None:
    (folder / "candidate" / "kernel.py").write_text("# planted\n")
    (folder / "candidate" / "helper.py").write_text("# planted\n")
    (folder / "candidate" / "metadata.json").unlink()
    (folder / "candidate" / "linked").symlink_to("/etc/hostname")
    (folder / "verification_report.json").write_text("{}")
    (folder / "benchmark_report.json").write_text("{}")
    (folder / "benchmark_samples.json").unlink()
    (folder / "agent_prompt.md").write_text("planted")
    (folder / "notes.txt").write_text("a person's own")


def test_what_was_planted_in_an_open_run_is_not_sealed_as_if_it_was_recorded(home: Path) -> None:
    run_id = benchmarked_run(home)
    opened = home / "forge_runs" / f".tmp-{run_id}"
    recorded = {path.relative_to(opened): path.read_bytes() for path in opened.rglob("*") if path.is_file()}
    _plant(opened)
    assert ask("promote", "last", "--home", home).status == 0
    folder = home / "forge_runs" / run_id
    found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {name: found.get(name) for name in recorded} == recorded
    assert {str(name) for name in found.keys() - recorded.keys()} == {"manifest.json", "notes.txt", "promotion.json"}
    assert ask("run", "check", "last", "--home", home).status == 0
    assert ledger_stands(home)


def test_a_candidates_folder_that_leads_elsewhere_is_made_anew_and_nothing_there_is_touched(
    home: Path, tmp_path: Path
) -> None:
    run_id = benchmarked_run(home)
    submitted = home / "forge_runs" / f".tmp-{run_id}" / "candidate"
    elsewhere = submitted.rename(tmp_path / "elsewhere")
    (elsewhere / "own.txt").write_text("a person's own")
    submitted.symlink_to(elsewhere)
    assert ask("promote", "last", "--home", home).status == 0
    assert (elsewhere / "own.txt").read_text() == "a person's own"
    assert sorted(path.name for path in (home / "forge_runs" / run_id / "candidate").iterdir()) == sorted(
        REQUIRED_FILES
    )
    assert ask("run", "check", "last", "--home", home).status == 0


def test_a_run_that_was_sealed_with_other_files_than_recorded_is_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions of Forge sealed it."""
    run_id = benchmarked_run(home)
    _plant(home / "forge_runs" / f".tmp-{run_id}")
    (home / "forge_runs" / f".tmp-{run_id}" / "candidate" / "linked").unlink()
    RunDirectory(home / "forge_runs", run_id).seal()
    assert ask("promote", "last", "--home", home).status == 0
    answer = ask("run", "check", "last", "--home", home, "--json")
    assert answer.status == 1
    assert {(one["kind"], one["path"]) for one in answer.document["problems"]} == {
        ("mismatch", "agent_prompt.md"),
        ("mismatch", "benchmark_report.json"),
        ("missing", "benchmark_samples.json"),
        ("unknown", "candidate/helper.py"),
        ("mismatch", "candidate/kernel.py"),
        ("missing", "candidate/metadata.json"),
        ("mismatch", "verification_report.json"),
    }


def test_what_stands_in_an_open_run_is_not_written_again_before_the_seal(home: Path) -> None:
    run_id = benchmarked_run(home)
    with Workspace.open(home) as workspace:
        folder = workspace.directory(run_id).path
        run = workspace.find_run(run_id)
        (folder / "skills.json").write_text("{}")
        workspace.put_back(run)
        before = {path.name: path.stat().st_ino for path in folder.iterdir()}
        workspace.put_back(run)
        assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
        assert (folder / "skills.json").read_text() != "{}"
