"""Reads each policy that a ledger's events name as a workspace would read it."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from forge.app.stored.policy_file import recorded_policy
from forge.domain.misfit import misfit
from forge.domain.policy import Policy
from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.audit.report import AuditProblem
from forge.ledger.audit.stored import stored_bytes

_NAMED = re.compile(rb'"policy_sha256":"([0-9a-f]{64})"')
"""Text of the field with a policy's digest in a canonical payload."""


def policy_problems(ledger: Path, runs: Path) -> Iterator[AuditProblem]:
    """Yield a problem for each stored policy that no workspace could have, at the first event that names it."""
    seen: set[str] = set()
    with closing(connect_to_read(ledger, timeout_s=30)) as connection:
        for seq, payload in connection.execute("SELECT seq, CAST(payload AS BLOB) FROM event ORDER BY seq"):
            named = {digest.decode() for digest in _NAMED.findall(payload)} - seen
            seen |= named
            for digest in sorted(named):
                if (complaint := _complaint(runs, digest)) is not None:
                    yield AuditProblem(seq, "policy_sha256", "a policy that a workspace can have", complaint)


def _complaint(runs: Path, digest: str) -> str | None:
    content = stored_bytes(runs, digest)
    try:
        if content is not None:  # the check of stored bytes reports one that is missing
            recorded_policy(content)
    except ValidationError as error:
        return misfit(error, Policy)
    except (ValueError, TypeError) as error:
        return f"no policy: {error}"
    return None
