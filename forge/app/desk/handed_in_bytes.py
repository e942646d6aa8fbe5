"""Bounds how many bytes of sources one author keeps in the workspace: what was submitted is stored for good."""

from collections.abc import Mapping

from forge.app.access.tokens import Caller
from forge.app.desk.limits import FILE_LIMIT_BYTES
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.errors import RequestRefused
from forge.events import CandidateSubmitted
from forge.projections.fold import holds

MOST_BYTES = 2**30
"""Largest size in bytes of what one author has submitted, by any of its runs. Chosen: 1 GiB, a hundred thousand usual
candidates of 10 KiB."""
LARGEST_CANDIDATE = FILE_LIMIT_BYTES * len(REQUIRED_FILES)
"""Largest size of one candidate in bytes."""
OWN = "SELECT count(*), min(seq) FROM candidates WHERE actor = ?"
"""Query for the number of a caller's candidates and the first event of one."""


def require_disk(workspace: Workspace, caller: Caller, files: Mapping[str, str]) -> None:
    """Raise RequestRefused if an author would have submitted over `MOST_BYTES`; an operator may submit any amount."""
    if caller.scope != "author":
        return
    with workspace.publication.tables() as history:
        count, first = history.execute(OWN, (caller.actor,)).fetchone()
    if (count + 1) * LARGEST_CANDIDATE <= MOST_BYTES:
        return
    size = sum(len(text.encode(errors="surrogatepass")) for text in files.values())
    before = 0 if first is None else _handed_in(workspace, caller.actor, first)
    if before + size > MOST_BYTES:
        raise RequestRefused(
            f"{caller.actor!r} has submitted {before} bytes, and these files have {size}: expected at most "
            f"{MOST_BYTES} in all; an operator may grant another token",
            status=429,
        )


def _handed_in(workspace: Workspace, actor: str, first: int) -> int:
    """Return the size of an author's candidates in bytes. The same bytes count each time that they were submitted."""
    return sum(
        file.size_bytes
        for one in workspace.ledger.read(after_seq=first - 1, types=(CandidateSubmitted.TYPE,))
        if one.actor == actor and holds(one, CandidateSubmitted)
        for file in one.event.files.files
    )
