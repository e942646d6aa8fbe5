"""Computes again what two sessions may differ by, from the replications before each one.

A replication names how many it knew of. Others may have been recorded while it was measured, so these are the first
ones of its clock and regime.
"""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.each_ledger import Row
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.rule import control_band
from forge.ledger.audit.samples import Document
from forge.ledger.audit.stored import stored_document
from forge.ledger.audit.student_t import t_975

TYPES = ("ReplicationRecorded",)
"""Types of the events that this check reads."""
_FEWEST = 10
"""Number of replications from which the spread counts as known."""
_SMALLEST = 0.002
"""Relative difference that is always allowed, since the clocks don't resolve less."""
_NORMAL_975 = 1.959964
"""The 97.5 % quantile of the normal distribution."""


def spread_problems(rows: Iterable[Row], runs: Path) -> Iterator[AuditProblem]:
    """Yield a problem for each spread of a replication that the earlier ones don't give."""
    earlier: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for seq, _, payload in rows:
        try:
            event = json.loads(payload)
            yield from (AuditProblem(seq, *one) for one in _of_replication(event, earlier, runs))
        except MALFORMED_ERRORS as error:
            yield AuditProblem(seq, "comparisons", "a payload of a known form", repr(error)[:200])


def _of_replication(
    event: Document, earlier: dict[tuple[str, str], list[Document]], runs: Path
) -> Iterator[Difference]:
    policy = stored_document(runs, event["policy_sha256"])
    for one in event["comparisons"]:
        (timing,) = event["workloads"]
        measured = timing if one["regime"] == "cold" else timing["residency"]["timing"]
        before = earlier[timing["candidate"]["method"], one["regime"]]
        if policy is not None:  # the check of stored bytes tells one that is missing
            yield from _of_comparison(one, before, control_band(policy, measured))
        before.append(one)


def _of_comparison(one: Document, before: Sequence[Document], band: float) -> Iterator[Difference]:
    known = one["replications"]
    if known and not _FEWEST <= known <= len(before):
        yield "comparisons.replications", f"0, or {_FEWEST} to {len(before)}", str(known)
        return
    spread = min(band, max(_difference(before[:known]), _SMALLEST)) if known else band
    yield from differences({"session_spread": spread}, one, "comparisons")


def _difference(comparisons: Sequence[Document]) -> float:
    """Return the relative difference that sessions alone make in at most 5 % of cases, by the method of moments."""
    excess = statistics.fmean(
        math.log(one["second"]["ratio"] / one["first"]["ratio"]) ** 2
        - sum(_standard_error(one[side], one[f"{side}_pairs"]) ** 2 for side in ("first", "second"))
        for one in comparisons
    )
    return math.expm1(_NORMAL_975 * math.sqrt(2) * math.sqrt(max(0.0, excess / 2)))


def _standard_error(interval: Document, pairs: int) -> float:
    return math.log(interval["high"] / interval["low"]) / 2 / t_975(pairs - 1)
