"""That a trial or an estimate is never evidence: nothing that decides, publishes or recommends can name one."""

import re
from pathlib import Path

import pytest

from forge.domain.authoring import Screened, TimedTrial, Trial
from forge.events import TrialsScreened

PACKAGE = Path(__file__).parents[1] / "forge"
MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]
TRIALS = re.compile(
    r"TrialsScreened|FailedTrial|TimedTrial|\bTrial\b|domain\.authoring|events\.screen\b|lab\.screen\b"
    r"|SpeedupEstimated|AgainstBaseline|events\.estimate\b|pipeline\.estimate\b|estimate:"
)
FIELDS = re.compile(r"\.screened\b|\.trials\b|\blog_mean\b|\blog_error\b|\breference_failed\b")
"""Fields that only a screening and its trials have: reading one needs no name of a class."""
MAY_NAME_TRIALS = (
    "domain/authoring.py",
    "events/every.py",
    "events/screen.py",
    "events/estimate.py",
    "events/session",
    "events/kinds.py",  # who may write the event
    "ledger/audit/referenced_blobs.py",  # that its samples are stored
    "authors/",
    "lab/screen/",
    "executor/",
    "app/demo/search_demo.py",
    "app/stored/leave_out_machines.py",  # what one machine recorded, trials too, left out of an answer
    "app/stored/hide_undecided.py",  # what trials of undecided runs tell, hidden from an answer
    "app/desk/session_figures.py",  # what trials of undecided runs tell, withheld from callers
    "app/desk/event_teller.py",  # likewise
    "app/phases/speed_estimates.py",  # records an estimate; a benchmark says what is promoted
    "app/session",
    "app/solve/",  # hands drafts in; gates and clock say what becomes of them
    "pipeline/sessions/",  # what an author asks and learns, round by round
    "projections/session",
    "cli/agent",
)
"""Beginnings of the only paths that may name a trial: what makes trials, and what an author learns of them."""
DECIDE = (
    "pipeline/promote.py",
    "pipeline/promotion_rule.py",
    "pipeline/benchmark.py",
    "pipeline/verify.py",
    "projections/registry.py",
    "projections/leaderboard.py",
    "projections/publish.py",
    "lookup/registry.py",
    "claims/check.py",
    "app/audit/__init__.py",
    "recommend/kernels.py",
)
"""Modules that decide what is promoted, offered, claimed or recommended."""


def test_only_makers_and_readers_of_trials_name_them() -> None:
    others = [name for name in MODULES if not name.startswith(MAY_NAME_TRIALS)]
    texts = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in others}
    found = {name: TRIALS.search(text) or FIELDS.search(text) for name, text in texts.items()}
    named = {name: match[0] for name, match in found.items() if match}
    assert not named, (
        "a trial or an estimate is never evidence: read what a candidate's own events say, "
        "or add the path here if no decision can follow from it"
    )


def test_the_fields_are_those_of_trials() -> None:
    names = {*Trial.model_fields, *TimedTrial.model_fields, *Screened.model_fields, *TrialsScreened.model_fields}
    assert {name.strip("\\b.") for name in FIELDS.pattern.split("|")} <= names


@pytest.mark.parametrize("name", DECIDE)
def test_no_module_that_decides_may_name_a_trial(name: str) -> None:
    assert name in MODULES
    assert not name.startswith(MAY_NAME_TRIALS)
