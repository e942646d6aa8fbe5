"""Drafts in C++, screened in processes of their own on this machine's processor."""

import json
import random
from dataclasses import replace

import pytest

from forge.domain.authoring import Draft, FailedTrial, Screen, Screened, TimedTrial
from forge.domain.candidate_files import REQUIRED_FILES
from forge.errors import EnvironmentUnfit
from forge.lab.job import Job
from forge.lab.screen.screening import screen
from tests.candidates import EXAMPLES, job_for

HONEST = {name: (EXAMPLES / "honest_cpp" / name).read_text() for name in REQUIRED_FILES}
ROW = "normalise_row(x + start"


def draft(*changes: tuple[str, str], **files: str) -> Draft:
    kernel = HONEST["kernel.py"]
    for old, new in changes:
        assert old in kernel
        kernel = kernel.replace(old, new)
    return Draft(files=HONEST | {"kernel.py": kernel} | files, hypothesis="another one")


OWN = draft()
SLOW = draft((ROW, f"for (volatile int again = 0; again < 20000; again = again + 1) {ROW}"))
WRONG = draft(("* scale * weight[i]", "* scale"))
BROKEN = draft(("const float scale", "const flot scale"))
ENDLESS = draft((ROW, f"for (volatile bool on = true; on;) {ROW}"))
CRASHING = draft(("y[i] = new", "y[i + 100000000000] = new"))
GREEDY = draft(
    (ROW, f"for (int64_t at = 0; at < (1 << 30); ++at) new char[4096]();\n        {ROW}"),
    ("#include <cmath>", "#include <cmath>\n#include <new>"),
)
OTHER = draft(**{"metadata.json": json.dumps({"name": "x", "op": "softmax", "language": "cpp"})})


@pytest.fixture(scope="module")
def job() -> Job:
    return job_for(HONEST["kernel.py"], language="cpp", limit_s=1.0, forbidding=True)


@pytest.fixture(scope="module")
def screened(job: Job) -> tuple[Screened, dict[str, object]]:
    step = Screen(drafts=(SLOW, WRONG, BROKEN, ENDLESS, CRASHING, GREEDY, OTHER), reference=OWN)
    found = screen(job, step, rng=random.Random(3), progress=lambda _: None)
    return found.screened, json.loads(found.samples)


@pytest.mark.slow
def test_each_draft_has_a_trial_that_says_what_became_of_it(screened: tuple[Screened, dict[str, object]]) -> None:
    results = [trial.result for trial in screened[0].trials]
    failed = [(one.stage, one.reason.code) for one in results if isinstance(one, FailedTrial)]
    assert failed[0] == ("check", "INCORRECT_NUMERICAL")
    assert failed[1] == ("build", "COMPILE_ERROR")
    assert failed[2] in (("load", "TIMEOUT"), ("load", "INFRASTRUCTURE"), ("time", "INFRASTRUCTURE"))
    assert failed[3] == ("load", "RUNTIME_ERROR")
    assert failed[4][0] == "load"
    assert failed[4][1] in ("OUT_OF_MEMORY", "RUNTIME_ERROR", "TIMEOUT", "INFRASTRUCTURE")  # the first limit it meets
    assert failed[5] == ("sources", "BAD_SUBMISSION")
    assert len(failed) == 6


@pytest.mark.slow
def test_a_slow_draft_is_slower_than_the_reference(screened: tuple[Screened, dict[str, object]]) -> None:
    slow = screened[0].trials[0].result
    assert isinstance(slow, TimedTrial)
    assert slow.speedup.high < 1
    samples = screened[1]
    assert samples["drafts"] == [trial.draft for trial in screened[0].trials]
    windows = samples["windows_ns"]
    assert isinstance(windows, dict)
    assert len(windows["0"][0]) == slow.windows


@pytest.mark.slow
def test_without_a_right_reference_nothing_is_timed(job: Job) -> None:
    found = screen(job, Screen(drafts=(OWN,), reference=BROKEN), rng=random.Random(1), progress=lambda _: None)
    assert found.screened.trials == ()
    assert found.screened.reference_failed is not None
    assert found.screened.reference_failed.code == "COMPILE_ERROR"


def test_an_interpreter_times_no_draft(job: Job) -> None:
    with pytest.raises(EnvironmentUnfit, match="can't be timed by an interpreter"):
        screen(
            replace(job, interpreted=True), Screen(drafts=(OWN,), reference=OWN), rng=random.Random(1), progress=print
        )
