"""Compares screened with confirmed gains: what was chosen for its time looks faster than it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from forge.app.sessions.view import Data
from forge.app.workspace import Workspace
from forge.domain.authoring import Judged, Screened, TimedTrial
from forge.domain.digest import Digest
from forge.events import BenchmarkFailed, KernelPromoted
from forge.events.screen import TrialsScreened
from forge.lab.timing.incumbent import PROMOTED
from forge.pipeline.sessions.learned import ENTRY
from forge.projections.sessions import SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The gain of one judged draft over the reference of its screenings, by each measurement."""

    draft: Digest
    screened: float
    """Gain in the screening for which it was chosen."""
    screened_again: float | None
    """Gain in the final screening, on samples that played no part in the choice. None: there was none."""
    over_first_baseline: float
    """Speedup over the task's first baseline, as its benchmark measured it."""
    confirmed: float | None
    """Gain over the reference by their benchmarks. None: the reference wasn't measured in the session, not even for
    one process pair against one of these drafts."""


def shrinkage(workspace: Workspace, sessions: Sequence[SessionState]) -> Data:
    """Return the gains of all drafts that were judged, and the medians of confirmed over screened ones."""
    found = [one for state in sessions for one in gains(workspace, state)]
    kept = [(one.confirmed, one.screened, one.screened_again) for one in found if one.confirmed is not None]
    again = [confirmed / gain for confirmed, _, gain in kept if confirmed is not None and gain is not None]
    first = [confirmed / gain for confirmed, gain, _ in kept if confirmed is not None]
    return {
        "drafts": [asdict(one) for one in found],
        "counted": len(first),
        "median_confirmed_over_screened": median(first) if first else None,
        "median_confirmed_over_screened_again": median(again) if again else None,
    }


def gains(workspace: Workspace, state: SessionState) -> Iterator[Gain]:
    """Yield the gains of each draft of a session that was screened and measured, without the reference's own."""
    screened = _by_draft(workspace, state, final=False)
    again = _by_draft(workspace, state, final=True)
    measured = _measured(workspace, state)
    for draft, ratio in measured.items():
        if draft not in screened:
            continue
        reference, gain = screened[draft]
        if reference == draft:
            continue
        yield Gain(
            draft=draft,
            screened=gain,
            screened_again=again[draft][1] if draft in again else None,
            over_first_baseline=ratio,
            confirmed=ratio / measured[reference] if reference in measured else None,
        )


def _by_draft(workspace: Workspace, state: SessionState, *, final: bool) -> dict[Digest, tuple[Digest, float]]:
    """Return the reference and the gain of each timed draft, by the first screening of this kind that timed it."""
    found: dict[Digest, tuple[Digest, float]] = {}
    for recorded in workspace.ledger.read(stream=f"session:{state.session_id}", types=(TrialsScreened.TYPE,)):
        assert isinstance(recorded.event, TrialsScreened)
        screened: Screened = recorded.event.screened
        for trial in screened.trials if screened.final == final else ():
            if isinstance(trial.result, TimedTrial):
                found.setdefault(trial.draft, (screened.reference, trial.result.speedup.ratio))
    return found


def _measured(workspace: Workspace, state: SessionState) -> dict[Digest, float]:
    """Return each judged draft's speedup over the task's first baseline.

    A benchmark that ended after one process pair has none. If it was lost to a kernel of this session, that pair's
    ratio times the kernel's speedup stands for it.
    """
    found: dict[Digest, float] = {}
    by_kernel: dict[str, float] = {}
    for answered in state.answers():
        entry = ENTRY.validate_json(workspace.blobs.get(answered.entry_sha256))
        if not isinstance(entry, Judged):
            continue
        ratio = answered.speedup.ratio if answered.speedup else _after_one_pair(workspace, entry.candidate, by_kernel)
        if ratio is not None:
            found[entry.draft] = ratio
            if answered.kernel_id is not None:
                by_kernel[answered.kernel_id] = ratio
    return found


def _after_one_pair(workspace: Workspace, candidate: Digest, by_kernel: Mapping[str, float]) -> float | None:
    """Return a candidate's speedup by the first pair against a kernel of the session; None if there is none."""
    families = {kernel_id.rpartition("_v")[0] for kernel_id in by_kernel}
    newest: float | None = None
    for recorded in workspace.ledger.read(types=(KernelPromoted.TYPE, BenchmarkFailed.TYPE)) if by_kernel else ():
        event = recorded.event
        if isinstance(event, KernelPromoted) and event.family in families:
            newest = by_kernel.get(event.kernel_id)
        if isinstance(event, BenchmarkFailed) and event.candidate == candidate and newest is not None:
            stopped = event.stopped
            if stopped is not None and stopped.baseline == PROMOTED:
                return newest * stopped.ratio
    return None
