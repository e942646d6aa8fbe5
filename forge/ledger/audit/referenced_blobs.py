"""Lists the fields of a payload that name stored bytes, independent of the event models."""

import json
from collections.abc import Iterator, Mapping

_TASK = ("task.held_out_sha256", "task.policy_sha256")
_TIMED = (
    "report_sha256",
    "policy_sha256",
    "workloads[].samples_sha256",
    "workloads[].replay.plan_sha256",
)
BLOB_FIELDS: dict[str, tuple[str, ...]] = {
    "TaskCreated": _TASK,
    "RunStarted": ("policy_sha256",),
    "PromptRendered": ("rendered_sha256",),
    "CandidateSubmitted": ("files.files[].sha256",),
    "CandidateRejected": ("counterexample_sha256", "report_sha256"),
    "CandidateVerified": ("report_sha256", "artifact_sha256", "policy_sha256"),
    "ShapeTimed": ("policy_sha256", "samples_sha256", "timing.samples_sha256", "timing.replay.plan_sha256"),
    "BenchmarkRecorded": _TIMED,
    "BenchmarkFailed": _TIMED,
    "ProfileCaptured": ("raw_sha256",),
    "TrialsScreened": ("samples_sha256",),
    "PromotionDenied": ("policy_sha256",),
    "KernelPromoted": ("files[].sha256", "artifact_sha256", "policy_sha256", *_TASK),
    "KernelDoubted": ("report_sha256",),
    "ModelMeasured": ("model_sha256", "samples_sha256", "policy_sha256"),
    "OperationDescribed": ("description_sha256", "reference_sha256"),
    "ReplicationRecorded": _TIMED,
    "LessonAccepted": ("after_sha256",),
    "RunSealed": ("manifest_sha256",),
    "SessionOpened": ("policy_sha256",),
    "StepProposed": ("step_sha256",),
    "StepAnswered": ("entry_sha256",),
    "ModelRequested": ("prompt_sha256",),
    "ModelResponded": ("response_sha256",),
    "ModuleRouted": ("parts[].reference_sha256",),
}
"""Type -> the fields of its payload that name stored bytes; a field may be null if the type allows it."""
OWN_FIELDS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("TaskCreated", "KernelPromoted"), ("task.reference_sha256", "task.inputs_sha256")
)
"""Type -> the fields that name stored bytes only for operations of the user: reference and contract. Those of the
catalogue are part of Forge."""
LEFT_OUT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("TaskCreated", "KernelPromoted"), ("task.contenders[].sha256",)),
    "SessionOpened": ("made_from_sha256",),
    "BenchmarkFailed": ("stopped.samples_sha256",),
}
"""Type -> the fields that name stored bytes, and that are left out of a payload without any."""
_OWN = "own_"
_SINCE_VERSION = {
    ("CandidateRejected", "report_sha256"): 2,
    ("BenchmarkRecorded", "workloads[].replay.plan_sha256"): 2,
    ("BenchmarkFailed", "workloads[].replay.plan_sha256"): 2,
}
"""Type and field -> the schema version that introduced the field; older payloads don't have it."""
PIECE_FIELDS = {"KernelRevoked": ("evidence[]",)}
"""Type -> fields in which only values that begin with `sha256:` name stored bytes."""
_PIECE = "sha256:"
LISTINGS = {"artifact_sha256": "files[].sha256", "plan_sha256": "cubins{}"}
"""Field of an event -> the place in the document it names where that document lists stored bytes itself."""
_PLAN = "plan.json"
"""Name of the file of an artifact that is its launch plan."""
_NO_FIELD = "no such field"
"""Text that stands for a missing field; it is no digest, so the blob counts as missing."""


def required_blobs(type_name: str, version: int, payload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield field and digest of each blob that must be stored for an event of this type and schema version."""
    fields = BLOB_FIELDS.get(type_name, ())
    if type_name in OWN_FIELDS and any(str(op).startswith(_OWN) for op in values_at(payload, "task.op")):
        fields += OWN_FIELDS[type_name]
    for field in fields:
        if version < _SINCE_VERSION.get((type_name, field), 1):
            continue
        for digest in values_at(payload, field):
            if digest is not None:
                yield field, str(digest)
    for field in LEFT_OUT.get(type_name, ()):
        yield from ((field, str(digest)) for digest in values_at(payload, field) if digest != _NO_FIELD)
    for field in PIECE_FIELDS.get(type_name, ()):
        for piece in values_at(payload, field):
            if str(piece).startswith(_PIECE):
                yield field, str(piece).removeprefix(_PIECE)


def is_listing(field: str) -> bool:
    """Return whether the field names a document that lists stored bytes itself."""
    return field.rpartition(".")[2] in LISTINGS


def listed_blobs(field: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield field and digest of each blob that the stored document in this field lists."""
    name = field.rpartition(".")[2]
    path = LISTINGS[name]
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    for digest in values_at(document, path):
        yield f"{name}.{path}", str(digest)
    if name == "artifact_sha256" and isinstance(document, dict):
        for file in values_at(document, "files[]"):
            if isinstance(file, dict) and file.get("path") == _PLAN:
                yield "plan_sha256", str(file.get("sha256"))


def values_at(node: object, path: str) -> Iterator[object]:
    """Yield the values at a dotted path: `name[]` is each item of a list, `name{}` each value of an object.

    A missing field yields a text that is no digest.
    """
    step, _, rest = path.partition(".")
    name = step.rstrip("[]{}")
    child = node.get(name, _NO_FIELD) if isinstance(node, dict) else _NO_FIELD
    if step.endswith("[]") and isinstance(child, list):
        children: list[object] = child
    elif step.endswith("{}") and isinstance(child, dict):
        children = list(child.values())
    else:
        children = [child]
    for one in children:
        if rest and isinstance(one, dict):
            yield from values_at(one, rest)
        else:
            yield one
