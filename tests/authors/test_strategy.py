"""What a search tries, and what it takes for a gain."""

import json
import math
import random
import statistics
from pathlib import Path

import pytest

from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.domain.authoring import (
    BudgetLeft,
    Draft,
    FailedTrial,
    Finished,
    Missed,
    Screen,
    Screened,
    Submit,
    TimedTrial,
    Trial,
)
from forge.domain.evidence import Interval
from forge.domain.verdict import Reason

from .templates import WIDE, run, template

RECORDED = Path(__file__).parents[2] / "forge_runs"
SESSIONS = 1000
FINAL_PROCESSES = 5
REASON = Reason(code="INFRASTRUCTURE", message="no clock")


def timed(draft: Draft, mean: float, error: float, *, processes: int = 1) -> Trial:
    interval = Interval(ratio=math.exp(mean), low=math.exp(mean - 2 * error), high=math.exp(mean + 2 * error))
    result = TimedTrial(
        speedup=interval, log_mean=mean, log_error=error, windows=16, processes=processes, median_ns=1000.0
    )
    return Trial(draft=draft.sha256, setting=draft.setting, result=result)


def hill(draft: Draft, final: bool) -> Trial:
    """The further from BLOCK 512 and TILE 8, the slower; noise of half a percent that follows from the draft."""
    assert draft.setting is not None
    values = draft.setting.values
    away = abs(math.log2(int(values["BLOCK"])) - 9) + abs(math.log2(int(values["TILE"])) - 3)
    noise = random.Random(f"{draft.sha256}:{final}").gauss(0, 0.005)
    return timed(draft, 0.4 - 0.1 * away + noise, 0.005 if not final else 0.002, processes=FINAL_PROCESSES)


AUTHOR = SearchAuthor(template(WIDE, ["BLOCK % TILE == 0"]), SearchOptions(batch=12, most_trials=96))


def test_it_climbs_to_the_top_of_a_hill_and_hands_in_the_finalists() -> None:
    steps, _ = run(AUTHOR, 1, hill)
    submitted = next(step for step in steps if isinstance(step, Submit))
    assert 2 <= len(submitted.drafts) <= 4, "up to three finalists, and the template's own setting"
    assert submitted.drafts[-1] == AUTHOR.template.own
    assert AUTHOR.template.own not in submitted.drafts[:-1]
    best = submitted.drafts[0].setting
    assert best is not None
    assert (best.values["BLOCK"], best.values["TILE"]) == (512, 8)
    assert steps[-1] == Finished(reason="finalists_judged", detail=f"{len(submitted.drafts)} finalists were judged")


def test_the_templates_own_setting_is_left_out_where_only_the_finalists_fit() -> None:
    _, log = run(AUTHOR, 1, hill)
    screened = log[: next(place for place, one in enumerate(log) if isinstance(one, Screened) and one.final) + 1]
    for left in (1, 2):
        step = AUTHOR.propose(1, screened, BudgetLeft(candidates=left))
        assert isinstance(step, Submit)
        assert len(step.drafts) <= left
        assert step.drafts[0] != AUTHOR.template.own


def test_the_same_seed_and_log_give_the_same_step_and_another_seed_gives_others() -> None:
    steps, log = run(AUTHOR, 5, hill)
    again = [AUTHOR.propose(5, log[:entries], BudgetLeft()) for entries in range(len(steps) - 2)]
    assert again == steps[: len(again)]
    assert AUTHOR.propose(6, (), BudgetLeft()) != steps[0]


def test_no_setting_is_screened_twice_before_the_final_screening() -> None:
    steps, _ = run(AUTHOR, 3, hill)
    ranked = [one.setting for step in steps if isinstance(step, Screen) and not step.final for one in step.drafts]
    names = [setting.sha256 for setting in ranked if setting]
    assert len(names) == len(set(names)) == 96
    assert AUTHOR.template.space.own.sha256 not in names


def test_it_begins_elsewhere_when_a_climb_brings_no_gain() -> None:
    flat = SearchAuthor(AUTHOR.template, SearchOptions(batch=8, most_trials=40, patience=1))
    steps, _ = run(flat, 2, lambda draft, _: timed(draft, -0.5, 0.001))
    batches = [step for step in steps if isinstance(step, Screen)]
    assert len(batches) == 5
    own, ended = steps[-2:]
    assert own == Submit(drafts=(flat.template.own,)), "the best that the search knows"
    assert isinstance(ended, Finished)
    assert ended.reason == "no_gain"


def test_without_a_gain_nothing_is_handed_in_where_the_own_setting_isnt_wanted() -> None:
    flat = SearchAuthor(AUTHOR.template, SearchOptions(batch=8, most_trials=8, judge_own=0))
    steps, _ = run(flat, 2, lambda draft, _: timed(draft, -0.5, 0.001))
    assert [step.kind for step in steps] == ["screen", "finished"]


def test_a_small_space_is_used_up_and_settings_that_fail_are_never_handed_in() -> None:
    small = SearchAuthor(template({"WARPS": [2, 4, 8]}), SearchOptions())
    failed = FailedTrial(stage="build", reason=Reason(code="COMPILE_ERROR", message="no"))
    steps, _ = run(small, 1, lambda draft, _: Trial(draft=draft.sha256, setting=draft.setting, result=failed))
    assert [step.kind for step in steps] == ["screen", "submit", "finished"]
    assert isinstance(steps[0], Screen)
    assert len(steps[0].drafts) == 2
    assert steps[1] == Submit(drafts=(small.template.own,))


@pytest.mark.parametrize(
    ("log", "left", "reason"),
    [
        ([Screened(reference="a" * 64, trials=(), reference_failed=REASON)], BudgetLeft(), "reference_failed"),
        ([Missed(step="screen", reason=REASON)] * 3, BudgetLeft(), "machine_failed"),
        ([], BudgetLeft(candidates=0), "budget"),
        ([], BudgetLeft(screening_s=0), "nothing_left"),
    ],
)
def test_it_ends_with_a_reason(log: list[Screened | Missed], left: BudgetLeft, reason: str) -> None:
    step = AUTHOR.propose(1, log, left)
    assert isinstance(step, Finished)
    assert step.reason == reason


def test_a_step_that_the_machine_missed_is_asked_for_again() -> None:
    first = AUTHOR.propose(1, [], BudgetLeft())
    assert AUTHOR.propose(1, [Missed(step="screen", reason=REASON)], BudgetLeft()) == first


def test_an_author_of_other_options_or_another_template_has_another_identity() -> None:
    assert AUTHOR.identity == SearchAuthor(AUTHOR.template, AUTHOR.options).identity
    assert AUTHOR.identity != SearchAuthor(AUTHOR.template, SearchOptions()).identity
    assert AUTHOR.identity != SearchAuthor(template(WIDE), AUTHOR.options).identity


def recorded_pairs() -> list[list[float]]:
    """By process pair: log ratios of `eager` to itself, as measurements that ship with Forge recorded them."""
    pairs = []
    for path in sorted(RECORDED.glob("*/benchmark_samples.json")):
        for attempt in json.loads(path.read_bytes())["attempts"]:
            one, other = attempt["sides"].index("eager"), attempt["sides"].index("control")
            pairs += [[math.log(window[one] / window[other]) for window in rounds] for rounds in attempt["pairs"]]
    return pairs


class EqualsClock:
    """Times any draft as equal to the reference, with noise that was recorded. Which side is which is drawn."""

    def __init__(self, pairs: list[list[float]], rng: random.Random) -> None:
        self._ranked = [(statistics.fmean(one), statistics.stdev(one) / math.sqrt(len(one))) for one in pairs]
        self._medians = [statistics.median(one) for one in pairs]
        self._rng = rng

    def __call__(self, draft: Draft, final: bool) -> Trial:
        if not final:
            mean, error = self._rng.choice(self._ranked)
            return timed(draft, mean * self._rng.choice((-1, 1)), error)
        drawn = [one * self._rng.choice((-1, 1)) for one in self._rng.sample(self._medians, FINAL_PROCESSES)]
        error = statistics.stdev(drawn) / math.sqrt(FINAL_PROCESSES)
        return timed(draft, statistics.fmean(drawn), error, processes=FINAL_PROCESSES)


@pytest.mark.slow
def test_a_thousand_searches_over_recorded_measurements_of_equals_find_no_gain() -> None:
    clock = EqualsClock(recorded_pairs(), random.Random(20261124))
    author = SearchAuthor(AUTHOR.template, SearchOptions(batch=24, most_trials=24))
    endings: dict[str, int] = {}
    screened_faster = improved = 0
    for session in range(SESSIONS):
        steps, log = run(author, session, clock)
        screened_faster += any(entry.kind == "screened" and entry.final for entry in log)
        ended = steps[-1]
        assert isinstance(ended, Finished)
        endings[ended.reason] = endings.get(ended.reason, 0) + 1
        improved += any(step.drafts != (author.template.own,) for step in steps if isinstance(step, Submit))
    assert screened_faster == SESSIONS  # by chance, some of so many equal settings always look faster at first
    assert (endings, improved) == ({"no_gain": SESSIONS}, 0)


def test_a_search_of_three_hundred_equal_settings_finds_no_gain() -> None:
    clock = EqualsClock(recorded_pairs(), random.Random(7))
    author = SearchAuthor(template(WIDE), SearchOptions(batch=32, most_trials=300))
    steps, _ = run(author, 7, clock)
    ended = steps[-1]
    assert isinstance(ended, Finished)
    assert ended.reason == "no_gain"


def test_a_true_gain_over_the_same_noise_is_found() -> None:
    equals = EqualsClock(recorded_pairs(), random.Random(8))

    def clock(draft: Draft, final: bool) -> Trial:
        assert draft.setting is not None
        trial = equals(draft, final)
        assert isinstance(trial.result, TimedTrial)
        gain = 0.05 if draft.setting.values["WARPS"] == 8 else 0.0
        return timed(draft, trial.result.log_mean + gain, trial.result.log_error)

    steps, _ = run(SearchAuthor(AUTHOR.template, SearchOptions(judge_own=0)), 8, clock)
    submitted = next(step for step in steps if isinstance(step, Submit))
    assert all(draft.setting and draft.setting.values["WARPS"] == 8 for draft in submitted.drafts)
