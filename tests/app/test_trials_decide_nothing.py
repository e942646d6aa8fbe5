"""Trials and estimates that claim wonders are recorded beside a candidate; no decision and no answer changes."""

import re
from pathlib import Path
from typing import Any

import pytest

from forge.app.runs.states import GATE
from forge.app.workspace import Workspace
from forge.domain.authoring import Screened, TimedTrial, Trial
from forge.domain.evidence import Interval
from forge.events import SpeedupEstimated, TrialsScreened
from forge.events.estimate import AgainstBaseline
from tests.app.prepared import benchmarked_run
from tests.cli.asking import ask, copied

ANSWERS = (
    ("kernel", "list"),
    (
        "lookup",
        "--op",
        "fused_add_rmsnorm",
        "--gpu",
        "cpu",
        "--dtype",
        "fp32",
        "--shape",
        "batch=16,hidden_size=4096",
    ),
    ("audit", "leaderboard"),
    ("audit", "fast-p"),
    ("audit", "claims"),
    ("audit", "replication"),
    ("recommend", "--model", "llama3.1-8b", "--workload", "chat", "--gpu", "h200"),
)
"""Questions of promotion, lookup, audit and recommendation."""
MOMENT = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|\+00:00)")
"""Moment of an event: each workspace decides by itself."""


OF_THE_LEDGER = frozenset({"promoted_event_hash", "generation", "source"})
"""Names of values that follow from the ledger's hashes and from the workspace's folder."""


def record_wonders(home: Path) -> None:
    """Record a screening and an estimate in which the run's candidate is a thousand times as fast."""
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        assert run.submitted is not None
        candidate = run.submitted.event.candidate
        wonder = TimedTrial(
            speedup=Interval(ratio=1000.0, low=999.0, high=1001.0),
            log_mean=6.9,
            log_error=0.001,
            windows=60,
            processes=5,
            median_ns=1.0,
        )
        screened = Screened(
            reference=candidate, trials=(Trial(draft=candidate, setting=None, result=wonder),), final=True
        )
        event = TrialsScreened(
            session_id="20260301T120000_search_0a1b2c",
            task_id=str(run.task_id),
            step=1,
            screened=screened,
            samples_sha256=workspace.blobs.put(b'{"drafts": {}}'),
            env_sha256="e" * 64,
            elapsed_s=1.0,
        )
        estimate = SpeedupEstimated(
            task_id=str(run.task_id),
            candidate=candidate,
            against=(
                AgainstBaseline(baseline="eager", baseline_ns=1000.0, candidate_ns=1.0, ratios=(1000.0, 999.0)),
            ),
            control=(1.0, 1.0),
            left_out=(),
            env_sha256="e" * 64,
        )
        workspace.append((event, estimate), run_id=run.run_id, key="test:wonders", actor=GATE)


def leaves(document: Any, path: str = "") -> dict[str, object]:
    """Return every value by its path, with moments left out."""
    if isinstance(document, dict | list):
        items = document.items() if isinstance(document, dict) else enumerate(document)
        return {name: leaf for key, one in items for name, leaf in leaves(one, f"{path}/{key}").items()}
    return {path: MOMENT.sub("then", document) if isinstance(document, str) else document}


@pytest.fixture
def pair(home: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two workspaces with the same measured candidate; trials are recorded in the second one."""
    benchmarked_run(home)
    other = copied(home, tmp_path / "with-trials")
    record_wonders(other)
    return home, other


@pytest.mark.slow
def test_no_decision_and_no_answer_reads_a_trial(pair: tuple[Path, Path]) -> None:
    """Only places in the ledger differ: two more events come before the decision."""
    found = []
    for home in pair:
        decided = ask("promote", "last", "--home", home, "--json").document
        found.append(leaves([decided, *(ask(*words, "--home", home, "--json").document for words in ANSWERS)]))
    plain, beside_trials = found
    assert plain.keys() == beside_trials.keys()
    others = {path: (plain[path], beside_trials[path]) for path in plain if plain[path] != beside_trials[path]}
    assert {path: both for path, both in others.items() if not _is_a_place(path, *both)} == {}
    assert plain["/0/kernel_id"] == "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1", "the candidate is promoted"


def _is_a_place(path: str, one: object, other: object) -> bool:
    later = isinstance(one, int) and isinstance(other, int) and other == one + 2
    return later or path.rpartition("/")[2] in OF_THE_LEDGER
