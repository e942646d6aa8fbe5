"""How a program writes candidates: the steps that it may ask for, what it learns, and the protocol between both.

An author is a pure function of its log. A session asks it for the next step, carries the step out, appends the result
to the log, and asks again. The same seed, log and budget views give the same steps, so a session can be resumed and
replayed.

Nothing here is evidence. A trial ranks drafts; a promotion reads what the gates and the clock say of a candidate.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import Field, StringConstraints, ValidationError

from forge.domain.candidate import Candidate, CandidateFile, Identifier, Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Digest, Value, digest_of, is_false, is_unset, sha256
from forge.domain.evidence import Interval
from forge.domain.feedback import Feedback
from forge.domain.session import WishKind
from forge.domain.verdict import UNDECIDED, Accepted, Inconclusive, Reason, Verdict

ParameterValue = bool | int | float | Annotated[str, StringConstraints(max_length=100)]
"""One value of a parameter: what a constant of a template may be set to."""
MOST_AT_ONCE = 32
"""Number of drafts of one screening, at most: they all stay loaded until the last one is dropped."""
MOST_FINALISTS = 16
"""Number of drafts that one step may submit, at most. Each takes about a minute of gates and clock."""


class Setting(Value):
    """A value for each parameter of a template."""

    values: Annotated[dict[Identifier, ParameterValue], Field(max_length=64)]

    @property
    def sha256(self) -> Digest:
        """Name the setting by the digest of its values."""
        return digest_of(self)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in sorted(self.values.items())) or "no parameters"


class Draft(Value):
    """The five files of a candidate that isn't submitted yet. They may be wrong in any way."""

    files: Annotated[dict[str, str], Field(max_length=len(REQUIRED_FILES))]
    """Text of each file, by name."""
    hypothesis: Annotated[str, StringConstraints(max_length=2000)]
    """Reason why this draft should be faster, which names what changed."""
    setting: Setting | None = None
    """Setting of the template that the files were made from. None: they were made in another way."""

    @property
    def sha256(self) -> Digest:
        """Name the draft by the digest of its files' names and contents."""
        return digest_of({name: sha256(text.encode()) for name, text in self.files.items()})

    @property
    def candidate_sha256(self) -> Digest | None:
        """Digest that the candidate will have. None: a file is missing, or metadata.json can't be read."""
        if set(self.files) != set(REQUIRED_FILES):
            return None
        try:
            metadata = Metadata.model_validate_json(self.files["metadata.json"])
        except ValidationError:
            return None
        contents = ((name, self.files[name].encode()) for name in REQUIRED_FILES)
        listed = tuple(
            CandidateFile(path=name, sha256=sha256(content), size_bytes=len(content)) for name, content in contents
        )
        entry_point = metadata.entry_point or metadata.op
        return Candidate(files=listed, language=metadata.language, entry_point=entry_point).sha256


class TimedTrial(Value):
    """A draft that was right at the shapes that were asked, and its time beside the reference's."""

    outcome: Literal["timed"] = "timed"
    speedup: Interval
    """Ratio of the reference's time to the draft's, over paired windows; the interval is of this trial alone."""
    log_mean: float
    """Log ratio of the paired windows: the median of each process, and their mean."""
    log_error: Annotated[float, Field(ge=0)]
    """Standard error of that log ratio: over processes if there were several, else over windows."""
    windows: Annotated[int, Field(ge=1)]
    """Number of paired windows."""
    processes: Annotated[int, Field(ge=1)] = Field(default=1, exclude_if=lambda count: count == 1)
    """Number of processes that the windows were spread over. Windows of one process share its addresses."""
    median_ns: Annotated[float, Field(gt=0)]
    """Median time of a call in nanoseconds."""


class FailedTrial(Value):
    """A draft that didn't build, gave a wrong answer, or didn't end."""

    outcome: Literal["failed"] = "failed"
    stage: Literal["sources", "build", "load", "check", "plan", "time"]
    reason: Reason


class Trial(Value):
    """The result of screening one draft. It is never evidence: no gate, promotion or lookup reads it."""

    draft: Digest
    """Digest of the draft."""
    setting: Setting | None
    result: Annotated[TimedTrial | FailedTrial, Field(discriminator="outcome")]


class Screen(Value):
    """A step: compile drafts, ask whether they are right, and time those that are beside a reference."""

    kind: Literal["screen"] = "screen"
    drafts: Annotated[tuple[Draft, ...], Field(min_length=1, max_length=MOST_AT_ONCE)]
    reference: Draft
    """Draft that each window is paired with. One reference throughout a session makes ratios comparable."""
    final: bool = False
    """Whether all drafts are timed to the end. Otherwise those that lose by more than the interval are dropped."""


class Submit(Value):
    """A step: hand drafts in as candidates; each goes through all gates, the clock and the promotion rule."""

    kind: Literal["submit"] = "submit"
    drafts: Annotated[tuple[Draft, ...], Field(min_length=1, max_length=MOST_FINALISTS)]
    first_right: bool = Field(default=False, exclude_if=is_false)
    """Whether the step ends with the first draft that passes every gate. Others that weren't begun aren't judged."""


Ending = Literal["nothing_left", "no_gain", "reference_failed", "budget", "finalists_judged", "machine_failed"]
"""Why an author has nothing more to ask for."""


class Finished(Value):
    """The last step: the author has nothing more to ask for."""

    kind: Literal["finished"] = "finished"
    reason: Ending
    detail: Annotated[str, StringConstraints(max_length=1000)]
    """One sentence with the values behind the reason."""


MOST_ANSWER_TOKENS = 10**9
"""Number of tokens that an answer may have, at most. No model writes a thousandth of it."""


OUTSIDE = frozenset({"command", "person"})
"""Names under which an author asks what is no language model: a program of the user, or a person. Neither has a price
in tokens that Forge knows."""


MOST_IMAGE_CHARACTERS = 2_000_000
"""Length of a picture in base64, at most: a screenshot of a profiler has a quarter of it."""


class Branch(Value):
    """A further prompt of a step that asks, which is sent beside the first one."""

    prompt: Annotated[str, StringConstraints(min_length=1, max_length=2_000_000)]
    wording: Annotated[str, StringConstraints(max_length=40)] | None = Field(default=None, exclude_if=is_unset)
    """Name of the wording that the prompt was made with."""


class Ask(Value):
    """A step: ask a language model, a program or a person. A model without a known price isn't asked."""

    kind: Literal["ask"] = "ask"
    model: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=2_000_000)]
    most_tokens: Annotated[int, Field(ge=1, le=MOST_ANSWER_TOKENS)]
    """Number of tokens that the answer may have, at most."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(default=None, exclude_if=is_unset)
    """Temperature of the answer. None: the provider's own."""
    wait_ms: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude_if=is_unset)
    """Time in milliseconds in which the answer is there, at most. None: the usual time of a language model."""
    wording: Annotated[str, StringConstraints(max_length=40)] | None = Field(default=None, exclude_if=is_unset)
    """Name of the wording that the prompt was made with."""
    image: Annotated[str, StringConstraints(max_length=MOST_IMAGE_CHARACTERS)] | None = Field(
        default=None, exclude_if=is_unset
    )
    """Picture in base64 that goes with each prompt, for models that see. None: there is none."""
    beside: Annotated[tuple[Branch, ...], Field(max_length=MOST_FINALISTS - 1)] = Field(
        default=(), exclude_if=lambda branches: not branches
    )
    """Further prompts, which are sent at the same time and under the same terms."""

    @property
    def count(self) -> int:
        """Return the number of prompts."""
        return 1 + len(self.beside)

    def at(self, place: int) -> "Ask":
        """Return the step that asks with one of its prompts alone."""
        if not self.beside:
            return self
        one = self.beside[place - 1] if place else Branch(prompt=self.prompt, wording=self.wording)
        return self.model_copy(update={"prompt": one.prompt, "wording": one.wording, "beside": ()})


class Wish(Value):
    """A step: ask for what isn't an author's to decide. It is recorded and refused, always."""

    kind: Literal["wish"] = "wish"
    wish: WishKind
    detail: Annotated[str, StringConstraints(max_length=1000)]


Step = Annotated[Screen | Submit | Ask | Wish | Finished, Field(discriminator="kind")]
StepKind = Literal["screen", "submit", "ask", "wish", "finished"]


class Screened(Value):
    """An entry of the log: the result of a `Screen` step."""

    kind: Literal["screened"] = "screened"
    reference: Digest
    """Digest of the reference draft."""
    trials: tuple[Trial, ...]
    """One trial for each draft, in the step's order."""
    reference_failed: Reason | None = None
    """Why the reference couldn't be timed; there are no trials then."""
    final: bool = False


OVERTAKEN = "another candidate of its step passed every gate first"
"""Message of a candidate's verdict that was given up for that. It says nothing about the candidate."""


class Judged(Value):
    """An entry of the log: what the gates, the clock and the promotion rule said of one submitted draft.

    It holds nothing of held-out shapes.
    """

    kind: Literal["judged"] = "judged"
    draft: Digest
    candidate: Digest
    verdict: Annotated[Verdict, Field(discriminator="verdict")]
    speedup: Interval | None = None
    """Speedup over the baseline to beat, if it was measured; the confirmation's if there is one."""
    kernel_id: str | None = None
    """Name of the promoted kernel. None: it wasn't promoted."""
    feedback: Feedback | None = Field(default=None, exclude_if=is_unset)
    """What was seen besides the verdict. None: an entry that is older than the field."""

    verified: bool = Field(default=False, exclude_if=is_false)
    """Whether the gates' verdict is recorded and is a pass. False: it isn't, or the entry is older than the field."""

    @property
    def passed_gates(self) -> bool:
        """Return whether the candidate passed every gate, whatever its time is, and if it has none."""
        if self.verified or isinstance(self.verdict, Accepted):
            return True
        was_timed = self.speedup is not None and self.verdict.reason.code in UNDECIDED
        return self.verdict.reason.code == "TOO_SLOW" or was_timed

    @property
    def was_overtaken(self) -> bool:
        """Return whether its judgement was given up, because another candidate of its step was right first."""
        return isinstance(self.verdict, Inconclusive) and self.verdict.reason.message == OVERTAKEN


class Missed(Value):
    """An entry of the log: a step that the machine couldn't carry out. It says nothing about the drafts."""

    kind: Literal["missed"] = "missed"
    step: StepKind
    reason: Reason


class Replied(Value):
    """An entry of the log: the answer of a language model. It is untrusted text."""

    kind: Literal["replied"] = "replied"
    text: str | None
    """The answer. None: there was none."""
    failure: str | None = None
    """Why there was no answer."""


class Denied(Value):
    """An entry of the log: a wish that was refused."""

    kind: Literal["denied"] = "denied"
    wish: WishKind


LogEntry = Annotated[Screened | Judged | Missed | Replied | Denied, Field(discriminator="kind")]


class BudgetLeft(Value):
    """What a session may still use, as its author sees it. None: there is no limit.

    A session records the view with each step, since a replay must show the same one.
    """

    candidates: Annotated[int, Field(ge=0)] | None = None
    """Number of drafts that may still be submitted."""
    screening_s: Annotated[float, Field(ge=0)] | None = Field(default=None, exclude_if=is_unset)
    """Wall time in seconds that screening may still take, besides a final one. At 0 the author chooses finalists."""
    wall_s: Annotated[float, Field(ge=0)] | None = None
    device_s: Annotated[float, Field(ge=0)] | None = None
    micro_dollars: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


class Author(Protocol):
    """A program that writes candidates. Everything that it was made from is behind `identity`."""

    @property
    def name(self) -> str:
        """Name of the kind of author, such as `search`."""

    @property
    def identity(self) -> Digest:
        """Digest of all that steps follow from besides seed, log and budget: template, space, options, version."""

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return the next step.

        It reads no clock and no file, and draws random numbers from `seed` only. `log` has its entries in order: one
        for each `Screen` and `Wish` step, prompt of an `Ask` step, and draft of a `Submit` step. An entry is a
        `Missed` if the machine couldn't carry out its step.
        """
