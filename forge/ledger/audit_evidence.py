"""The audit's second half: the bytes that events name must be there and be what the name says.

Not every field called `*_sha256` names stored bytes: a policy's or an environment's digest needs none. Those
that do are listed here and must exist; any other whose bytes happen to be stored must still hash to its name.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path

from forge.ledger.audit_report import Problem

BLOB_FIELDS: dict[str, tuple[str, ...]] = {
    "TaskCreated": ("task.held_out_sha256",),
    "RunStarted": ("policy_sha256",),
    "PromptRendered": ("rendered_sha256",),
    "CandidateSubmitted": ("files.files[].sha256",),
    "CandidateRejected": ("counterexample_sha256", "report_sha256"),
    "CandidateVerified": ("report_sha256", "artifact_sha256"),
    "BenchmarkRecorded": ("report_sha256", "workloads[].samples_sha256"),
    "BenchmarkFailed": ("report_sha256", "workloads[].samples_sha256"),
    "KernelPromoted": ("files[].sha256",),
    "RunSealed": ("manifest_sha256",),
}
"""Type -> its payload's fields that name stored bytes; null where the type allows it."""
_SINCE_VERSION = {("CandidateRejected", "report_sha256"): 2}
"""Fields that older payloads of their type don't have."""
PIECE_FIELDS = {"KernelRevoked": ("evidence[]",)}
"""Type -> fields of whose values only some name stored bytes: those that begin with `sha256:`."""
_PIECE = "sha256:"

_NAMING = frozenset(name.encode() for name in ("RunSealed", *BLOB_FIELDS, *PIECE_FIELDS))
_DIGEST_KEY = re.compile(rb'sha256":["[]')
"""What stands in the canonical text of every payload that has a field for `_digest_fields`."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MANIFEST = "manifest.json"
_CHUNK_BYTES = 1 << 20


class Evidence:
    """The blobs and run directories under one `forge_runs`; a blob named often is hashed once."""

    def __init__(self, runs: Path, *, run_folders: bool = True) -> None:
        self._runs = runs
        self._run_folders = run_folders
        """Whether sealed runs are expected here: those of another ledger aren't."""
        self._seen: dict[str, str | None] = {}
        self._told: set[str] = set()

    def asks(self, kind: object, payload: bytes) -> bool:
        """Whether such an event can name any bytes: only then need its payload be read."""
        return kind in _NAMING or _DIGEST_KEY.search(payload) is not None

    def problems(self, seq: int, type_name: str, version: int, payload: Mapping[str, object]) -> list[Problem]:
        """What an event names and isn't there, or isn't what it was."""
        found = list(self._required(seq, type_name, version, payload))
        named = {problem.expected for problem in found}
        for field, digest in _digest_fields(payload):
            if digest not in named and self._found(digest) not in (None, digest):
                found.append(Problem(seq, f"blob {field}", digest, str(self._found(digest))))
                named.add(digest)
        self._told |= named
        if type_name == "RunSealed" and self._run_folders:
            found += self._run_problems(seq, payload)
        return found

    def unnamed(self) -> list[Problem]:
        """Stored blobs that no event names and that aren't what their own name says."""
        stored = (path.name for path in sorted((self._runs / "cas").glob("[0-9a-f][0-9a-f]/*")))
        return [
            Problem(None, "blob that no event names", name, str(self._found(name)))
            for name in stored
            if _DIGEST.fullmatch(name) and name not in self._told and self._found(name) != name
        ]

    def _required(self, seq: int, type_name: str, version: int, payload: Mapping[str, object]) -> Iterator[Problem]:
        for field, digest in required_blobs(type_name, version, payload):
            actual = self._found(digest)
            if actual != digest:
                yield Problem(seq, f"blob {field}", digest, actual or "missing")

    def _found(self, digest: str) -> str | None:
        """The digest of the bytes stored under `digest`; None if there are none."""
        if digest not in self._seen:
            path = self._runs / "cas" / digest[:2] / digest
            self._seen[digest] = _sha256_of(path) if _DIGEST.fullmatch(digest) else None
        return self._seen[digest]

    def _run_problems(self, seq: int, payload: Mapping[str, object]) -> Iterator[Problem]:
        run_id, expected = str(payload.get("run_id")), str(payload.get("manifest_sha256"))
        what = f"run {run_id}"
        folder = self._runs / run_id
        if folder.parent != self._runs or run_id.startswith("."):
            yield Problem(seq, what, "the name of a folder", run_id)
            return
        manifest = _sha256_of(folder / _MANIFEST)
        if manifest != expected:
            yield Problem(seq, f"{what}/{_MANIFEST}", expected, manifest or "missing")
            return
        listed = _listed((folder / _MANIFEST).read_bytes())
        present = dict(_files(folder))
        for name in sorted(listed.keys() | present.keys()):
            wanted, actual = listed.get(name, "no such file"), present.get(name, "missing")
            if wanted != actual:
                yield Problem(seq, f"{what}/{name}", wanted, actual)


def required_blobs(type_name: str, version: int, payload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Field and digest of each blob that must be stored for such an event, written in that schema version."""
    for field in BLOB_FIELDS.get(type_name, ()):
        if version < _SINCE_VERSION.get((type_name, field), 1):
            continue
        for digest in _values(payload, field.split(".")):
            if digest is not None:
                yield field, str(digest)
    for field in PIECE_FIELDS.get(type_name, ()):
        for piece in _values(payload, field.split(".")):
            if str(piece).startswith(_PIECE):
                yield field, str(piece).removeprefix(_PIECE)


def _values(node: object, path: list[str]) -> Iterator[object]:
    """The values at a dotted path; `name[]` is each item of a list, a missing field a missing blob."""
    if not path:
        yield node
        return
    name, _, each = path[0].partition("[")
    child = node.get(name, "no such field") if isinstance(node, dict) else "no such field"
    if each and isinstance(child, list):
        for item in child:
            yield from _values(item, path[1:])
    else:
        yield from _values(child, path[1:]) if isinstance(child, dict) or len(path) == 1 else [child]


def _digest_fields(node: Mapping[str, object] | list[object], name: str = "") -> Iterator[tuple[str, str]]:
    """Every field below `node` that is called `*sha256` and looks like one."""
    for key, value in zip(repeat(name), node, strict=False) if isinstance(node, list) else node.items():
        if isinstance(value, str):
            if key.endswith("sha256") and _DIGEST.fullmatch(value):
                yield key, value
        elif isinstance(value, (dict, list)):
            yield from _digest_fields(value, key)


def _listed(manifest: bytes) -> dict[str, str]:
    """Path -> digest, as a manifest says; its own digest was checked before."""
    try:
        entries = json.loads(manifest)["files"]
        return {str(entry["path"]): str(entry["sha256"]) for entry in entries}
    except (ValueError, KeyError, TypeError) as error:
        return {_MANIFEST: f"a manifest, not {error!r}"}


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Path -> digest of each file of a run but its manifest; `not_regular` for a link or device."""
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in names + links:
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if relative != _MANIFEST:
                yield relative, _sha256_of(path) or "not_regular"


def _sha256_of(path: Path) -> str | None:
    """The digest of a regular file's bytes; None if it is missing, a link or a device."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        digest = hashlib.sha256()
        with open(path, "rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
