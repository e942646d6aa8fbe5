"""An estimate is recorded as one, beside a run that stays what it was."""

from pathlib import Path

from forge.app.phases.speed_estimates import record_estimate
from forge.app.workspace import Workspace
from forge.pipeline.estimate import Estimate, Estimated
from tests.app.prepared import gathered, verified_run
from tests.cli.asking import history, ledger_stands


def test_each_estimate_is_an_event_and_the_run_stays_what_it_was(home: Path) -> None:
    run_id = verified_run(home)
    found = Estimated(
        against=(Estimate(baseline="eager", baseline_ns=1000.0, candidate_ns=500.0, ratios=(2.0, 1.9)),),
        control=(1.01, 0.99),
        left_out=("compile",),
    )
    with Workspace.open(home) as workspace:
        before = workspace.find_run(run_id)
        told = [record_estimate(workspace, gathered(workspace, run_id), found) for _ in range(2)]
        assert workspace.find_run(run_id) == before
    events = [one for one in history(home) if one["type"] == "SpeedupEstimated"]
    assert [one["seq"] for one in events] == [one["seq"] for one in told]
    assert [one["recorded"] for one in told] == [True, True]
    assert events[0]["payload"]["against"] == told[0]["against"]
    assert ledger_stands(home)
