"""Computes the version of the judge: a digest of everything that decides a verdict."""

from functools import cache
from pathlib import Path

from forge.domain.digest import Digest, canonical, digest_of, sha256
from forge.domain.policy import Policy
from forge.lab.gates import GATES

_PACKAGE = Path(__file__).parent.parent
_JUDGES = ("domain", "guest", "lab", "languages", "operations", "sandbox")
"""Packages whose source decides a verdict."""


def gates_sha256(policy: Policy) -> Digest:
    """Return the judge's version: a digest of the gates' names in order, all judging source, and the policy.

    If any of these changes, earlier judgements are made anew.
    """
    names: list[object] = [gate.name for gate in GATES]
    return digest_of({"gates": names, "sources": _sources_sha256(), "policy": digest_of(policy)})


@cache
def _sources_sha256() -> Digest:
    files = sorted(path for folder in _JUDGES for path in (_PACKAGE / folder).rglob("*.py"))
    return sha256(canonical({path.relative_to(_PACKAGE).as_posix(): sha256(path.read_bytes()) for path in files}))
