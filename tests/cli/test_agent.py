"""forge agent: sessions from the command line. No guest is started: each candidate is refused at submission."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forge.__main__ import main
from forge.app.workspace import Workspace
from forge.events.session import SessionOpened
from tests.cli.asking import HONEST, ask, history, ledger_stands, task_of

TEMPLATE = HONEST.parent / "templates" / "cpp_fused_add_rmsnorm"


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    """Two folders with candidates that are refused at submission."""
    for name in ("one", "two"):
        shutil.copytree(HONEST, tmp_path / "drafts" / name)
        (tmp_path / "drafts" / name / "metadata.json").write_text(json.dumps({"name": name}))
    return tmp_path / "drafts"


def lines(*arguments: object) -> list[dict[str, Any]]:
    """What a command prints, one JSON document a line."""
    out, before = io.StringIO(), sys.argv
    sys.argv = ["forge", *map(str, arguments), "--json"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), pytest.raises(SystemExit):
            main()
    finally:
        sys.argv = before
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_session_is_run_shown_replayed_and_counted(home: Path, drafts: Path) -> None:
    task = task_of(home)
    ran = ask("agent", "run", task, "--author", "folders", "--template", drafts, "--home", home)
    assert ran.status == 1, ran.err
    assert "round 1: proposes to submit" in ran.out
    assert "rejected BAD_SUBMISSION: metadata.json: op" in ran.out
    assert (
        "round 2: ends with refused: 1 of 1 candidates were refused [nothing measured yet; 18 candidates," in ran.out
    )
    assert "closed: nothing_left: nothing_left: all 2 drafts are judged" in ran.out
    (listed,) = ask("agent", "list", "--home", home, "--json").document
    assert (listed["state"], listed["rounds"], listed["used"]["candidates"]) == ("nothing_left", 3, 2)
    again = ask("agent", "replay", "last", "--home", home, "--json").document
    assert (again["divergences"], again["closed"]) == ([], True)
    costs = ask("agent", "cost", "last", "--home", home, "--json").document
    (row,) = costs["authors"]
    assert (row["author"], row["candidates"], row["correctness_rate"], row["fast_1"]) == ("folders", 2, 0, 0)
    assert costs["session"]["per_promoted_kernel"] is None
    cost = ask("agent", "cost", "last", "--home", home).out
    assert "all 2 drafts are judged" in cost
    assert "2 candidates, " in cost
    unknown = ask("agent", "run", "last", "--author", "serch", "--home", home)
    assert unknown.status == 2
    assert "unknown author 'serch': expected one of command, folders, model, person, search" in unknown.error
    for command in (("list",), ("cost", "last"), ("cost",), ("replay", "last")):
        shown = ask("agent", *command, "--home", home)
        assert (shown.status, bool(shown.out)) == (0, True)
    assert ask("agent", "resume", "last", "--home", home).error.endswith("expected one that is open")
    assert ledger_stands(home)


def test_each_event_is_a_line_of_json_and_the_last_line_is_the_summary(home: Path, drafts: Path) -> None:
    told = lines("agent", "run", task_of(home), "--author", "folders", "--template", drafts, "--home", home)
    kinds = [line.get("event") for line in told]
    assert kinds[0] == "SessionOpened"
    assert kinds[-2:] == ["SessionClosed", None]
    assert {"StepProposed", "BudgetReserved", "StepAnswered", "RoundClosed"} <= set(kinds)
    assert [line["left"]["candidates"] for line in told if line.get("event") == "RoundClosed"] == [19, 18, 18]
    assert told[-1]["state"] == "nothing_left"


def test_a_budget_of_zero_has_an_event_and_one_clear_message(home: Path, drafts: Path) -> None:
    named = ("--author", "folders", "--template", drafts, "--candidates", 0, "--home", home)
    ran = ask("agent", "run", task_of(home), *named)
    assert ran.status == 1
    assert "closed: budget: candidates=0 is left, expected at least candidates=1" in ran.out
    assert [one["type"] for one in history(home)].count("BudgetRefused") == 1


def test_an_open_session_is_granted_more_and_withdrawn(home: Path) -> None:
    with Workspace.open(home) as workspace:
        task = workspace.find_run("last").task_id
        golden = Path(__file__).parents[1] / "events" / "golden" / "SessionOpened.v1.json"
        event = SessionOpened.model_validate_json(golden.read_bytes())
        opened = event.model_copy(update={"task_id": task, "policy_sha256": workspace.keep_policy()})
        workspace.append((opened,), run_id=opened.session_id, key="test:open")
    granted = ask("agent", "grant", "last", "--candidates", 5, "--dollars", 1.5, "--home", home, "--json").document
    assert granted["left"]["candidates"] == 25
    assert granted["left"]["micro_dollars"] == 4_000_000
    assert "nothing to grant" in ask("agent", "grant", "last", "--home", home).error
    assert "didn't store what its author" in ask("agent", "resume", "last", "--home", home).error
    assert [one["type"] for one in history(home)].count("WishRefused") == 1
    assert ask("agent", "withdraw", "last", "--home", home, "--json").document["state"] == "withdrawn"
    assert "is closed (withdrawn)" in ask("agent", "grant", "last", "--tokens", 1, "--home", home).error
    assert ledger_stands(home)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"--author": "oracle"}, "unknown author 'oracle': expected one of command, folders, model, person, search"),
        ({"--template": "nowhere"}, "'nowhere' is not a folder"),
        ({"--author": "search"}, "bad template"),
        ({"--price": "m=1"}, "bad price 'm=1': expected MODEL=IN,OUT"),
        ({"--price": "m=-1,2"}, "bad price"),
        ({"--author": "search", "--template": str(TEMPLATE), "--set": "finalists=0"}, "bad option of the search"),
        ({"--author": "search", "--template": str(TEMPLATE), "--set": "colour=1"}, "bad option of the search"),
        ({"--set": "finalists"}, "bad option 'finalists': expected NAME=VALUE"),
        ({"--candidates": "-1"}, "--candidates"),
        ({"--candidates": str(2**64)}, "--candidates"),
        ({"--rounds-without-gain": str(2**64)}, "--rounds-without-gain"),
        ({"--tokens": str(2**64)}, "--tokens"),
        ({"--price": f"m={2**80},1"}, "bad price"),
        ({"--floor-share": "nan"}, "--floor-share"),
    ],
)
def test_bad_input_is_one_clear_error_and_nothing_but_a_refusal_is_recorded(
    home: Path, drafts: Path, changed: dict[str, str], said: str
) -> None:
    before = len(history(home))
    given = {"--author": "folders", "--template": str(drafts)} | changed
    answer = ask("agent", "run", task_of(home), *[one for pair in given.items() for one in pair], "--home", home)
    assert answer.status == 2, answer
    assert said in answer.error
    assert [one["type"] for one in history(home)[before:]] in ([], ["WorkRefused"])


def test_an_unknown_session_and_an_empty_folder_are_named(home: Path, tmp_path: Path) -> None:
    for command in ("resume", "replay", "withdraw", "cost"):
        assert "there is no session yet" in ask("agent", command, "last", "--home", home).error
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = ask("agent", "run", task_of(home), "--author", "folders", "--template", empty, "--home", home)
    assert "has 0 folders: expected 1 to 1000" in answer.error


def test_a_folder_without_a_candidate_is_named_and_not_left_out(home: Path, drafts: Path) -> None:
    (drafts / "__pycache__").mkdir()
    (drafts / "three").mkdir()
    answer = ask("agent", "run", "last", "--author", "folders", "--template", drafts, "--home", home)
    assert answer.status == 2
    assert "three' has no candidate: expected kernel.py" in answer.error


def test_a_person_gets_the_brief_submits_and_reads_the_feedback(home: Path, drafts: Path) -> None:
    begun = ask("agent", "run", task_of(home), "--author", "person", "--home", home)
    assert begun.status == 0, begun
    (room,) = (home / "forge_runs").glob("session-*_person_*/")
    assert (room / "brief.md").read_text().startswith("# Write a kernel")
    assert len(list((room / "starting").iterdir())) == 5
    given = ask("agent", "submit", "last", drafts / "one", "--hypothesis", "it is right", "--home", home)
    assert given.status == 1, given
    told = json.loads((room / "feedback.json").read_text())
    assert (told["verdict"], told["reason"]["code"]) == ("rejected", "BAD_SUBMISSION")
    assert told["tried"][0]["hypothesis"] == "it is right"
    again = ask("agent", "submit", "last", drafts / "one", "--home", home)
    assert again.status == 1
    told = json.loads((room / "feedback.json").read_text())
    assert "same as submission 1" in told["note"]
    assert len(told["tried"]) == 1, "equal bytes are judged once"
    assert ask("agent", "submit", "last", home / "nowhere", "--home", home).status == 2
    resumed = ask("agent", "resume", "last", "--home", home)
    assert (resumed.status, "waits for a person" in resumed.error) == (2, True)
    assert ask("agent", "replay", "last", "--home", home).status == 0
    assert ledger_stands(home)


@pytest.mark.usefixtures("walls")
def test_an_interrupted_session_names_the_command_that_goes_on_with_it(home: Path) -> None:
    task = task_of(home)
    command = [sys.executable, "-m", "forge", "agent", "run", task, "--author", "search", "--template", str(TEMPLATE)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--home", str(home)],
        **pipes,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
    ) as running:
        assert running.stdout is not None
        assert "search works on" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    (session,) = ask("agent", "list", "--home", home, "--json").document
    *_, told, following = said.splitlines()
    assert told == "interrupted; what was recorded stays"
    assert following == f"try: forge agent resume {session['session_id']} --home {home}"
