"""Finds the events about a candidate, or about the kernel it became, so that a kernel's whole history can be read.

Only the places of events are stored. The events themselves are read from the ledger, with their hashes.
"""

from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.state import State

ABOUT_A_CANDIDATE = frozenset(
    {
        "CandidateSubmitted",
        "CandidateDuplicated",
        "CandidateRejected",
        "ClaimRecorded",
        "ClaimAssessed",
        "CandidateVerified",
        "VerificationErrored",
        "ShapeTimed",
        "BenchmarkRecorded",
        "BenchmarkFailed",
        "BenchmarkErrored",
        "BenchmarkInvalidated",
        "ProfileCaptured",
        "PromotionDenied",
        "KernelPromoted",
    }
)
"""Types of events that name a candidate."""
ABOUT_A_KERNEL = frozenset({"KernelDeprecated", "KernelRevoked"})
"""Types of events that name only a kernel."""
TYPES = ABOUT_A_CANDIDATE | ABOUT_A_KERNEL


def take(state: State, line: Line, _: Source) -> None:
    """Add the event's number to the trail of its candidate.

    It runs after the registry, which refuses an event about an unknown kernel.
    """
    if line.type in ABOUT_A_KERNEL:
        kernel = state.get("kernels", line.event["kernel_id"])
        candidate = kernel["candidate"] if kernel else None
    else:
        candidate = line.event["candidate"]
    if candidate is not None:
        state.add("trail", {"candidate": candidate, "seq": line.seq})
