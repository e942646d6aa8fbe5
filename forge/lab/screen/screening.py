"""Screens the drafts of one step: prepares them side by side, then races those that are right."""

import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import orjson

from forge.domain.authoring import Draft, FailedTrial, Screen, Screened, TimedTrial, Trial
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.job import Job, Progress, processors
from forge.lab.screen.device_clock import DeviceClock
from forge.lab.screen.host_clock import GROUP, open_group
from forge.lab.screen.prepare import Fit, prepare
from forge.lab.screen.race import FINAL_PROCESSES, Race

BETWEEN_PROCESSES = 0.02
"""Standard deviation of a log ratio between two processes of one kernel on a processor. A race on a processor has one
process for each draft, whose windows don't show it."""
MOST_BESIDE = 8
"""Number of drafts that are prepared at once, at most, however many processors there are. Each has guests of its own,
which hold torch and an arena."""


@dataclass(frozen=True, kw_only=True)
class DraftScreening:
    """The result of screening one step."""

    screened: Screened
    samples: bytes
    """All paired windows as JSON, by draft and process."""


def screen(job: Job, step: Screen, *, rng: random.Random, progress: Progress) -> DraftScreening:
    """Screen a step's drafts beside its reference.

    `job` has the task's terms; its own files aren't used. Raise EnvironmentUnfit if this machine can't run or time
    them at all.
    """
    if job.interpreted:
        raise EnvironmentUnfit(
            "drafts can't be timed by an interpreter: expected the task's GPU in this machine",
            hint="screen on that machine, or take a task for the processor",
        )
    progress(f"screening {len(step.drafts)} drafts: building")
    prepared = _prepared(job, (step.reference, *step.drafts))
    reference, fits = prepared[0], prepared[1:]
    if isinstance(reference, FailedTrial):
        if reference.reason.code == "INFRASTRUCTURE":
            raise EnvironmentUnfit(
                f"the reference draft got no verdict: {reference.reason.message}; run the command again"
            )
        return _without_reference(step, reference.reason)
    race = Race(0.0 if job.device == "cuda" else BETWEEN_PROCESSES)
    race.failed.update({place: fit for place, fit in enumerate(fits) if isinstance(fit, FailedTrial)})
    right = {place: fit for place, fit in enumerate(fits) if isinstance(fit, Fit)}
    run = _race_on_device if job.device == "cuda" else _race_on_host
    run(race, right, reference, step, rng, progress)
    trials = tuple(
        Trial(draft=draft.sha256, setting=draft.setting, result=race.result(place))
        for place, draft in enumerate(step.drafts)
    )
    timed = sum(isinstance(one.result, TimedTrial) for one in trials)
    progress(f"screened {len(trials)} drafts: {timed} timed, {len(trials) - timed} failed")
    screened = Screened(reference=step.reference.sha256, trials=trials, final=step.final)
    return DraftScreening(screened=screened, samples=_samples(step, race))


def _prepared(job: Job, drafts: Sequence[Draft]) -> list[Fit | FailedTrial]:
    """Prepare each draft once, side by side; the same bytes are prepared once."""
    distinct = {draft.sha256: draft for draft in drafts}
    with ThreadPoolExecutor(min(MOST_BESIDE, processors())) as pool:
        found = dict(zip(distinct, pool.map(lambda one: prepare(job, one), distinct.values()), strict=True))
    return [found[draft.sha256] for draft in drafts]


def _race_on_host(
    race: Race, fits: Mapping[int, Fit], reference: Fit, step: Screen, rng: random.Random, progress: Progress
) -> None:
    for process in range(FINAL_PROCESSES if step.final else 1):
        for members in _groups(sorted(fits), rng):
            alive = {place: fits[place] for place in members if place not in race.failed}
            if not alive:
                continue
            progress(f"screening: process {process + 1}, {len(alive)} drafts in turns")
            with open_group(alive, reference, rng) as (clock, failed):
                race.failed.update(failed)
                race.run(members, clock.measure, final=step.final)


def _race_on_device(
    race: Race, fits: Mapping[int, Fit], reference: Fit, step: Screen, rng: random.Random, progress: Progress
) -> None:
    """Race all drafts in one launcher; a final screening has several, one after the other."""
    for process in range(FINAL_PROCESSES if step.final else 1):
        alive = {place: fit for place, fit in fits.items() if place not in race.failed}
        if not alive:
            return
        progress(f"screening: launcher {process + 1} with {len(alive)} plans beside the reference's")
        with DeviceClock(alive, reference, rng) as clock:
            race.failed.update(clock.failed)
            race.run(sorted(alive), clock.measure, final=step.final)


def _groups(places: Sequence[int], rng: random.Random) -> Iterator[list[int]]:
    """Yield the drafts in groups, in a drawn order."""
    order = list(places)
    rng.shuffle(order)
    for begin in range(0, len(order), GROUP):
        yield order[begin : begin + GROUP]


def _without_reference(step: Screen, reason: Reason) -> DraftScreening:
    screened = Screened(reference=step.reference.sha256, trials=(), reference_failed=reason, final=step.final)
    return DraftScreening(screened=screened, samples=orjson.dumps({"drafts": {}}))


def _samples(step: Screen, race: Race) -> bytes:
    windows = {
        str(place): [[[one.own_ns, one.reference_ns] for one in rounds] for rounds in processes]
        for place, processes in race.windows.items()
    }
    drafts = [draft.sha256 for draft in step.drafts]
    return orjson.dumps({"reference": step.reference.sha256, "drafts": drafts, "windows_ns": windows})
