"""Several folders in one command: each has its own run, a refusal stops no other, an interruption loses nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forge.cli.pipeline_summary import speedup_of
from tests.app.prepared import benchmarked_run
from tests.app.test_crash import killed
from tests.cli.asking import EXAMPLES, HONEST, Answer, ask, create_task, history, ledger_stands

NOTHING = "CPP_SOURCE = ''\n"
"""A kernel that is refused when its sources are screened, before anything is built."""


RIGHT = """import torch

def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return torch.nn.functional.rms_norm(h, (x.shape[-1],), weight, eps), h
"""


def folder(path: Path, *, kernel: str | None = None, without: str = "") -> Path:
    """A copy of the honest candidate with another kernel, or without a file."""
    shutil.copytree(HONEST, path, ignore=shutil.ignore_patterns("__pycache__"))
    if kernel is not None:
        (path / "kernel.py").write_text(kernel)
    if without:
        (path / without).unlink()
    return path


def task_of(home: Path) -> str:
    """The id of the only task."""
    (task,) = ask("task", "list", "--home", home, "--json").document
    return str(task["task_id"])


def runs_of(home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask("run", "list", "--home", home, "--json").document
    return found


def pipeline(home: Path, *arguments: object) -> Answer:
    answer = ask("pipeline", *arguments, "--home", home, "--json")
    assert ledger_stands(home)
    return answer


@pytest.fixture
def refused(tmp_path: Path) -> tuple[Path, Path]:
    """A folder that lacks a file, and one whose kernel defines nothing."""
    return folder(tmp_path / "bare", without="bench.py"), folder(tmp_path / "empty", kernel=NOTHING)


def test_each_folder_gets_a_run_of_the_task_and_a_refusal_stops_no_other(
    home: Path, refused: tuple[Path, Path]
) -> None:
    task = task_of(home)
    answer = pipeline(home, task, *refused)
    assert answer.status == 1
    assert answer.document["verdict"] == "rejected"
    assert answer.document["task_id"] == task
    bare, empty = answer.document["folders"]
    assert (bare["folder"], bare["phase"], set(bare["phases"])) == (str(refused[0]), "submit", {"submit"})
    assert (empty["folder"], empty["phase"], set(empty["phases"])) == (
        str(refused[1]),
        "verify",
        {"submit", "verify"},
    )
    assert {one["reason"]["code"] for one in (bare, empty)} == {"BAD_SUBMISSION"}
    assert empty["gate"] == "sources"
    waiting, *opened = runs_of(home)
    assert waiting["state"] == "prompt_ready"
    assert [one["run_id"] for one in opened] == [bare["run_id"], empty["run_id"]]
    assert {one["task_id"] for one in opened} == {task}
    assert answer.last == f"try: forge run show {bare['run_id']} --log"


def test_a_run_that_waits_takes_the_first_of_several_folders(home: Path, refused: tuple[Path, Path]) -> None:
    (waiting,) = runs_of(home)
    first, second = pipeline(home, "last", *refused).document["folders"]
    assert (first["run_id"], first["origin"]) == (waiting["run_id"], "named")
    assert second["origin"] == "opened"
    assert len(runs_of(home)) == 2


def test_one_folder_and_a_task_answer_as_one_folder_and_a_run(home: Path, refused: tuple[Path, Path]) -> None:
    of_run = pipeline(home, "last", refused[1]).document
    of_task = pipeline(home, task_of(home)[:10], refused[1]).document
    assert of_run.keys() == of_task.keys() >= {"verdict", "kernel_id", "reason", "gates", "phases", "task_id"}
    assert of_run["reason"] == of_task["reason"]
    assert of_run["folders"][0]["run_id"] != of_task["folders"][0]["run_id"]


def test_the_summary_names_folder_run_verdict_and_gate_and_escapes_what_controls_a_terminal(
    home: Path, tmp_path: Path
) -> None:
    hostile = folder(tmp_path / "a\x1b[31m", kernel=NOTHING)
    answer = ask("pipeline", task_of(home), hostile, folder(tmp_path / "bare", without="bench.py"), "--home", home)
    assert answer.status == 1
    summary = answer.out[answer.out.index("Pipeline") :]
    for words in (r"a\x1b[31m", runs_of(home)[-1]["run_id"], "rejected", "sources: BAD_SUBMISSION", "speedup"):
        assert words in summary
    assert "\x1b" not in answer.out + answer.err


def test_an_unfinished_run_is_taken_up_and_a_decided_one_is_not_asked_again(
    home: Path, refused: tuple[Path, Path]
) -> None:
    half_done, task = benchmarked_run(home), task_of(home)
    first = pipeline(home, task, HONEST, *refused, "--resume")
    assert first.status == 1
    honest, *others = first.document["folders"]
    assert (honest["run_id"], honest["origin"], honest["verdict"]) == (half_done, "taken up", "accepted")
    assert honest["kernel_id"] is not None
    against = honest["phases"]["bench"]["workloads"][0]["confirmation"]["baselines"]["eager"]
    assert honest["speedup"] == {"baseline": "eager", "ratio": against["speedup"], "ci95": against["ci95"]}
    assert [one["origin"] for one in others] == ["opened", "opened"]
    before = history(home)
    second = pipeline(home, task, HONEST, *refused, "--resume")
    assert history(home) == before
    assert second.status == 1
    assert second.err.count("and not asked again") == 3
    for one, earlier in zip(second.document["folders"], first.document["folders"], strict=True):
        assert one["origin"] == "decided before"
        same = ("folder", "run_id", "verdict", "reason", "gate", "kernel_id", "speedup")
        assert [one[name] for name in same] == [earlier[name] for name in same]
    alone = ask("pipeline", task, HONEST, "--resume", "--home", home)
    assert (alone.status, history(home)) == (0, before)
    assert "decided before" in alone.out


def test_other_bytes_another_author_or_a_closed_run_are_asked_anew(home: Path, tmp_path: Path) -> None:
    task, kernel = task_of(home), folder(tmp_path / "kernel", kernel=NOTHING)
    metadata = json.loads((kernel / "metadata.json").read_text())
    (kernel / "metadata.json").write_text(json.dumps({name: metadata[name] for name in ("name", "op", "language")}))
    ask("submit", "last", kernel, "--author", "ada", "--home", home)
    (submitted,) = runs_of(home)
    ask("run", "abort", "last", "--home", home)

    def origin(*more: object) -> tuple[str, str]:
        (one,) = pipeline(home, task, kernel, "--resume", *more).document["folders"]
        return one["origin"], one["run_id"]

    asked, run_id = origin("--author", "ada")
    assert (asked, run_id != submitted["run_id"]) == ("opened", True)
    assert origin() == ("decided before", run_id)
    assert origin("--author", "ada") == ("decided before", run_id)
    assert origin("--author", "grace")[0] == "opened"
    (kernel / "kernel.py").write_text(NOTHING + "# another\n")
    assert origin()[0] == "opened"


def test_a_pipeline_that_was_killed_goes_on_and_asks_nothing_twice(
    open_workspace: Path, tmp_path: Path, refused: tuple[Path, Path]
) -> None:
    task = task_of(open_workspace)
    for home in killed(open_workspace, tmp_path / "killed", "pipeline", task, *refused, most=6, status=1):
        answer = pipeline(home, task, *refused, "--resume")
        assert answer.status == 1, answer
        assert [one["phase"] for one in answer.document["folders"]] == ["submit", "verify"]
        asked = [one["type"] for one in history(home) if one["type"].startswith("Candidate")]
        assert sorted(asked) == ["CandidateRejected", "CandidateRejected", "CandidateSubmitted"]


def test_a_machine_that_cannot_ask_ends_the_pipeline_and_keeps_what_was_found(empty: Path, tmp_path: Path) -> None:
    task = create_task(empty, language="torch", gpu="l40s")["task_id"]
    elsewhere = folder(tmp_path / "elsewhere", kernel=RIGHT)
    described = {"name": "a kernel", "op": "fused_add_rmsnorm", "language": "torch"}
    (elsewhere / "metadata.json").write_text(json.dumps(described))
    answer = pipeline(empty, task, folder(tmp_path / "bare", without="bench.py"), elsewhere)
    assert answer.status == 3, answer
    assert answer.document["error"]["code"] == "ENVIRONMENT_UNFIT"
    (bare,) = answer.document["folders"]
    assert bare["phase"] == "submit"
    assert set(answer.document["phases"]) == {"submit"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("last", "missing"), "'missing' is not a folder: expected one with kernel.py"),
        (("last", HONEST, f"{EXAMPLES}/../examples/honest_cpp"), "again: expected each folder once"),
        (("nothing", HONEST), "no run and no task by the name 'nothing'"),
        (("", HONEST), "no run and no task by the name ''"),
        (("last", HONEST, "--again", "--resume"), "--again and --resume are given: expected one"),
    ],
)
def test_bad_input_opens_no_run(home: Path, arguments: tuple[object, ...], said: str) -> None:
    before = history(home)
    answer = pipeline(home, *arguments)
    assert answer.status == 2
    assert said in answer.error
    assert history(home) == before


def test_a_beginning_of_several_tasks_is_refused(home: Path) -> None:
    create_task(home, language="torch")
    create_task(home, "--min-speedup", "1.5")
    answer = pipeline(home, "cpp", HONEST)
    assert answer.status == 2
    assert "0 runs and 2 tasks (cpp_" in answer.error


def test_a_summary_has_the_confirmations_speedup_where_one_was_made() -> None:
    def timed(ratio: float) -> dict[str, Any]:
        return {"baselines": {"eager": {"speedup": ratio, "ci95": [ratio - 0.1, ratio + 0.1]}}}

    first = timed(2.0)
    for confirmation, expected in ((None, 2.0), (timed(1.5), 1.5)):
        answer = {"baseline_used": "eager", "workloads": [{**first, "confirmation": confirmation}]}
        found = speedup_of(answer)
        assert found is not None
        assert (found["ratio"], found["ci95"][0]) == (expected, expected - 0.1)
