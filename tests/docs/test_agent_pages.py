"""The commands of the pages on authors run, against a scripted model on loopback and a program in place of agents."""

import shlex
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from tests.app.model_server import Say, serving
from tests.cli.asking import HONEST, ask, ledger_stands
from tests.cli.conftest import empty_workspace, home, open_workspace
from tests.docs.markdown import blocks

__all__ = ["empty_workspace", "home", "open_workspace"]

PAGES = ("use-your-model.md", "use-your-coding-agent.md")
ELSEWHERE = ("solve", "score")
"""Commands whose own tests run them: each makes tasks of whole files, which takes minutes."""
PERF = " 2,000,000,000      instructions              #    0.50  insn per cycle\n 4,000,000,000      cycles\n"
ROCPROF = "Index,KernelName,MemUnitBusy,VALUBusy,FetchSize\n0,k,71.5,12,1024\n"


def commands() -> list[tuple[str, list[str]]]:
    """Each `forge` command of the pages, with its page."""
    found = []
    for block in blocks("sh"):
        page = block.page
        if Path(page).name not in PAGES:
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:2] == ["forge", "agent"] and words[2] not in ELSEWHERE:
                found.append((Path(page).name, words[1:]))
    return found


def here(words: list[str], task: str, url: str, folder: Path) -> list[str]:
    """Return a command with this machine's values: the task, the scripted server, a program, and small files."""
    stand_ins = {
        "TASK": task,
        "perf:stat.txt": f"perf:{folder / 'stat.txt'}",
        "rocprof:counters.csv": f"rocprof:{folder / 'counters.csv'}",
        "~/.codex:rw": f"{folder / 'allowed'}:rw",
        "./my-kernel": str(HONEST),
    }
    made = [stand_ins.get(one, one) for one in words]
    for place, word in enumerate(made):
        if word == "--agent-cmd":
            made[place + 1] = "sh -c 'forge submit; exit 0'"
        if word == "--base-url":
            made[place + 1] = url
    if "--model" in made and "--base-url" not in made:
        made += ["--base-url", url, "--price", f"{made[made.index('--model') + 1]}=0,0"]
    return made


@pytest.mark.usefixtures("walls")
def test_each_command_of_the_pages_on_authors_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    (tmp_path / "stat.txt").write_text(PERF)
    (tmp_path / "counters.csv").write_text(ROCPROF)
    (tmp_path / "allowed").mkdir()
    with Workspace.open(home) as workspace:
        task = str(workspace.find_run("last").task_id)
    shown = commands()
    assert {words[1] for _, words in shown} >= {"run", "cost", "pack", "submit"}
    with serving(*[Say("I have no kernel.")] * 50) as server:
        for page, words in shown:
            if words[1] == "submit":
                continue  # it judges a kernel: the person's own test runs it
            place = [] if words[1] == "pack" else ["--home", home]
            found = ask(*here(words, task, f"{server.url}/v1", tmp_path), *place)
            assert found.status in (0, 1), f"{page}: {' '.join(words)}: {found.err}"
            assert "error[" not in found.err, f"{page}: {' '.join(words)}"
        assert server.requests
    assert ledger_stands(home)
