"""The search author: drawn starts, neighbours of the fastest, restarts, a final screening, and a few finalists."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from forge.authors.search.explored import Explored, explored, sure
from forge.authors.search.template import Template
from forge.domain.authoring import (
    MOST_AT_ONCE,
    MOST_FINALISTS,
    BudgetLeft,
    Ending,
    Finished,
    LogEntry,
    Screen,
    Setting,
    Step,
    Submit,
)
from forge.domain.digest import Digest, Value, digest_of

VERSION = 4
"""Version of the strategy. Another version may propose other steps, so a session of another one can't go on."""
LEADERS = 4
"""Number of settings whose neighbours are tried. Chosen; with more, a climb also follows slower settings."""
DRAWN_SHARE = 4
"""Share of a later batch that is drawn anew: one in four, so that hill climbing can leave a local
optimum."""
DRAWS_EACH = 40
"""Number of draws for each setting that is still wanted, before a space counts as used up. Chosen: if nine in ten
settings are used, 40 draws miss all unused ones with a chance of 1.5 %."""
FINAL_FOR_EACH = 2
"""Number of settings in the final screening for each finalist: some turn out slower than they first seemed."""
MOST_MISSED = 3
"""Number of steps in a row that the machine couldn't carry out, after which the search ends. Chosen; each
further step costs a screening."""


class SearchOptions(Value):
    """How much is tried."""

    batch: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 16
    """Number of settings of one screening. Chosen: twice the drafts whose processes are alive at once. A larger batch
    learns less from each result before the next choice."""
    most_trials: Annotated[int, Field(ge=1, le=100_000)] = 240
    """Number of settings that are screened, at most. Fifteen batches of the usual size. Chosen; each further setting
    costs a build and a screening."""
    finalists: Annotated[int, Field(ge=1, le=MOST_FINALISTS)] = 3
    """Number of settings that are handed in as candidates, at most."""
    judge_own: Annotated[int, Field(ge=0, le=1)] = 1
    """Whether the template's own setting is handed in: beside the finalists, whose confirmed gains are over it, and
    alone if no setting is faster."""
    patience: Annotated[int, Field(ge=1, le=100)] = 2
    """Number of batches without progress after which the next climb begins."""


@dataclass(frozen=True)
class SearchAuthor:
    """Searches the settings of one template."""

    template: Template
    options: SearchOptions

    @property
    def name(self) -> str:
        """Name of this kind of author."""
        return "search"

    @property
    def identity(self) -> Digest:
        """Digest of the template, the options and the version of the strategy."""
        return digest_of(
            {"template": self.template.sha256, "options": self.options.model_dump(mode="json"), "version": VERSION}
        )

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return the next step, which follows from the arguments alone."""
        state = explored(log, self.options.patience)
        if state.reference_failed is not None:
            return _finished("reference_failed", f"the template's own setting failed: {state.reference_failed}")
        if state.missed >= MOST_MISSED:
            return _finished(
                "machine_failed", f"the machine couldn't carry out {state.missed} steps in a row: {state.why_missed}"
            )
        if state.judged:
            return self._after_judging(state)
        if left.candidates == 0:
            return _finished("budget", "no candidate may be handed in: expected a budget of at least one")
        if state.final is not None:
            return self._finalists(state, left)
        rng = random.Random(f"{seed}:{state.done}")  # noqa: S311  # it must give the same numbers again
        batch = [] if left.screening_s == 0 else self._batch(state, rng)
        if batch:
            return Screen(drafts=tuple(map(self.template.draft, batch)), reference=self.template.own)
        return self._final(state)

    def _after_judging(self, state: Explored) -> Step:
        own = self.template.own.sha256
        if all(one.draft == own for one in state.judged):
            return _finished("no_gain", f"{self._no_gain(state)}: that one was judged")
        return _finished("finalists_judged", f"{len(state.judged)} finalists were judged")

    def _no_gain(self, state: Explored) -> str:
        beyond = " beyond the noise" if state.final is not None else ""
        return f"none of {len(state.seen)} settings was faster than the template's own{beyond}"

    def _own_alone(self) -> Step | None:
        """Hand in the template's own setting if no other is faster: it is the best that the search knows."""
        return Submit(drafts=(self.template.own,)) if self.options.judge_own else None

    def _batch(self, state: Explored, rng: random.Random) -> list[Setting]:
        """Return the next settings to screen; none if enough were, or if no new one is found."""
        wanted = min(self.options.batch, self.options.most_trials - len(state.seen))
        taken = {self.template.space.own.sha256, *state.seen}
        drawn = wanted if not state.climb.found else max(1, wanted // DRAWN_SHARE)
        chosen: list[Setting] = []
        for source, share in ((self._moves(state, rng), wanted - drawn), (self._drawn(wanted, rng), wanted)):
            for setting in source:
                if len(chosen) >= share:
                    break
                if setting.sha256 not in taken:
                    taken.add(setting.sha256)
                    chosen.append(setting)
        return chosen

    def _moves(self, state: Explored, rng: random.Random) -> Iterator[Setting]:
        """Yield neighbours of the climb's fastest settings, those of the fastest first, in random order for each."""
        for leader in state.climb.fastest(LEADERS):
            moved = list(self.template.space.neighbours(leader))
            rng.shuffle(moved)
            yield from moved

    def _drawn(self, wanted: int, rng: random.Random) -> Iterator[Setting]:
        for _ in range(DRAWS_EACH * wanted):
            yield self.template.space.draw(rng)

    def _final(self, state: Explored) -> Step:
        """Screen the fastest once more, in fresh processes: that they were chosen says nothing of these samples."""
        ranked = sorted(state.timed.items(), key=lambda one: (-one[1][0], one[0]))
        faster = [setting for _, (ratio, setting) in ranked if ratio > 0]
        if not faster:
            tried = len(state.seen)
            if tried == 0:
                return _finished("nothing_left", "no setting besides the template's own was screened")
            return self._own_alone() or _finished("no_gain", self._no_gain(state))
        kept = faster[: min(MOST_AT_ONCE, FINAL_FOR_EACH * self.options.finalists)]
        return Screen(drafts=tuple(map(self.template.draft, kept)), reference=self.template.own, final=True)

    def _finalists(self, state: Explored, left: BudgetLeft) -> Step:
        assert state.final is not None
        most = min(self.options.finalists, left.candidates or self.options.finalists)
        settings = [trial.setting for trial in sure(state.final)[:most] if trial.setting is not None]
        if not settings:
            return self._own_alone() or _finished("no_gain", self._no_gain(state))
        drafts = [self.template.draft(setting) for setting in settings]
        if self.options.judge_own and len(drafts) < (left.candidates or MOST_FINALISTS):
            drafts.append(self.template.own)
        return Submit(drafts=tuple(drafts))


def _finished(reason: Ending, detail: str) -> Finished:
    return Finished(reason=reason, detail=detail[:1000])
