"""Checks the bytes that events name: they must be stored, and their digest must be the name.

Not every field called `*_sha256` names stored bytes: those of an environment aren't stored. `referenced_blobs` lists
the fields whose bytes must be stored. Under any other digest the bytes may be missing, but if they are stored they
must hash to it.
"""

import hashlib
import json
import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path

from forge.ledger.audit.referenced_blobs import STORED_FIELDS, is_listing, listed_blobs, required_blobs
from forge.ledger.audit.report import AuditProblem

_TYPES_NAMING_BLOBS = frozenset(name.encode() for name in ("RunSealed", *STORED_FIELDS))
"""Event types that can name stored bytes."""
_DIGEST_KEY = re.compile(rb'sha256":["[]')
"""Text that occurs in every canonical payload with a field for `_digest_fields`."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
"""Pattern of a SHA-256 digest in hex."""
_MANIFEST = "manifest.json"


class EvidenceCheck:
    """The blobs and run directories under one `forge_runs`; a blob that is named several times is hashed once."""

    def __init__(self, runs: Path, *, own: bool = True) -> None:
        self._runs = runs
        self._own = own
        """True for this ledger: its sealed runs, and the blobs that stored listings name, must be there. For an
        imported ledger they needn't be."""
        self._seen: dict[str, str | None] = {}
        self._told: set[str] = set()
        self._listed: set[tuple[str, str]] = set()

    def asks(self, kind: object, payload: bytes) -> bool:
        """Return whether an event of this type can name stored bytes; only then its payload must be read."""
        return kind in _TYPES_NAMING_BLOBS or _DIGEST_KEY.search(payload) is not None

    def problems(self, seq: int, type_name: str, version: int, payload: Mapping[str, object]) -> list[AuditProblem]:
        """Return a problem for each blob or run file that the event names and that is missing or different."""
        found = list(self._required(seq, type_name, version, payload))
        named = {problem.expected for problem in found}
        for field, digest in _digest_fields(payload):
            if digest not in named and self._found(digest) not in (None, digest):
                found.append(AuditProblem(seq, f"blob {field}", digest, str(self._found(digest))))
                named.add(digest)
        self._told |= named
        if type_name == "RunSealed" and self._own:
            found += self._run_problems(seq, payload)
        return found

    def unnamed(self) -> list[AuditProblem]:
        """Return a problem for each stored blob that no event names and that has another digest than its name."""
        stored = (path.name for path in sorted((self._runs / "cas").glob("[0-9a-f][0-9a-f]/*")))
        return [
            AuditProblem(None, "blob that no event names", name, str(self._found(name)))
            for name in stored
            if _DIGEST.fullmatch(name) and name not in self._told and self._found(name) != name
        ]

    def _required(
        self, seq: int, type_name: str, version: int, payload: Mapping[str, object]
    ) -> Iterator[AuditProblem]:
        pending = deque(required_blobs(type_name, version, payload))
        while pending:
            field, digest = pending.popleft()
            actual = self._found(digest)
            if actual != digest:
                yield AuditProblem(seq, f"blob {field}", digest, actual or "missing")
            elif self._own and is_listing(field) and (field, digest) not in self._listed:
                self._listed.add((field, digest))
                pending += listed_blobs(field, self._path(digest).read_bytes())

    def _found(self, digest: str) -> str | None:
        """Return the digest of the bytes stored under `digest`; None if there are none."""
        if digest not in self._seen:
            self._seen[digest] = _sha256_of(self._path(digest)) if _DIGEST.fullmatch(digest) else None
        return self._seen[digest]

    def _path(self, digest: str) -> Path:
        return self._runs / "cas" / digest[:2] / digest

    def _run_problems(self, seq: int, payload: Mapping[str, object]) -> Iterator[AuditProblem]:
        run_id, expected = str(payload.get("run_id")), str(payload.get("manifest_sha256"))
        what = f"run {run_id}"
        folder = self._runs / run_id
        if folder.parent != self._runs or run_id.startswith("."):
            yield AuditProblem(seq, what, "the name of a folder", run_id)
            return
        if folder.is_symlink():
            yield AuditProblem(seq, what, "a folder", "a symbolic link")
            return
        manifest = _sha256_of(folder / _MANIFEST)
        if manifest != expected:
            yield AuditProblem(seq, f"{what}/{_MANIFEST}", expected, manifest or "missing")
            return
        listed = _listed((folder / _MANIFEST).read_bytes())
        present = dict(_files(folder))
        for name in sorted(listed.keys() | present.keys()):
            wanted, actual = listed.get(name, "no such file"), present.get(name, "missing")
            if wanted != actual:
                yield AuditProblem(seq, f"{what}/{name}", wanted, actual)


def _digest_fields(node: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each field below `node` that is called `*sha256` and holds a digest."""
    pending: list[tuple[str, object]] = [("", node)]  # no recursion: a forged payload may be nested deeply
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += reversed(value.items())
        elif isinstance(value, list):
            pending += zip(repeat(key), reversed(value), strict=False)
        elif isinstance(value, str) and key.endswith("sha256") and _DIGEST.fullmatch(value):
            yield key, value


def _listed(manifest: bytes) -> dict[str, str]:
    """Return path -> digest as the manifest says; the manifest's own digest was checked before."""
    try:
        entries = json.loads(manifest)["files"]
        return {str(entry["path"]): str(entry["sha256"]) for entry in entries}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return {_MANIFEST: f"a manifest, not {error!r}"}


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and digest of each file of a run but its manifest; `not_regular` for a link or device."""
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in names + links:
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if relative != _MANIFEST:
                yield relative, _sha256_of(path) or "not_regular"


def _sha256_of(path: Path) -> str | None:
    """Return the digest of a regular file's bytes; None if it is missing, a link or a device."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
