"""Answers what may be said about speed: a kernel's sentences from its evidence, and pages checked by the ledger."""

from collections.abc import Callable, Sequence
from pathlib import Path

from forge.app.known_kernel import require_known
from forge.app.user.user_paths import read_regular
from forge.app.workspace import Workspace
from forge.claims import TYPES, ClaimEvidence, check_page, gather, kernel_sentences
from forge.errors import UsageError

Data = dict[str, object]
PAGE_LIMIT_BYTES = 2**20
"""Largest page in bytes. A parser would take long for a larger file, so it is refused before it is read."""
FIGURES_LIMIT_BYTES = 2**24
"""Largest file of figures that a page names, in bytes. Chosen; the host reads the whole file for each page that names
it."""
SUFFIXES = ("", ".md", ".markdown", ".txt")
"""Endings of the names of pages."""


def evidence_of(home: Path) -> ClaimEvidence:
    """Return everything in a workspace's ledger that a sentence about speed can cite. Nothing is written."""
    with Workspace.open(home, read_only=True) as workspace:
        return gather(workspace.ledger.read(types=TYPES))


def kernel_claims(home: Path, kernel_id: str) -> Data:
    """Return the sentences that a kernel's evidence allows; raise UnknownName.

    Raises UsageError if nothing was promoted yet.
    """
    evidence = evidence_of(home)
    require_known(kernel_id, evidence.kernel_ids)
    points = evidence.by_kernel(kernel_id)
    own = [one for one in points if one.timing.shape == one.task.shape]
    ended = own[0].ended
    others = [one for one in points if one not in own]
    sentences = [
        sentence.model_dump(mode="json")
        for one in own
        for sentence in kernel_sentences(one, further=[other for other in others if other.regime == one.regime])
    ]
    return {"kernel_id": kernel_id, "may_be_quoted": ended is None, "sentences": sentences}


def check_files(home: Path, files: Sequence[Path], *, code: bool) -> Data:
    """Check pages against a workspace's ledger, which is only read; raise UsageError for a file that is no page."""
    texts = [(file, _page(file)) for file in files]
    evidence = evidence_of(home)
    reports = [check_page(str(file), text, evidence, _beside(file), code=code) for file, text in texts]
    return {
        "ok": not any(report.flagged for report in reports),
        "files": [report.model_dump(mode="json") for report in reports],
    }


def _page(file: Path) -> str:
    """Return the text of a Markdown file."""
    if file.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{str(file)!r} is no Markdown: expected a name in .md, .markdown or .txt")
    text = _text(file, PAGE_LIMIT_BYTES)
    if any(ord(sign) < ord(" ") and sign not in "\t\n\r\f" for sign in text):
        raise UsageError(f"{str(file)!r} is no Markdown: it holds control characters; expected text")
    return text


def _text(file: Path, limit_bytes: int) -> str:
    try:
        return read_regular(file, limit_bytes=limit_bytes).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"can't read {str(file)!r} ({error.strerror}): expected a file of text") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(file)!r} is no text in UTF-8 (byte {error.start}): expected Markdown") from error
    except ValueError as error:
        raise UsageError(f"can't read {str(file)!r} ({error}): expected a file of text") from error


def _beside(page: Path) -> Callable[[str], str | None]:
    """Return a function that reads a file by the name in a link, relative to the page's folder."""

    def read(untrusted_name: str) -> str | None:
        named = Path(untrusted_name)
        try:
            if named.is_absolute() or not (page.parent / named).is_file():
                return None
        except OSError:  # no file has such a name
            return None
        return _text(page.parent / named, FIGURES_LIMIT_BYTES)

    return read
