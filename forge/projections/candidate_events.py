"""Which events are about a candidate, or about the kernel it became: the way from any kernel to all of its history.

Only places are kept; the events themselves are read from the ledger, where their hashes are.
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
        "BenchmarkRecorded",
        "BenchmarkFailed",
        "BenchmarkErrored",
        "BenchmarkInvalidated",
        "ProfileCaptured",
        "PromotionDenied",
        "KernelPromoted",
    }
)
ABOUT_A_KERNEL = frozenset({"KernelDeprecated", "KernelRevoked"})
TYPES = ABOUT_A_CANDIDATE | ABOUT_A_KERNEL


def take(state: State, line: Line, _: Source) -> None:
    """Note the event under its candidate; runs after the registry, which refuses a kernel that never was."""
    if line.type in ABOUT_A_KERNEL:
        kernel = state.get("kernels", line.event["kernel_id"])
        candidate = kernel["candidate"] if kernel else None
    else:
        candidate = line.event["candidate"]
    if candidate is not None:
        state.add("trail", {"candidate": candidate, "seq": line.seq})
