"""Every event: the closed union, and how a stored payload is read as one of its classes.

To add an event: a class in the phase's module, and its line in `Event` below.
"""

from typing import get_args

import orjson
from pydantic import ValidationError

from forge.errors import LedgerCorrupt
from forge.events.benchmark import (
    BaselineRecorded,
    BenchmarkErrored,
    BenchmarkFailed,
    BenchmarkInvalidated,
    BenchmarkRecorded,
    ProfileCaptured,
    ShapeTimed,
)
from forge.events.candidate import (
    CandidateDuplicated,
    CandidateRejected,
    CandidateSubmitted,
    ClaimAssessed,
    ClaimRecorded,
)
from forge.events.create import TaskCreated
from forge.events.doubt import KernelDoubted
from forge.events.envelope import Recorded
from forge.events.environment import DeviceCalibrated, EnvironmentCaptured
from forge.events.estimate import SpeedupEstimated
from forge.events.experiment import ExperimentClosed, LessonAccepted, LessonProposed
from forge.events.fact import Fact
from forge.events.human import HumanDecided
from forge.events.kinds import KINDS
from forge.events.ledger import (
    CheckpointPublished,
    LedgerImported,
    LedgerKeyAdopted,
    LedgerKeyRotated,
    LedgerOpened,
    LedgerRestored,
)
from forge.events.model import ModelMeasured
from forge.events.module import ModuleComposed, ModuleRouted
from forge.events.operation import OperationDescribed
from forge.events.plan import ChosenSkill, PlanAccepted
from forge.events.promote import (
    KernelDeprecated,
    KernelPromoted,
    KernelRevoked,
    PromotionDenied,
    ReplicationRecorded,
)
from forge.events.prompt import PromptRendered
from forge.events.run import RunAborted, RunSealed, RunStarted
from forge.events.screen import TrialsScreened
from forge.events.session import (
    BudgetGranted,
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    ModelFailed,
    ModelLost,
    ModelRequested,
    ModelResponded,
    RoundClosed,
    SessionClosed,
    SessionOpened,
    StepAnswered,
    StepProposed,
    WishRefused,
)
from forge.events.token import TokenGranted, TokenRevoked
from forge.events.upcast import upcast
from forge.events.verify import CandidateVerified, VerificationErrored
from forge.events.work import WorkRefused, WorkRequested, WorkWithdrawn

Event = (
    LedgerOpened
    | EnvironmentCaptured
    | DeviceCalibrated
    | RunStarted
    | RunSealed
    | RunAborted
    | WorkRefused
    | WorkRequested
    | WorkWithdrawn
    | TaskCreated
    | ModuleRouted
    | ModuleComposed
    | PlanAccepted
    | PromptRendered
    | CandidateSubmitted
    | CandidateDuplicated
    | CandidateRejected
    | TrialsScreened
    | SpeedupEstimated
    | ClaimRecorded
    | ClaimAssessed
    | CandidateVerified
    | VerificationErrored
    | BaselineRecorded
    | ShapeTimed
    | BenchmarkRecorded
    | BenchmarkFailed
    | BenchmarkErrored
    | BenchmarkInvalidated
    | ProfileCaptured
    | ExperimentClosed
    | LessonProposed
    | LessonAccepted
    | PromotionDenied
    | OperationDescribed
    | KernelPromoted
    | KernelDeprecated
    | KernelDoubted
    | ModelMeasured
    | KernelRevoked
    | ReplicationRecorded
    | SessionOpened
    | SessionClosed
    | StepProposed
    | StepAnswered
    | RoundClosed
    | ModelRequested
    | ModelResponded
    | ModelFailed
    | ModelLost
    | BudgetGranted
    | BudgetReserved
    | BudgetSettled
    | BudgetRefused
    | WishRefused
    | HumanDecided
    | TokenGranted
    | TokenRevoked
    | CheckpointPublished
    | LedgerKeyAdopted
    | LedgerKeyRotated
    | LedgerRestored
    | LedgerImported
)

EVENT_TYPES: dict[str, type[Event]] = {event.TYPE: event for event in get_args(Event)}


def parse_event(type_name: str, schema_version: int, untrusted_payload: str | bytes) -> Event:
    """Read a stored payload as the current class of its type; raise LedgerCorrupt if it is unknown or invalid."""
    event_type = EVENT_TYPES.get(type_name)
    if event_type is None:
        raise LedgerCorrupt(f"unknown event type {type_name!r}: the ledger was written by a newer Forge; upgrade")
    current = KINDS[type_name].version
    if not 1 <= schema_version <= current:
        raise LedgerCorrupt(
            f"{type_name} has schema version {schema_version}, this Forge reads 1 to {current}: upgrade"
        )
    try:
        if schema_version == current:
            event: Event = event_type.__pydantic_validator__.validate_json(untrusted_payload)
            return event
        old = orjson.loads(untrusted_payload)
        return event_type.model_validate(upcast(type_name, schema_version, old, to_version=current))
    except (ValidationError, orjson.JSONDecodeError, KeyError) as error:
        raise LedgerCorrupt(f"payload of {type_name} v{schema_version} can't be read: {error}") from error


__all__ = [
    "EVENT_TYPES",
    "BaselineRecorded",
    "BenchmarkErrored",
    "BenchmarkFailed",
    "BenchmarkInvalidated",
    "BenchmarkRecorded",
    "BudgetGranted",
    "BudgetRefused",
    "BudgetReserved",
    "BudgetSettled",
    "CandidateDuplicated",
    "CandidateRejected",
    "CandidateSubmitted",
    "CandidateVerified",
    "CheckpointPublished",
    "ChosenSkill",
    "ClaimAssessed",
    "ClaimRecorded",
    "DeviceCalibrated",
    "EnvironmentCaptured",
    "Event",
    "ExperimentClosed",
    "Fact",
    "HumanDecided",
    "KernelDeprecated",
    "KernelDoubted",
    "KernelPromoted",
    "KernelRevoked",
    "LedgerImported",
    "LedgerKeyAdopted",
    "LedgerKeyRotated",
    "LedgerOpened",
    "LedgerRestored",
    "LessonAccepted",
    "LessonProposed",
    "ModelFailed",
    "ModelLost",
    "ModelMeasured",
    "ModelRequested",
    "ModelResponded",
    "ModuleComposed",
    "ModuleRouted",
    "OperationDescribed",
    "PlanAccepted",
    "ProfileCaptured",
    "PromotionDenied",
    "PromptRendered",
    "Recorded",
    "ReplicationRecorded",
    "RoundClosed",
    "RunAborted",
    "RunSealed",
    "RunStarted",
    "SessionClosed",
    "SessionOpened",
    "ShapeTimed",
    "SpeedupEstimated",
    "StepAnswered",
    "StepProposed",
    "TaskCreated",
    "TokenGranted",
    "TokenRevoked",
    "TrialsScreened",
    "VerificationErrored",
    "WishRefused",
    "WorkRefused",
    "WorkRequested",
    "WorkWithdrawn",
    "parse_event",
]
