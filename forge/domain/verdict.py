"""The possible results of a judgement."""

from typing import Literal

from forge.domain.digest import Value
from forge.domain.reason_codes import REASON_CODES, UNDECIDED, ReasonCode

__all__ = [
    "REASON_CODES",
    "UNDECIDED",
    "Accepted",
    "Inconclusive",
    "Reason",
    "ReasonCode",
    "Rejected",
    "Verdict",
]


class Reason(Value):
    """Why something was refused: a code from the closed list and one sentence with the values."""

    code: ReasonCode
    message: str


class Accepted(Value):
    """The evidence supports the candidate."""

    verdict: Literal["accepted"] = "accepted"


class Rejected(Value):
    """The evidence speaks against the candidate."""

    verdict: Literal["rejected"] = "rejected"
    reason: Reason


class Inconclusive(Value):
    """No verdict, because of the machine or its noise and not because of the candidate."""

    verdict: Literal["inconclusive"] = "inconclusive"
    reason: Reason


Verdict = Accepted | Rejected | Inconclusive
