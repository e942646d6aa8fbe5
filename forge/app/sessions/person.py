"""A person as the author: the brief is written to a folder, and the session waits for each submission."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forge.app.sessions.model_exchange import ModelAnswer
from forge.app.workspace import Workspace
from forge.authors.kinds import BRIEF, AuthorSource
from forge.domain.authoring import Ask, Author, BudgetLeft, LogEntry, Step
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Digest
from forge.errors import UsageError
from forge.pipeline.candidate_folder import BadFolder, read_file
from forge.projections.sessions import SessionState

FEEDBACK = "feedback.json"
"""Name of the file with the feedback on the last submission."""


class SessionWaits(Exception):
    """The session goes on with the person's next submission."""


def feedback_file(workspace: Workspace, state: SessionState) -> Path:
    """Return the path of a person's feedback; raise UsageError for a session of another author."""
    if state.opened.event.author != "person":
        raise UsageError(
            f"session {state.session_id!r} is of author {state.opened.event.author!r}: expected one of a person",
            hint="forge agent list",
        )
    folder = folder_of(workspace, state.session_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / FEEDBACK


def folder_of(workspace: Workspace, session_id: str) -> Path:
    """Return the folder in which a person finds the brief, the starting files and the feedback."""
    return workspace.runs_root / f"session-{session_id}"


def write_starting_files(workspace: Workspace, session_id: str, source: AuthorSource) -> Path:
    """Write the brief and the starting files into the session's folder; return the folder."""
    folder = folder_of(workspace, session_id)
    (folder / "starting").mkdir(parents=True, exist_ok=True)
    for name, text in source.files.items():
        (folder / name if name == BRIEF else folder / "starting" / name).write_text(text, encoding="utf-8")
    return folder


def read_submission(folder: Path, hypothesis: str) -> str:
    """Return a candidate's folder as the answer of a request; raise UsageError if it can't be read."""
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is not a folder: expected one with {', '.join(REQUIRED_FILES)}")
    files = {}
    for name in REQUIRED_FILES:
        content = read_file(folder / name)
        if isinstance(content, BadFolder):
            raise UsageError(f"bad candidate {str(folder)!r}: {content.message}")
        files[name] = content.decode(errors="replace")
    return json.dumps({"files": files, "hypothesis": hypothesis})


@dataclass
class OneSubmission:
    """Answers one request with a person's submission."""

    text: str
    is_taken: bool = False

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        """Return the text that the person submitted, without a cost. It is asked for once."""
        del step, request_id
        assert not self.is_taken, "the author waits before it asks a second time"
        self.is_taken = True
        return ModelAnswer(text=self.text, prompt_tokens=0, answer_tokens=0)


@dataclass(frozen=True)
class WaitingAuthor:
    """The author of the kind `person`. It waits, instead of asking, if nothing was submitted."""

    author: Author
    submission: OneSubmission
    feedback: Path

    @property
    def name(self) -> str:
        """Name of the kind of author."""
        return self.author.name

    @property
    def identity(self) -> Digest:
        """Digest of the author itself."""
        return self.author.identity

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return the author's step; raise SessionWaits if it asks and the submission was taken."""
        step = self.author.propose(seed, log, left)
        if not isinstance(step, Ask):
            return step
        self.feedback.write_text(step.prompt + "\n", encoding="utf-8")
        if self.submission.is_taken:
            raise SessionWaits
        return step
