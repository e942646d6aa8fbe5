"""Jobs whose machine is lost while it judges: they are asked for again, and an undecided run is never told accepted.

A script stands for ssh, as in `test_on_another_machine`; the machine behind it is switched off as a job begins.
"""

import sys
from pathlib import Path

import pytest

from forge.app.work.lost_jobs import unanswered
from forge.app.work.requests import request_work
from forge.cli import side_by_side
from forge.cli.opening import open_workspace
from forge.cli.side_by_side import serve_until_answered
from tests.cli.asking import ask, history, ledger_stands
from tests.cli.test_on_another_machine import box
from tests.cli.test_pipeline import NOTHING, folder

__all__ = ["box"]
LOST = 2
"""Number of jobs with which the machine is lost."""

SWITCHED_OFF = f"""
import os, sys
from pathlib import Path
from forge.__main__ import main
from forge.executor.local import LocalExecutor

examine, jobs = LocalExecutor.examine, Path(sys.argv.pop(1))

def lost(self, job, *, progress):
    with jobs.open("a") as noted:
        noted.write(".")
    if jobs.stat().st_size <= {LOST}:
        os._exit(1)
    return examine(self, job, progress=progress)

LocalExecutor.examine = lost
main()
"""
"""Program of a machine that is lost with each of its first jobs. It takes a file, in which each job is a point."""


def switched_off(box: Path) -> Path:
    """Let no machine `gone` answer, and any other be lost with its first jobs; return the file of their jobs."""
    (box / "program.py").write_text(SWITCHED_OFF)
    (box / "forge").write_text(f'#!/bin/sh\nexec {sys.executable} {box / "program.py"} {box / "jobs"} "$@"\n')
    script = (box / "ssh").read_text()
    (box / "ssh").write_text(script.replace("exec sh", '[ "$2" = gone ] && exit 255\nexec sh'))
    return box / "jobs"


@pytest.mark.slow
def test_a_lost_job_is_asked_for_again_a_few_times_at_most_and_is_undecided_until_it_is_answered(
    home: Path, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "MOST_ASKINGS", LOST)  # so that fewer processes are started
    jobs, places = switched_off(box), [("--on", "ssh://gpu-box"), ("--on", "ssh://gone")]
    assert ask("submit", "last", folder(tmp_path / "candidate", kernel=NOTHING), "--home", home).status == 0
    with open_workspace(home) as workspace:
        run_id = workspace.find_run("last").run_id

        def left() -> list[tuple[str, object]]:
            told = unanswered(workspace, workspace.find_run(run_id))
            return [(phase, answer["verdict"]) for phase, answer in told.items()]

        request_work(workspace, workspace.find_run(run_id), "promote")
        assert left() == [("verify", "inconclusive")]
        serve_until_answered(workspace, [run_id], places, home)
        assert len(jobs.read_text()) == LOST
        assert left() == [("verify", "inconclusive")]
        assert (box / "hosts").read_text().split().count("gone") == 1, "what can't be reached is asked no more"
        request_work(workspace, workspace.find_run(run_id), "promote")
        serve_until_answered(workspace, [run_id], places[:1], home)
        assert left() == []
    recorded = [one["type"] for one in history(home)]
    assert recorded.count("VerificationErrored") == LOST
    assert recorded.count("CandidateRejected") == 1
    assert len(jobs.read_text()) == LOST + 1
    assert ledger_stands(home)
