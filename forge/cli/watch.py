"""watch: a kernel is checked again whenever it is saved."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from forge.cli.candidate_log import show_log, show_place
from forge.cli.check import CheckOptions, Document, Files, check_document, hint_of
from forge.cli.evidence import show_evidence
from forge.cli.option_groups import with_groups
from forge.cli.options import Json
from forge.cli.output import SIMULATED, emit_json_line, emit_text, say, visible
from forge.cli.progress import reporting
from forge.errors import EnvironmentUnfit, ForgeError

if TYPE_CHECKING:
    from forge.app.check.check import CheckRequest

POLL_S = 0.2
"""Time between two looks at the files, in seconds. A person takes it for at once, and a look costs microseconds."""


@with_groups
def watch(files: Files, options: CheckOptions, as_json: Json = False) -> None:
    """Check a kernel as forge check does, now and after each save, until it is interrupted; record nothing.

    With --json it prints one document a line for each check. An interruption ends it with status 0.

    Example: forge watch reference.py kernel.py
    """
    try:
        _check_each_save(options.request("watch", files), as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit from None


def _check_each_save(request: "CheckRequest", *, as_json: bool) -> None:
    """Check now and after each save, without end; raise ForgeError if the first check can't be made."""
    from forge.app.check.check import check as judge

    saved = SavedFiles(tuple(path for path in (request.reference, request.kernel) if path is not None))
    for is_first in saved.versions():
        started = time.monotonic()
        try:
            with reporting("watch", hint=hint_of(request)) as progress:
                checked = judge(request, progress=progress)
        except ForgeError as error:
            if is_first or isinstance(error, EnvironmentUnfit):
                raise
            _show_error(error, as_json=as_json)
        else:
            document = check_document(checked, request)
            _show(document, time.monotonic() - started, as_json=as_json)
        say(f"watch: waiting for a save of {' or '.join(map(str, saved.paths))}; Ctrl-C ends")


Stamp = tuple[int, int, int]
"""Time of the last change in nanoseconds, size in bytes and inode of a file."""


@dataclass
class SavedFiles:
    """Some files, of which each saved version is taken once."""

    paths: tuple[Path, ...]
    _stamps: tuple[Stamp, ...] = ()
    _digest: str = ""

    def versions(self) -> Iterator[bool]:
        """Yield at once, and then for each version that was saved; say whether it is the first time.

        A version counts once it stays for `POLL_S`, so several saves in a row are one. A file that is gone is waited
        for, since an editor may put another in its place.
        """
        taken = self._content()
        yield True
        while True:
            before = self._content()
            time.sleep(POLL_S)
            content = self._content()
            if content is not None and content == before and content != taken:
                taken = content
                yield False

    def _content(self) -> str | None:
        """Return the digest of all files, read again only if one was changed; None if one is gone."""
        try:
            found = tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in (path.stat() for path in self.paths))
            if found != self._stamps:
                digest = sha256(b"".join(sha256(path.read_bytes()).digest() for path in self.paths))
                self._stamps, self._digest = found, digest.hexdigest()
        except OSError:
            return None
        return self._digest


def _show(document: Document, took_s: float, *, as_json: bool) -> None:
    """Print a line with the verdict, and below it what helps to fix a refused kernel."""
    if as_json:
        emit_json_line(document)
        return
    reason = document["reason"]
    simulated = f" ({SIMULATED})" if document["simulated"] else ""
    why = f"  {reason['code']}: {reason['message']}" if reason else ""
    said = f"{document['verdict']}{simulated} after {took_s:.1f} s{why}"
    emit_text(visible(said).replace("\n", r"\n") + "\n")
    show_evidence(document)
    if reason is not None:
        show_log(document["log"], None)
        show_place(document["mend"])


def _show_error(error: ForgeError, *, as_json: bool) -> None:
    """Print why there is no verdict; a later save may fix it."""
    if as_json:
        emit_json_line({"error": {"code": error.code, "message": error.message}})
    else:
        say(f"error[{error.code}]: {error.message}")
