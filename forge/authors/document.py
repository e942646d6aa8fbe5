"""Makes the feedback document from an author's log: the same for a model, a program and a person."""

from collections.abc import Sequence

from forge.authors.analyst import Analyst, TimesAnalyst
from forge.domain.authoring import BudgetLeft, Judged, LogEntry
from forge.domain.digest import Digest
from forge.domain.feedback import EarlierAttempt, Feedback, FeedbackDocument, Metric, fitted
from forge.domain.verdict import Accepted

MOST_TRIED = 20
"""Number of earlier attempts in one document, at most. Chosen; a model pays for each line of them, in every round."""
LONGEST_HYPOTHESIS, LONGEST_OUTCOME, LONGEST_NOTE = 300, 200, 1000
"""Lengths in characters at which the texts of a document are cut."""


def feedback_document(
    log: Sequence[LogEntry],
    left: BudgetLeft,
    *,
    hypotheses: dict[Digest, str],
    note: str | None = None,
    analyst: Analyst | None = None,
    profile: Sequence[Metric] = (),
) -> FeedbackDocument:
    """Return what the author is shown now: the last attempt in full, and those before it in a line each.

    `note` says why the author's last answer had no candidate; the last attempt is then told once more.
    """
    judged = [entry for entry in log if isinstance(entry, Judged) and not entry.was_overtaken]
    tried = tuple(_tried(one, hypotheses) for one in judged[-MOST_TRIED:])
    budget = left.model_dump(mode="json", exclude_none=True)
    cut = None if note is None else note[:LONGEST_NOTE]
    if not judged:
        return FeedbackDocument(verdict="none", note=cut, budget_left=budget)
    last = judged[-1]
    seen = last.feedback or Feedback()
    diagnosis = None
    if seen.timing is not None:
        diagnosis = (analyst or TimesAnalyst()).diagnose(seen.timing, profile)
    return fitted(
        FeedbackDocument(
            verdict=last.verdict.verdict,
            reason=None if isinstance(last.verdict, Accepted) else last.verdict.reason,
            note=cut,
            gate=seen.gate,
            simulated=seen.simulated,
            counterexample=seen.counterexample,
            build_log=seen.build_log,
            timing=seen.timing,
            diagnosis=diagnosis,
            tried=tried,
            left_out=len(judged) - len(tried),
            budget_left=budget,
        )
    )


def _tried(one: Judged, hypotheses: dict[Digest, str]) -> EarlierAttempt:
    measured = f" at {one.speedup.ratio:.3f}x" if one.speedup is not None else ""
    why = "" if isinstance(one.verdict, Accepted) else f": {one.verdict.reason.code}: {one.verdict.reason.message}"
    return EarlierAttempt(
        draft=one.draft,
        hypothesis=hypotheses.get(one.draft, "")[:LONGEST_HYPOTHESIS],
        outcome=f"{one.verdict.verdict}{measured}{why}"[:LONGEST_OUTCOME],
    )
