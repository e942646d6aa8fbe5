"""The brief as a command: quick, within a budget, and recorded each time it is another one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.prepared import rejected_run
from tests.cli.asking import ask, create_task, history

WITHOUT_THE_LAB = """
import sys
from forge.__main__ import main

sys.argv = ["forge", *sys.argv[1:]]
main()
heavy = {"torch", "triton", "numpy", "hypothesis", "forge.executor", "forge.lab.verification"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""


def rendered(home: Path) -> list[dict[str, object]]:
    return [one["payload"] for one in history(home) if one["type"] == "PromptRendered"]


@pytest.mark.parametrize(
    "command", [("plan", "last"), ("prompt", "last"), ("prompt", "last", "--budget-tokens", "5000")]
)
def test_planning_and_briefing_load_neither_torch_nor_the_lab(home: Path, command: tuple[str, ...]) -> None:
    program = [sys.executable, "-c", WITHOUT_THE_LAB, *command, "--home", str(home)]
    answer = subprocess.run(program, check=False, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_brief_for_another_budget_is_printed_and_neither_recorded_nor_stored(home: Path) -> None:
    whole, before = ask("prompt", "last", "--home", home), history(home)
    stored = ask("prompt", "last", "--home", home, "--json").document["prompt_path"]
    short = ask("prompt", "last", "--budget-tokens", 5000, "--home", home, "--json").document
    assert len(short["prompt"]) < len(whole.out)
    assert short["prompt_path"] is None
    assert "Left out" in short["prompt"]
    assert ask("prompt", "last", "--budget-tokens", 5000, "--home", home).out == short["prompt"]
    assert ask("prompt", "last", "--home", home).out == whole.out == Path(stored).read_text()
    assert history(home) == before


def test_a_budget_that_is_no_budget_is_bad_input(home: Path) -> None:
    for budget in (0, -5, "many"):
        assert ask("prompt", "last", "--budget-tokens", budget, "--home", home).status == 2
    assert len(rendered(home)) == 1


def test_what_its_author_worked_from_is_printed_after_the_run_has_ended(home: Path) -> None:
    stored = Path(ask("prompt", "last", "--home", home, "--json").document["prompt_path"])
    rejected_run(home)
    assert stored.read_text() == ask("prompt", "last", "--home", home).out
    before = history(home)
    assert len(ask("prompt", "last", "--budget-tokens", 5000, "--home", home).out) < len(
        ask("prompt", "last", "--home", home).out
    )
    assert history(home) == before


def test_a_constraint_is_told_as_data(home: Path) -> None:
    create_task(home, "--constraint", "note=|x| `y` [z](w)")
    assert "- note: /x/ 'y' (z)(w)\n" in ask("prompt", "last", "--home", home).out
