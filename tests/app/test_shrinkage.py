"""Screened and confirmed gains of a session's drafts, from what the ledger has of them."""

from pathlib import Path

import pytest

from forge.app.sessions.finding import find_session
from forge.app.sessions.opening import SessionRequest, open_session
from forge.app.sessions.shrinkage import gains, shrinkage
from forge.app.workspace import Workspace
from forge.domain.authoring import BudgetLeft, Judged, Screened, TimedTrial, Trial
from forge.domain.budget import NOTHING, Amounts
from forge.domain.digest import canonical, sha256
from forge.domain.evidence import Interval
from forge.domain.verdict import Accepted
from forge.events import BenchmarkFailed, TrialsScreened
from forge.events.session import BudgetReserved, BudgetSettled, StepAnswered, StepProposed
from forge.pipeline.sessions.ground import SYSTEM
from forge.projections.fold import holds
from tests.app.scripted import Scripted
from tests.app.test_sessions import ROOM
from tests.cli.asking import ask
from tests.shipped import ROOT

OWN, FAST, FASTER, ALONE = (digit * 64 for digit in "abcd")
SCREENED = {FAST: 1.5, FASTER: 2.0}
AGAIN = {FAST: 1.4, FASTER: 1.7}
MEASURED = {OWN: 2.0, FAST: 2.4, FASTER: 3.2, ALONE: 9.0}
"""Speedups over the task's first baseline, by a benchmark; the last draft was never screened."""


def trial(draft: str, ratio: float) -> Trial:
    interval = Interval(ratio=ratio, low=ratio, high=ratio)
    result = TimedTrial(speedup=interval, log_mean=0.1, log_error=0.0, windows=4, median_ns=1.0)
    return Trial(draft=draft, setting=None, result=result)


@pytest.fixture
def session(home: Path) -> Path:
    """A workspace with a session that screened two drafts twice, and judged four."""
    with Workspace.open(home) as workspace:
        task_id = str(workspace.find_run("last").task_id)
        session_id = open_session(workspace, Scripted(()), SessionRequest(task=task_id, seed=1, budget=ROOM))

        def record(what: str, *events: object, actor: str = SYSTEM) -> None:
            workspace.append(events, run_id=session_id, key=f"test:{what}", actor=actor)  # type: ignore[arg-type]  # events

        for final, gains in ((False, SCREENED), (True, AGAIN)):
            screened = Screened(
                reference=OWN, trials=tuple(trial(draft, gain) for draft, gain in gains.items()), final=final
            )
            event = TrialsScreened(
                session_id=session_id,
                task_id=task_id,
                step=1,
                screened=screened,
                samples_sha256=workspace.blobs.put(b"{}"),
                env_sha256="e" * 64,
                elapsed_s=1.0,
            )
            record(f"screened {final}", event)
        proposed = StepProposed(
            session_id=session_id,
            round=1,
            kind="submit",
            step_sha256=workspace.blobs.put(b"{}"),
            left=BudgetLeft(),
        )
        record("proposed", proposed, actor="agent:scripted")
        for number, (draft, ratio) in enumerate(MEASURED.items(), 1):
            entry = canonical(Judged(draft=draft, candidate=draft, verdict=Accepted()))
            workspace.blobs.put(entry)
            named = {"session_id": session_id, "round": 1, "request": number}
            record(
                f"judged {number}",
                BudgetReserved(**named, purpose="screening", place=number, for_run=None, worst=Amounts()),
                StepAnswered(
                    **named,
                    entry_sha256=sha256(entry),
                    kernel_id=None,
                    speedup=Interval(ratio=ratio, low=ratio, high=ratio),
                    floor_fraction=None,
                ),
                BudgetSettled(**named, used=NOTHING, uncovered=NOTHING),
            )
    return home


def test_gains_are_over_the_reference_and_their_median_says_how_much_they_shrank(session: Path) -> None:
    with Workspace.open(session) as workspace:
        found = shrinkage(workspace, [find_session(workspace, "last")])
    assert [(one["draft"], one["screened"], one["screened_again"]) for one in found["drafts"]] == [  # type: ignore[attr-defined]  # a document
        (FAST, 1.5, 1.4),
        (FASTER, 2.0, 1.7),
    ]
    assert [one["confirmed"] for one in found["drafts"]] == pytest.approx([1.2, 1.6])  # type: ignore[attr-defined]  # a document
    assert found["counted"] == 2
    assert found["median_confirmed_over_screened"] == pytest.approx((1.2 / 1.5 + 1.6 / 2.0) / 2)
    assert found["median_confirmed_over_screened_again"] == pytest.approx((1.2 / 1.4 + 1.6 / 1.7) / 2)


def test_the_command_shows_it_of_one_session_and_of_all(session: Path) -> None:
    one = ask("agent", "cost", "last", "--home", session, "--json").document["screening"]
    assert one == ask("agent", "cost", "--home", session, "--json").document["screening"]
    told = ask("agent", "cost", "--home", session).err
    assert "confirmed gains are 0.800x the screened ones, the median of 2 drafts" in told


def test_a_setting_that_lost_to_a_finalist_in_one_pair_counts_by_that_pair() -> None:
    with Workspace.open(ROOT) as workspace:
        state = find_session(workspace, "20261127T084953_search_541065")
        found = {one.draft[:12]: one for one in gains(workspace, state)}
        stopped = [
            recorded.event.stopped.ratio
            for recorded in workspace.ledger.read(types=("BenchmarkFailed",))
            if holds(recorded, BenchmarkFailed)
            and recorded.event.run_id == "20261127T085549_topk_softmax_h100_f1e409"
        ]
    promoted, second = found["6d98158bc84d"], found["a9bd69ad6190"]
    assert promoted.confirmed == pytest.approx(1 / stopped[0])
    assert second.confirmed == pytest.approx(second.over_first_baseline / promoted.over_first_baseline / stopped[0])
