"""What was judged once isn't judged again on the same terms; the earlier judgement is named."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.app.prepared import benchmarked_run
from tests.cli.asking import EXAMPLES, ask, history, ledger_stands

RIGHT = """
import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    return torch.nn.functional.rms_norm(h, (x.shape[-1],), weight, eps), h
"""
WRONG = RIGHT.replace("weight, eps), h", "weight, eps) * 1.5, h")


@pytest.fixture
def task(empty: Path) -> str:
    made = ask(
        *("task", "create", "--home", empty, "--op", "fused_add_rmsnorm", "--language", "torch", "--gpu", "cpu"),
        *("--dtype", "fp32", "--shape", "batch=4,hidden_size=64", "--json"),
    ).document
    assert made["admission"]["killed"] == made["admission"]["mutants"]
    ask("run", "abort", made["run_id"], "--home", empty)
    return str(made["task_id"])


def candidate(folder: Path, kernel: str, *, tests: str = "def test_nothing(): pass\n") -> Path:
    shutil.copytree(EXAMPLES / "honest_cpp", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernel.py").write_text(kernel)
    (folder / "test_correctness.py").write_text(tests)
    described = {"name": "a kernel", "op": "fused_add_rmsnorm", "language": "torch"}
    (folder / "metadata.json").write_text(json.dumps(described))
    return folder


def judged(home: Path, task: str, folder: Path, *options: str) -> dict[str, Any]:
    run = ask("run", "open", task, "--home", home, "--json").document["run_id"]
    assert ask("submit", run, folder, "--home", home).status == 0
    answer: dict[str, Any] = ask("verify", run, *options, "--home", home, "--json").document
    return answer


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_the_same_bytes_are_judged_once(empty: Path, task: str, tmp_path: Path) -> None:
    folder = candidate(tmp_path / "wrong", WRONG)
    first = judged(empty, task, folder)
    assert first["verdict"] == "rejected"
    assert first["reused"] is None
    seq = next(one["seq"] for one in reversed(history(empty)) if one["type"] == "CandidateRejected")
    second = judged(empty, task, folder)
    assert second["reused"]["seq"] == seq
    assert {**second, "reused": None, "report": first["report"]} == first
    assert Path(second["report"]).read_bytes() == Path(first["report"]).read_bytes()
    assert judged(empty, task, folder, "--again")["reused"] is None
    assert judged(empty, task, folder)["reused"]["seq"] > seq
    assert ledger_stands(empty)


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_an_acceptance_is_inherited_by_the_same_bytes_and_failed_own_tests_sink_no_twin(
    empty: Path, task: str, tmp_path: Path
) -> None:
    failing = candidate(tmp_path / "failing", RIGHT, tests="def test_it(): assert False\n")
    assert judged(empty, task, failing)["gates"][-1]["name"] == "own_tests"
    folder = candidate(tmp_path / "right", RIGHT)
    mended = judged(empty, task, folder)
    assert mended["verdict"] == "accepted"
    assert mended["reused"] is None
    again = judged(empty, task, folder)
    assert again["verdict"] == "accepted"
    assert again["reused"] is not None
    assert ask("run", "show", "last", "--home", empty, "--json").document["state"] == "verified"
    twin = judged(empty, task, candidate(tmp_path / "twin", RIGHT + "# the same program\n"))
    assert twin["verdict"] == "accepted"
    assert twin["reused"] is None
    assert ledger_stands(empty)


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_a_refusal_is_inherited_by_the_same_program_and_says_so(empty: Path, task: str, tmp_path: Path) -> None:
    judged(empty, task, candidate(tmp_path / "wrong", WRONG))
    twin = candidate(tmp_path / "twin", '"""A docstring."""\n' + WRONG + "# a comment\n")
    run = ask("run", "open", task, "--home", empty, "--json").document["run_id"]
    ask("submit", run, twin, "--home", empty)
    answer = ask("verify", run, "--home", empty)
    assert answer.status == 1
    assert "already judged: rejected at " in answer.err
    assert "(event " in answer.err
    other = judged(empty, task, candidate(tmp_path / "other", WRONG.replace("1.5", "1.25")))
    assert other["reused"] is None


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_another_policy_is_another_judge(empty: Path, task: str, tmp_path: Path) -> None:
    folder = candidate(tmp_path / "wrong", WRONG)
    judged(empty, task, folder)
    with (empty / "policy.toml").open("a") as policy:
        policy.write("verify_limit_s = 100.0\n")
    assert judged(empty, task, folder)["reused"] is None


def test_a_policy_that_was_edited_since_the_run_was_opened_is_stored_with_what_it_decides(home: Path) -> None:
    benchmarked_run(home)
    with (home / "policy.toml").open("a") as policy:
        policy.write("verify_limit_s = 99.0\n")
    assert ask("promote", "last", "--home", home).status in (0, 1)
    assert history(home)[-1]["type"] in ("RunSealed", "CheckpointPublished")
    assert ledger_stands(home)


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_a_counterexample_and_findings_are_told_to_people_and_programs(
    empty: Path, task: str, tmp_path: Path
) -> None:
    kernel = "import time\ncalls = []\n" + WRONG.replace("    h = x", "    calls.append(time.time())\n    h = x")
    run = ask("run", "open", task, "--home", empty, "--json").document["run_id"]
    ask("submit", run, candidate(tmp_path / "wrong", kernel), "--home", empty)
    shown = ask("verify", run, "--home", empty)
    for words in (
        "Findings in the sources",
        "kernel.py:8:18",
        "Counterexample: batch=1,hidden_size=1",
        "shrunk from",
    ):
        assert words in shown.out, shown.out
    found = judged(empty, task, tmp_path / "wrong")
    assert {one["kind"] for one in found["findings"]} == {"clock", "state"}
    assert found["counterexample"]["got_values"]["sizes"] == [1, 1]
    report = json.loads((empty / "forge_runs" / run / "verification_report.json").read_text())
    assert report["findings"] == found["findings"]


def test_what_is_forbidden_is_refused_before_anything_runs(empty: Path, task: str, tmp_path: Path) -> None:
    kernel = "import os\n" + RIGHT.replace("    h = x", "    os.fork()\n    h = x")
    found = judged(empty, task, candidate(tmp_path / "forks", kernel))
    assert found["stage"] == "screen"
    assert found["reason"]["code"] == "STATIC_POLICY"
    assert found["reason"]["message"].startswith("kernel.py:7:5: os.fork ")
