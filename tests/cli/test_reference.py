"""Tasks from reference files: what is inferred is shown, what is confirmed is frozen, what can't be is refused."""

import json
import os
from pathlib import Path

import pytest

from forge.domain.verdict import UNDECIDED
from forge.sandbox.isolation import Walls
from tests.cli.asking import QUICK_POLICY, ask
from tests.lab.reference.references import AS_SOLVED, MODEL

TERMS = ("--language", "torch", "--gpu", "cpu", "--dtype", "fp32")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "workspace"
    assert ask("init", home).status == 0
    (home / "policy.toml").write_text(QUICK_POLICY)
    return home


@pytest.fixture
def level(tmp_path: Path) -> Path:
    folder = tmp_path / "level1"
    folder.mkdir()
    (folder / "2_broken.py").write_text("import torch\nraise RuntimeError('not today')\n")
    (folder / "10_a_model.py").write_text(MODEL)
    return folder


def _candidate(folder: Path, op: str) -> Path:
    folder.mkdir()
    described = {"name": "as solved", "op": op, "language": "torch", "entry_point": "ModelNew"}
    (folder / "kernel.py").write_text(AS_SOLVED)
    (folder / "metadata.json").write_text(json.dumps(described))
    (folder / "reference.py").write_text(MODEL)
    (folder / "test_correctness.py").write_text("def test_nothing_is_claimed():\n    pass\n")
    (folder / "bench.py").write_text("pass\n")
    return folder


def test_a_level_is_imported_with_a_reason_for_what_isnt_and_a_solution_is_judged_and_timed(
    home: Path, level: Path, tmp_path: Path, walls: Walls, short_series: None, short_pairs: None
) -> None:
    imported = ask("task", "import", "kernelbench", level, *TERMS, "--home", home, "--json")
    assert imported.status == 1
    document = imported.document
    assert (document["imported"], document["refused"]) == (1, 1)
    broken, model = document["problems"]
    assert "RuntimeError: not today" in broken["refusal"]
    assert broken["problem"] == "2_broken.py"

    opened = ask("run", "open", model["task_id"], "--home", home, "--json")
    assert opened.status == 0
    prompt = Path(opened.document["prompt_path"]).read_text()
    assert "class Model(nn.Module)" in prompt
    run = opened.document["run_id"]
    assert ask("submit", run, _candidate(tmp_path / "candidate", model["op"]), "--home", home).status == 0
    verified = ask("verify", run, "--home", home, "--json")
    assert (verified.status, verified.document["verdict"]) == (0, "accepted")
    measured = ask("bench", run, "--home", home, "--json")
    reason = measured.document["reason"]
    # both sides ran and were timed; how that came out is this machine's affair
    assert reason is None or reason["code"] in (*UNDECIDED, "TOO_SLOW")
    profiled = ask("profile", run, "--home", home, "--json")
    assert (profiled.status, profiled.document["tool"]) == (0, "torch")

    slot = ("--op", model["op"], "--gpu", "cpu", "--dtype", "fp32", "--shape", "batch=16")
    assert ask("lookup", *slot, "--home", home, "--json").document["match"] == "none"


def test_one_bad_file_of_a_level_is_told_and_the_others_are_still_looked_at(home: Path, tmp_path: Path) -> None:
    (tmp_path / "level").mkdir()
    (tmp_path / "level" / "1_latin.py").write_bytes(b"# \xff\n")
    (tmp_path / "level" / "2_large.py").write_text("#" * 600_000)
    (tmp_path / "level" / os.fsdecode(b"3_name\xff\x1b.py")).write_text(" ")
    (tmp_path / "level" / "4_loop.py").symlink_to("4_loop.py")
    os.mkfifo(tmp_path / "level" / "5_pipe.py")
    asked = ("task", "import", "kernelbench", tmp_path / "level", *TERMS, "--home", home)
    document = ask(*asked, "--json").document
    assert (document["imported"], document["refused"]) == (0, 3)
    assert [one["problem"] for one in document["problems"]] == ["1_latin.py", "2_large.py", "3_name\\xff\x1b.py"]
    assert "\x1b" not in ask(*asked).out


def test_what_was_inferred_is_shown_and_frozen_only_with_a_yes(home: Path, level: Path, walls: Walls) -> None:
    file = level / "10_a_model.py"
    shown = ask("task", "create", "--reference", file, *TERMS, "--home", home, "--json")
    assert shown.status == 1
    assert shown.document["task_id"] is None
    assert shown.document["inferred"]["arguments"][0]["drawn"]["family"] == "uniform"
    assert "--yes" in shown.last
    assert ask("task", "list", "--home", home, "--json").document == []
    frozen = ask("task", "create", "--reference", file, *TERMS, "--yes", "--home", home)
    assert frozen.status == 0
    assert "linear.weight" in frozen.out
    (task,) = ask("task", "list", "--home", home, "--json").document
    assert task["op"] == ask("task", "show", task["task_id"], "--home", home, "--json").document["op"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "expected --op and --shape, or --reference FILE"),
        (("--op", "rmsnorm"), "expected --op and --shape, or --reference FILE"),
        (("--op", "rmsnorm", "--reference", "x.py"), "one or the other"),
        (("--op", "rmsnorm", "--shape", "batch=1,hidden_size=8", "--yes"), "without --reference"),
        (("--reference", "missing.py"), "can't be read"),
        (("--reference", "."), "expected"),
        (("--reference", "empty.py"), "empty"),
        (("--reference", "binary.py"), "isn't UTF-8"),
        (("--reference", "large.py"), "more than 524288 bytes"),
        (("--reference", "fine.py", "--operand", "x=fp32"), "bad operand 'x=fp32'"),
        (("--reference", "adds.py", "--operand", "y=fp32[4]", "--operand", "x=fp32[4]"), "in the order of adds()"),
        (("--reference", "fine.py", "--shape", "batch=x"), "bad shape item"),
        (("--reference", "fine.py", "--function", "not a name"), "bad function 'not a name'"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_runs(
    options: tuple[str, ...], said: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.py").write_text(" \n")
    Path("binary.py").write_bytes(b"\xff\xfe\x00")
    Path("large.py").write_text("#" * 600_000)
    Path("fine.py").write_text("import torch\n")
    Path("adds.py").write_text("def adds(x, y):\n    return x + y\n")
    answer = ask("task", "create", *options, *TERMS, "--home", home)
    assert answer.status == 2
    assert said in answer.error


def test_a_folder_without_problems_is_refused(home: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        answer = ask("task", "import", "kernelbench", path, *TERMS, "--home", home)
        assert answer.status == 2
        assert "no problem files" in answer.error
    assert set(os.listdir(home / "forge_runs")) <= {"cas", "policy.read"}
