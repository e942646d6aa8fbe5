"""What can be asked of another machine, and the form of every answer.

A call is a closed union: a name that isn't here is refused. An answer is checked against its form when it arrives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from forge.domain.authoring import Screen
from forge.domain.device import Ceilings
from forge.domain.evidence import Counterexample
from forge.domain.policy import Policy
from forge.domain.profile import CodeFacts, OperatorTime
from forge.domain.verdict import Reason
from forge.errors import RemoteFailed
from forge.executor import ProfilerTool, Site
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.job import Incumbent
from forge.lab.profile.capture import Counters
from forge.lab.screen.screening import DraftScreening
from forge.lab.sent_job import BYTES_AS_BASE64, Sent, SentJob
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.screening import ContenderScreening
from forge.lab.timing.slope import SlopeSamples
from forge.lab.verification import Examination
from forge.sandbox.reply import ArtifactFile

VERSION = 1
"""Version of calls and answers. Both machines must have the same."""
Files = tuple[ArtifactFile, ...]


class Hello(Sent):
    """The first message of the machine that is asked."""

    version: int
    forge_version: str


class AskSite(Sent):
    """Asks for a description of the machine, and of its judge under a policy."""

    call: Literal["site"] = "site"
    policy: Policy


class AskCalibrate(Sent):
    """Asks for the device's highest rates."""

    call: Literal["calibrate"] = "calibrate"


class AskJob(Sent):
    """Asks what needs the job alone."""

    call: Literal["examine", "examine_build", "screen", "profiler"]
    job: SentJob


class AskBuilt(Sent):
    """Asks about a candidate that was built and judged."""

    call: Literal["artifact_at", "own_claims", "counters", "operators"]
    job: SentJob
    artifact: Files


class AskMeasure(Sent):
    """Asks for a candidate's time."""

    call: Literal["measure"] = "measure"
    job: SentJob
    artifact: Files
    incumbent: Incumbent | None
    contenders: tuple[PresentContender, ...]
    """Contenders that the machine said are present and right."""
    ceilings: Ceilings | None


class AskDrafts(Sent):
    """Asks to screen an author's drafts."""

    call: Literal["screen_drafts"] = "screen_drafts"
    job: SentJob
    step: Screen


class AskFloor(Sent):
    """Asks for the shortest possible time of the job's shape."""

    call: Literal["floor_ns"] = "floor_ns"
    job: SentJob
    ceilings: Ceilings | None
    resident: bool


class AskCode(Sent):
    """Asks for facts about device code."""

    call: Literal["machine_code"] = "machine_code"
    artifact: Files


class AskTool(Sent):
    """Asks for a profiler's version."""

    call: Literal["tool_version"] = "tool_version"
    tool: ProfilerTool


Call = Annotated[
    AskSite | AskCalibrate | AskJob | AskBuilt | AskMeasure | AskDrafts | AskFloor | AskCode | AskTool,
    Field(discriminator="call"),
]
CALLS: TypeAdapter[Call] = TypeAdapter(Call)


@dataclass(frozen=True, kw_only=True)
class SentFinding:
    """A finding that ended a measurement. The call from which a smaller one is searched stays where it was made."""

    refused: Reason
    observed: str
    threshold: str
    counterexample: Counterexample | None
    log: str
    raised: bool


class Refusal(Sent):
    """What a call ended with if it has no answer."""

    code: str
    message: str
    hint: str | None = None
    contender: str | None = None
    """Name of the contender that failed while it was timed."""
    failed: SentFinding | None = None
    """Finding about that contender."""


ANSWERS: Mapping[str, Any] = {
    "site": Site,
    "calibrate": Ceilings,
    "examine": Examination,
    "examine_build": Examination,
    "screen": ContenderScreening,
    "profiler": ProfilerTool,
    "artifact_at": Files | SentFinding,
    "own_claims": dict[str, float],
    "counters": Counters,
    "operators": tuple[OperatorTime, ...],
    "measure": SlopeSamples | ReplaySamples | SentFinding,
    "screen_drafts": DraftScreening,
    "floor_ns": float,
    "machine_code": tuple[CodeFacts, ...],
    "tool_version": str,
}
"""Form of each call's answer."""


@cache
def _form(call: str) -> TypeAdapter[Any]:
    in_tuple: Any = tuple.__class_getitem__(ANSWERS[call])  # a dataclass alone takes no settings
    return TypeAdapter(in_tuple, config=BYTES_AS_BASE64)


def packed_answer(call: str, answer: object) -> bytes:
    """Return the answer to a call as JSON, in the form that `parsed_answer` reads."""
    return _form(call).dump_json((_sendable(answer),))


def parsed_answer(call: str, untrusted: bytes) -> Any:
    """Return an answer; raise RemoteFailed unless it has the form of the call's answers."""
    try:
        (answer,) = _form(call).validate_json(untrusted)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:]))
        raise RemoteFailed(
            f"the answer to {call} can't be read at {place}: {first['msg']}; mistakes in all: {error.error_count()}; "
            "expected the same Forge on both machines"
        ) from error
    return finding_of(answer) if isinstance(answer, SentFinding) else answer


def _sendable(answer: object) -> object:
    return refused_of(answer) if isinstance(answer, Failed) else answer


def refused_of(failed: Failed) -> SentFinding:
    """Return a finding as it is sent."""
    return SentFinding(
        refused=failed.reason,
        observed=failed.observed,
        threshold=failed.threshold,
        counterexample=failed.counterexample,
        log=failed.log,
        raised=failed.raised,
    )


def finding_of(refused: SentFinding) -> Failed:
    """Return a finding that was sent."""
    return Failed(
        reason=refused.refused,
        observed=refused.observed,
        threshold=refused.threshold,
        counterexample=refused.counterexample,
        log=refused.log,
        raised=refused.raised,
    )
