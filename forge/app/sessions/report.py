"""What authors cost and achieve: every candidate counts, the refused ones too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forge.app.sessions.finding import all_sessions
from forge.app.sessions.view import Data, used
from forge.app.workspace import Workspace
from forge.domain.budget import Amounts
from forge.domain.digest import Digest
from forge.domain.evidence import Interval
from forge.domain.verdict import UNDECIDED
from forge.events.session import ModelResponded
from forge.projections.runs import RunState
from forge.projections.sessions import SessionState

FAST = (1.0, 1.5, 2.0)
"""Speedups p of the shares fast_p. A candidate counts if it is correct and faster than p (KernelBench,
arXiv 2502.10517, section 3); every candidate is in the denominator."""
SHOWN_DIGEST = 12
"""Number of characters of a prompt's digest in a report. They are 48 bits: a thousand prompts have an equal one with
a chance of 2e-9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCandidate:
    """One candidate of a session."""

    model: str | None
    prompt: Digest | None
    correct: bool
    """Whether it passed every gate, and gave no wrong answer while it was timed."""
    speedup: Interval | None
    kernel_id: str | None


def cost_of(state: SessionState) -> Data:
    """Return what a session used, and what that is for each promoted kernel, all failures counted."""
    spent = used(state)
    kernels = [one.kernel_id for one in state.answers() if one.kernel_id is not None]
    return {
        "session_id": state.session_id,
        "author": state.opened.event.author,
        "state": "open" if state.closed is None else state.closed.event.reason,
        "rounds": len(state.rounds),
        "used": spent.model_dump(mode="json"),
        "promoted": kernels,
        "per_promoted_kernel": _shared(spent, len(kernels)),
    }


def _shared(spent: Amounts, kernels: int) -> Data | None:
    return {name: amount / kernels for name, amount in spent.items()} if kernels else None


def report(workspace: Workspace, sessions: Sequence[SessionState] | None = None) -> list[Data]:
    """Return a row for each author, model and prompt: correctness rate, fast_p, and cost for each promoted kernel.

    The cost is of all sessions in which the row's candidates were tried.
    """
    rows: dict[tuple[str, str | None, Digest | None], list[TriedCandidate]] = {}
    spent: dict[tuple[str, str | None, Digest | None], Amounts] = {}
    for state in all_sessions(workspace) if sessions is None else sessions:
        keys = set()
        for one in candidates_of(workspace, state):
            key = (state.opened.event.author, one.model, one.prompt)
            rows.setdefault(key, []).append(one)
            keys.add(key)
        for key in keys:
            spent[key] = spent.get(key, Amounts()) + used(state)
    return [_row(key, tried, spent[key]) for key, tried in rows.items()]


def _row(key: tuple[str, str | None, Digest | None], tried: Sequence[TriedCandidate], spent: Amounts) -> Data:
    author, model, prompt = key
    correct = [one for one in tried if one.correct]
    promoted = [one.kernel_id for one in tried if one.kernel_id is not None]
    fast = {
        f"fast_{limit:g}": sum(one.speedup is not None and one.speedup.ratio > limit for one in correct) / len(tried)
        for limit in FAST
    }
    return {
        "author": author,
        "model": model,
        "prompt": None if prompt is None else prompt[:SHOWN_DIGEST],
        "candidates": len(tried),
        "correct": len(correct),
        "correctness_rate": len(correct) / len(tried),
        **fast,
        "promoted": len(promoted),
        "used": spent.model_dump(mode="json"),
        "per_promoted_kernel": _shared(spent, len(promoted)),
    }


def candidates_of(workspace: Workspace, state: SessionState) -> Iterator[TriedCandidate]:
    """Yield each candidate that was judged, with the model's answer that came before it."""
    model, prompt = None, None
    for one in state.rounds:
        for request in one.requests:
            if request.asked is not None and isinstance(request.ended, ModelResponded):
                model, prompt = request.asked.model, request.asked.prompt_sha256
            if request.reserved.for_run is None or request.answered is None:
                continue
            run = workspace.find_run(request.reserved.for_run)
            yield TriedCandidate(
                model=model,
                prompt=prompt,
                correct=_is_correct(run),
                speedup=request.answered.speedup,
                kernel_id=request.answered.kernel_id,
            )


def _is_correct(run: RunState) -> bool:
    """Return whether a candidate passed every gate, and gave no wrong answer while it was timed."""
    if run.verified is None:
        return False
    return run.failure is None or run.failure.event.reason.code in {"TOO_SLOW", *UNDECIDED}
