"""The count of a pipeline's decisions, with the rate and the time that is left."""

import time
from pathlib import Path

import pytest

from forge.app.work import decided_runs
from forge.app.work.decided_runs import Pace, counting
from forge.app.workspace import Workspace
from forge.cli.progress import be_quiet, tell_pace
from tests.app.prepared import rejected_run
from tests.cli.asking import create_task


def test_the_rate_and_what_is_left_are_those_since_the_count_began() -> None:
    half = Pace(decided=6, total=18, before=2, elapsed_s=120.0)
    assert (half.per_minute, half.left_s) == (2.0, 360.0)
    assert Pace(decided=2, total=18, before=2, elapsed_s=120.0).left_s is None
    assert Pace(decided=0, total=0, before=0, elapsed_s=0.0).left_s is None


def test_a_decision_of_another_process_is_told_while_it_is_waited_for_and_others_runs_are_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decided_runs, "TOLD_EVERY_S", 0.0)
    before = rejected_run(home)
    told: list[Pace] = []
    run_ids = [before, create_task(home)["run_id"], "one that waits"]
    with Workspace.open(home) as workspace:
        with counting(workspace, run_ids, told.append):
            assert rejected_run(home) == run_ids[1]
            until = time.monotonic() + 60
            while not told and time.monotonic() < until:
                time.sleep(0.05)
            assert [(one.decided, one.total, one.before) for one in told] == [(2, 3, 1)]
            create_task(home)
            rejected_run(home)
        assert (told[-1].decided, len(told)) == (2, 2), "told once more at the end, and without the run of others"


def test_the_pace_is_one_line_and_quiet_if_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    tell_pace(Pace(decided=6, total=18, before=2, elapsed_s=120.0))
    assert "pipeline: 6 of 18 decided, 2.0 a minute (2 min 0 s, about 6 min 0 s left)" in capsys.readouterr().err
    tell_pace(Pace(decided=18, total=18, before=2, elapsed_s=480.0))
    assert "18 of 18 decided, 2.0 a minute (8 min 0 s)" in capsys.readouterr().err
    be_quiet(True)
    try:
        tell_pace(Pace(decided=18, total=18, before=2, elapsed_s=480.0))
    finally:
        be_quiet(False)
    assert capsys.readouterr().err == ""
