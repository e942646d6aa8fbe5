"""`--on ADDRESS`: another machine's Forge runs the jobs, and this workspace's ledger records what it says.

A script stands for ssh: it runs the command here, as the other machine's shell would.
"""

import os
import sys
from pathlib import Path

import pytest

from forge.app.machine.chosen_device import PLACE_VARIABLE
from tests.cli.asking import HONEST, ask, history, ledger_stands

SHORTER = Path(__file__).parents[1] / "executor" / "shorter.py"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a script in place of ssh; `hosts` lists the machines that were asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "forge").write_text(f'#!/bin/sh\nexec {sys.executable} {SHORTER} "$@"\n')
    (folder / "ssh").write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\necho "$2" >> "${0%/*}/hosts"\nexec sh -c "$3"\n'
    )
    for script in folder.iterdir():
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(PLACE_VARIABLE, "")
    return folder


def test_a_worker_has_runs_judged_and_timed_on_another_machine(home: Path, box: Path) -> None:
    with (home / "policy.toml").open("a") as policy:
        policy.write("sanitizer = false\nconfirmation = false\n")
    assert ask("submit", "last", HONEST, "--home", home).status == 0
    assert ask("work", "request", "last", "--until", "bench", "--home", home).status == 0
    answer = ask("work", "--once", "--on", "ssh://gpu-box", "--home", home, "--json")
    assert answer.document["error"] is None, answer
    assert answer.document["state"] in ("benchmarked", "verified", "failed"), answer.document  # whatever its speed
    recorded = {one["type"] for one in history(home)}
    assert "CandidateVerified" in recorded
    assert recorded & {"BenchmarkRecorded", "BenchmarkFailed"}
    assert (box / "hosts").read_text() == "gpu-box\n"
    assert ledger_stands(home)


def test_a_machine_without_forge_gives_no_verdict(home: Path, box: Path) -> None:
    (box / "forge").write_text("#!/bin/sh\necho forge: command not found >&2\nexit 127\n")
    assert ask("submit", "last", HONEST, "--home", home).status == 0
    answer = ask("verify", "last", "--on", "ssh://another-box", "--home", home)
    assert answer.status == 3
    assert "ended the connection" in answer.error
    assert not {"CandidateVerified", "CandidateRejected"} & {one["type"] for one in history(home)}


@pytest.mark.usefixtures("box")
def test_a_bad_address_is_refused_before_anything_runs(home: Path) -> None:
    answer = ask("verify", "last", "--on", "gpu-box", "--home", home)
    assert answer.status == 2
    assert "expected ssh://" in answer.error


@pytest.mark.usefixtures("box")
def test_a_gpu_here_with_jobs_elsewhere_is_refused(home: Path) -> None:
    answer = ask("verify", "last", "--on", "ssh://gpu-box", "--device", "0", "--home", home)
    assert answer.status == 2
    assert "expected one" in answer.error
