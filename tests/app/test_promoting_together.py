"""Runs of one family, decided at the same time: each decision knows the kernel that was promoted before it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from forge.app.phases.phases import promote_candidate
from forge.app.workspace import Workspace
from forge.events import Event, KernelPromoted
from tests.app.prepared import benchmarked_run
from tests.cli.asking import create_task, history, ledger_stands

RUNS = 5


def test_runs_that_are_decided_at_the_same_time_are_each_decided_once(home: Path) -> None:
    run_ids = []
    for _ in range(RUNS):
        run_ids.append(benchmarked_run(home))
        create_task(home)
    start = Barrier(RUNS)

    def decide(run_id: str) -> Event:
        with Workspace.open(home) as workspace:
            run = workspace.find_run(run_id)
            start.wait()
            return promote_candidate(workspace, run)

    with ThreadPoolExecutor(RUNS) as threads:
        decided = list(threads.map(decide, run_ids))
    assert sum(isinstance(one, KernelPromoted) for one in decided) == 1, "the others weren't measured beside it"
    types = [one["type"] for one in history(home)]
    assert (types.count("KernelPromoted"), types.count("PromotionDenied")) == (1, RUNS - 1)
    assert ledger_stands(home)
