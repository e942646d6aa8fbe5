"""Says of each type of event who may write it, where it stands and in which version it is written.

The models of events take longer to load than most answers. So these facts stand beside them, and load nothing.
"""

from typing import Literal, NamedTuple

Group = Literal["handed_in", "run", "observed", "decided", "human", "opening", "signed", "moved"]
"""Groups of event types. `forge/ledger/actor_rights.py` says which class of actors may write a group."""


class Kind(NamedTuple):
    """What holds for all events of a type."""

    group: Group
    """Group that says who may write them."""
    stream: str
    """Name of the stream that they are appended to, `<category>:<id>`, with a field of the payload in braces."""
    version: int = 1
    """Schema version in which they are written. Older payloads are brought up to it when they are read."""


KINDS: dict[str, Kind] = {
    "BaselineRecorded": Kind("observed", "task:{task_id}"),
    "BenchmarkErrored": Kind("observed", "candidate:{candidate}"),
    "BenchmarkFailed": Kind("observed", "candidate:{candidate}", 2),
    "BenchmarkInvalidated": Kind("observed", "candidate:{candidate}"),
    "BenchmarkRecorded": Kind("observed", "candidate:{candidate}", 2),
    "BudgetGranted": Kind("human", "session:{session_id}"),
    "BudgetRefused": Kind("observed", "session:{session_id}"),
    "BudgetReserved": Kind("observed", "session:{session_id}"),
    "BudgetSettled": Kind("observed", "session:{session_id}"),
    "CandidateDuplicated": Kind("handed_in", "candidate:{candidate}"),
    "CandidateRejected": Kind("observed", "candidate:{candidate}", 3),
    "CandidateSubmitted": Kind("handed_in", "candidate:{candidate}", 2),
    "CandidateVerified": Kind("observed", "candidate:{candidate}", 3),
    "CheckpointPublished": Kind("signed", "ledger:{ledger_id}"),
    "ClaimAssessed": Kind("observed", "candidate:{candidate}", 2),
    "ClaimRecorded": Kind("handed_in", "candidate:{candidate}"),
    "DeviceCalibrated": Kind("observed", "env:{env_sha256}"),
    "EnvironmentCaptured": Kind("observed", "env:{env_sha256}"),
    "ExperimentClosed": Kind("observed", "candidate:{candidate}"),
    "HumanDecided": Kind("human", "{subject_stream}"),
    "KernelDeprecated": Kind("decided", "kernel:{family}"),
    "KernelDoubted": Kind("handed_in", "doubt:{kernel_id}"),
    "KernelPromoted": Kind("decided", "kernel:{family}"),
    "KernelRevoked": Kind("decided", "kernel:{family}"),
    "LedgerImported": Kind("moved", "ledger:{ledger_id}"),
    "LedgerKeyAdopted": Kind("human", "ledger:{ledger_id}"),
    "LedgerKeyRotated": Kind("signed", "ledger:{ledger_id}"),
    "LedgerOpened": Kind("opening", "ledger:{ledger_id}"),
    "LedgerRestored": Kind("moved", "ledger:{ledger_id}"),
    "LessonAccepted": Kind("human", "lesson:{lesson_id}"),
    "LessonProposed": Kind("handed_in", "lesson:{lesson_id}"),
    "ModelFailed": Kind("observed", "session:{session_id}"),
    "ModelLost": Kind("observed", "session:{session_id}"),
    "ModelMeasured": Kind("observed", "model:{model_sha256}"),
    "ModelRequested": Kind("observed", "session:{session_id}"),
    "ModelResponded": Kind("observed", "session:{session_id}"),
    "ModuleComposed": Kind("observed", "module:{task_id}"),
    "ModuleRouted": Kind("observed", "module:{task_id}"),
    "OperationDescribed": Kind("decided", "operation:{op}"),
    "PlanAccepted": Kind("handed_in", "task:{task_id}", 3),
    "ProfileCaptured": Kind("observed", "candidate:{candidate}"),
    "PromotionDenied": Kind("decided", "kernel:{family}"),
    "PromptRendered": Kind("handed_in", "task:{task_id}", 2),
    "ReplicationRecorded": Kind("observed", "kernel:{family}"),
    "RoundClosed": Kind("observed", "session:{session_id}"),
    "RunAborted": Kind("run", "run:{run_id}"),
    "RunSealed": Kind("run", "run:{run_id}"),
    "RunStarted": Kind("run", "run:{run_id}"),
    "SessionClosed": Kind("run", "session:{session_id}"),
    "SessionOpened": Kind("run", "session:{session_id}"),
    "ShapeTimed": Kind("observed", "candidate:{candidate}"),
    "SpeedupEstimated": Kind("observed", "estimate:{candidate}"),
    "StepAnswered": Kind("observed", "session:{session_id}"),
    "StepProposed": Kind("handed_in", "session:{session_id}"),
    "TaskCreated": Kind("handed_in", "task:{task_id}", 2),
    "TokenGranted": Kind("human", "token:{token_sha256}"),
    "TokenRevoked": Kind("human", "token:{token_sha256}"),
    "TrialsScreened": Kind("observed", "session:{session_id}"),
    "VerificationErrored": Kind("observed", "candidate:{candidate}"),
    "WishRefused": Kind("handed_in", "session:{session_id}"),
    "WorkRefused": Kind("handed_in", "refused:{asked}", 2),
    "WorkRequested": Kind("handed_in", "run:{run_id}"),
    "WorkWithdrawn": Kind("handed_in", "run:{run_id}"),
}
"""Event type -> what holds for its events. An event of another type can't be written."""
