"""Which fields of a payload name stored bytes: the audit's own list, apart from the event models.

A test walks every event model and every older payload, and fails for a digest that is neither here nor in its list
of digests that stand for something else (`tests/ledger/test_audit_named.py`).
"""

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
    "BenchmarkRecorded": _TIMED,
    "BenchmarkFailed": _TIMED,
    "ProfileCaptured": ("raw_sha256",),
    "PromotionDenied": ("policy_sha256",),
    "KernelPromoted": ("files[].sha256", "artifact_sha256", "policy_sha256", *_TASK),
    "LessonAccepted": ("after_sha256",),
    "RunSealed": ("manifest_sha256",),
}
"""Type -> its payload's fields that name stored bytes; null where the type allows it."""
OWN_FIELDS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("TaskCreated", "KernelPromoted"), ("task.reference_sha256", "task.inputs_sha256")
)
"""The same for tasks of an operation of the user's own: its reference and its contract are stored, a catalogue's are
part of Forge."""
_OWN = "own_"
_SINCE_VERSION = {
    ("CandidateRejected", "report_sha256"): 2,
    ("BenchmarkRecorded", "workloads[].replay.plan_sha256"): 2,
    ("BenchmarkFailed", "workloads[].replay.plan_sha256"): 2,
}
"""Fields that older payloads of their type don't have."""
PIECE_FIELDS = {"KernelRevoked": ("evidence[]",)}
"""Type -> fields of whose values only some name stored bytes: those that begin with `sha256:`."""
_PIECE = "sha256:"
LISTINGS = {"artifact_sha256": "files[].sha256", "plan_sha256": "cubins{}"}
"""Field of an event -> where the document that it names lists stored bytes in turn."""
_PLAN = "plan.json"
"""The piece of an artifact that is a launch plan."""
_NO_FIELD = "no such field"


def required_blobs(type_name: str, version: int, payload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Field and digest of each blob that must be stored for such an event, written in that schema version."""
    fields = BLOB_FIELDS.get(type_name, ())
    if type_name in OWN_FIELDS and any(str(op).startswith(_OWN) for op in values_at(payload, "task.op")):
        fields += OWN_FIELDS[type_name]
    for field in fields:
        if version < _SINCE_VERSION.get((type_name, field), 1):
            continue
        for digest in values_at(payload, field):
            if digest is not None:
                yield field, str(digest)
    for field in PIECE_FIELDS.get(type_name, ()):
        for piece in values_at(payload, field):
            if str(piece).startswith(_PIECE):
                yield field, str(piece).removeprefix(_PIECE)


def is_listing(field: str) -> bool:
    """Whether what a field names is a document that names stored bytes in turn."""
    return field.rpartition(".")[2] in LISTINGS


def listed_blobs(field: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Field and digest of each blob that the stored document in such a field names in turn."""
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
    """The values at a dotted path: `name[]` is each item of a list, `name{}` each value of an object.

    A field that is missing gives a text that no digest is.
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
