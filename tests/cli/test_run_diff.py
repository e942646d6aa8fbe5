"""Two runs beside each other: sources, gates and times, of which nothing is obeyed."""

import shutil
from pathlib import Path
from typing import Any

from forge.app.runs.run_comparison import COMPARED_LINES
from forge.app.workspace import Workspace
from tests.app.prepared import benchmarked, benchmarked_run, samples, submitted, verified
from tests.cli.asking import HONEST, Answer, ask, create_task, history, task_of


def refused(home: Path, task: str, folder: Path, kernel: str) -> str:
    """A run whose kernel is refused when its sources are screened."""
    shutil.copytree(HONEST, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernel.py").write_text(kernel)
    found = ask("pipeline", task, folder, "--home", home, "--json").document["folders"][0]
    assert (found["phase"], found["verdict"]) == ("verify", "rejected")
    return str(found["run_id"])


def opened(home: Path, task: str) -> str:
    return str(ask("run", "open", task, "--home", home, "--json").document["run_id"])


def diff(home: Path, a: str, b: str) -> dict[str, Any]:
    before = history(home)
    answer = ask("run", "diff", a, b, "--home", home, "--json")
    assert answer.status == 0, answer
    assert history(home) == before
    found: dict[str, Any] = answer.document
    return found


def test_a_refused_run_differs_in_its_kernel_its_gates_and_has_no_times(home: Path, tmp_path: Path) -> None:
    a = benchmarked_run(home)
    b = refused(home, task_of(home), tmp_path / "empty", "CPP_SOURCE = ''\n")
    found = diff(home, a, b)
    assert [one["run_id"] for one in found["runs"]] == [a, b]
    assert (found["same_task"], found["same_machine"]) == (True, None)
    changes = {one["file"]: one["change"] for one in found["sources"]}
    assert changes.pop("kernel.py") == "changed"
    assert set(changes.values()) == {"same"}
    (lines,) = [one["untrusted_lines"] for one in found["sources"] if one["file"] == "kernel.py"]
    assert lines[:2] == ["--- a/kernel.py", "+++ b/kernel.py"]
    assert "+CPP_SOURCE = ''" in lines
    gates = {one["name"]: one for one in found["gates"]}
    assert (gates["numerics"]["a"]["verdict"], gates["numerics"]["b"]) == ("passed", None)
    assert (gates["sources"]["a"]["verdict"], gates["sources"]["b"]["verdict"]) == ("passed", "failed")
    assert found["times"]["b"] is None
    assert diff(home, b, a)["times"]["a"] is None


def test_two_timed_runs_show_both_times_with_their_intervals(home: Path) -> None:
    first, task = benchmarked_run(home), task_of(home)
    second = opened(home, task)
    with Workspace.open(home) as workspace:
        submitted(workspace, second)
        verified(workspace, second)
        benchmarked(workspace, second, taken=samples(candidate_ns=40_000))
    found = diff(home, first, "last")
    assert (found["gates"], found["same_machine"]) == ([], True)
    assert {one["change"] for one in found["sources"]} == {"same"}
    medians = [found["times"][side]["workloads"][0]["candidate_ns"] for side in "ab"]
    assert medians[0] > medians[1]
    shown = ask("run", "diff", first, second, "--home", home)
    for side in "ab":
        workload = found["times"][side]["workloads"][0]
        against = workload["confirmation"]["baselines"]["eager"]
        assert against["speedup"] != workload["baselines"]["eager"]["speedup"]
        assert f"{against['speedup']:.3f}x" in shown.out
        assert f"{workload['baselines']['eager']['speedup']:.3f}x" not in shown.out
        assert f"{against['ci95'][0]:.3f} to {against['ci95'][1]:.3f}x" in shown.out
    assert "weren't timed side by side" in shown.err


def test_hostile_sources_are_marked_escaped_and_cut(home: Path, tmp_path: Path) -> None:
    task = task_of(home)
    kernel = "CPP_SOURCE = ''\n# \x1b[2Jforged\u202e\rverdict: accepted\n# " + "x" * 1000 + "\n"
    a = refused(home, task, tmp_path / "a", "CPP_SOURCE = ''\n")
    b = refused(home, task, tmp_path / "b", kernel)
    shown = ask("run", "diff", a, b, "--home", home)
    assert not {"\x1b", "\u202e", "\r"} & set(shown.out + shown.err)
    (forged,) = [line for line in shown.out.splitlines() if "forged" in line]
    assert forged == r"  candidate| +# \x1b[2Jforged\u202e\rverdict: accepted"
    assert "x" * 300 not in shown.out
    assert not {"\x1b", "\u202e"} & set(ask("run", "diff", a, b, "--home", home, "--json").out)


def test_a_long_file_is_not_compared_line_by_line(home: Path, tmp_path: Path) -> None:
    task = task_of(home)
    a = refused(home, task, tmp_path / "a", "CPP_SOURCE = ''\n")
    b = refused(home, task, tmp_path / "b", "CPP_SOURCE = ''\n" + "#\n" * COMPARED_LINES)
    (kernel,) = [one for one in diff(home, a, b)["sources"] if one["file"] == "kernel.py"]
    assert (kernel["change"], kernel["untrusted_lines"]) == ("changed", None)
    assert "kernel.py: too long to be compared line by line" in ask("run", "diff", a, b, "--home", home).err


def test_runs_without_a_candidate_and_of_two_tasks_are_compared(home: Path) -> None:
    (first,) = ask("run", "list", "--home", home, "--json").document
    create_task(home, "--min-speedup", "1.5")
    found = diff(home, first["run_id"], "last")
    assert found["same_task"] is False
    assert (found["sources"], found["gates"], found["times"]) == ([], [], {"a": None, "b": None})
    said = ask("run", "diff", first["run_id"], "last", "--home", home).err
    for words in ("two tasks", "neither run has a candidate", "neither run was timed"):
        assert words in said


def test_an_unknown_run_is_named(home: Path) -> None:
    answer: Answer = ask("run", "diff", "last", "nothing", "--home", home)
    assert answer.status == 2
    assert "no run starts with 'nothing'" in answer.error
