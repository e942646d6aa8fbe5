"""The model author is a pure function of its log: two passes, three strategies, and no answer is judged twice."""

import json

import pytest

from forge.authors.model.author import MOST_USELESS, ModelAuthor, ModelOptions
from forge.domain.authoring import Ask, BudgetLeft, Finished, Judged, LogEntry, Missed, Replied, Step, Submit
from forge.domain.evidence import Interval
from forge.domain.feedback import Feedback, ShownTiming
from forge.domain.verdict import Accepted, Reason, ReasonCode, Rejected

FILES = {
    "kernel.py": "def kernel(): ...\n",
    "reference.py": "",
    "test_correctness.py": "",
    "bench.py": "",
    "metadata.json": '{"name": "x", "op": "rmsnorm", "language": "cpp", "entry_point": "kernel"}',
}


def author(**options: object) -> ModelAuthor:
    return ModelAuthor("the brief", FILES, ModelOptions.model_validate({"model": "openai:m", **options}))


def said(number: int, hypothesis: str = "") -> Replied:
    return Replied(text=f"HYPOTHESIS: {hypothesis or f'idea {number}'}\n```python kernel.py\nx = {number}\n```")


def judged(step: Step, place: int = 0, *, code: ReasonCode | None = None, ratio: float | None = None) -> Judged:
    assert isinstance(step, Submit)
    draft = step.drafts[place]
    found = None if ratio is None else Interval(ratio=ratio, low=ratio * 0.99, high=ratio * 1.01)
    timing = None if found is None else ShownTiming(baseline="eager", ratio=found, median_us=100, floor_share=0.3)
    return Judged(
        draft=draft.sha256,
        candidate=draft.candidate_sha256 or draft.sha256,
        verdict=Accepted() if code is None else Rejected(reason=Reason(code=code, message="no")),
        speedup=found,
        kernel_id=None if code else "k",
        feedback=Feedback(timing=timing),
    )


class Session:
    """Asks an author, and appends what a session would."""

    def __init__(self, made: ModelAuthor) -> None:
        self.author = made
        self.log: list[LogEntry] = []

    def step(self, candidates: int = 9) -> Step:
        return self.author.propose(1, tuple(self.log), BudgetLeft(candidates=candidates))

    def asked(self, *answers: LogEntry) -> str:
        """Give the answers to the next questions; return the last prompt."""
        for one in answers:
            step = self.step()
            assert isinstance(step, Ask), step
            self.log.append(one)
        return step.prompt

    def submitted(self, **found: object) -> Submit:
        step = self.step()
        assert isinstance(step, Submit), step
        self.log.append(judged(step, **found))  # type: ignore[arg-type]  # named by the caller
        return step


def test_greedy_goes_from_a_right_kernel_to_faster_ones_and_keeps_the_fastest() -> None:
    one = Session(author())
    first = one.asked(said(1))
    assert "the brief" in first
    assert "No kernel has passed every gate yet" in first
    one.submitted(code="INCORRECT_NUMERICAL")
    assert '"code": "INCORRECT_NUMERICAL"' in one.asked(said(2))
    one.submitted(code="TOO_SLOW", ratio=0.9)
    second = one.asked(said(3))
    assert "passed every gate. Make it faster" in second
    assert "x = 2" in second
    assert "timing.floor_share" in second, "the diagnosis cites its metrics"
    one.submitted(ratio=1.5)
    one.asked(said(4))
    step = one.submitted(code="TOO_SLOW", ratio=1.2)
    metadata = json.loads(step.drafts[0].files["metadata.json"])
    assert (metadata["hypothesis"], len(metadata["parents"])) == ("idea 4", 1)
    last = one.step()
    assert isinstance(last, Ask)
    parent = last.prompt.partition("# The fastest kernel so far that is right")[2].partition("# The kernel.py")[0]
    assert "x = 3" in parent, "what isn't faster is left"


def test_best_of_n_asks_in_several_wordings_and_the_first_right_kernel_ends_its_siblings() -> None:
    one = Session(author(strategy="best-of-n", width=3))
    wordings = []
    for number in range(3):
        step = one.step()
        assert isinstance(step, Ask)
        wordings.append(step.wording)
        one.log.append(said(number))
    assert len(set(wordings)) == 3
    step = one.submitted(code="COMPILE_ERROR")
    assert (len(step.drafts), step.first_right) == (3, True)
    one.submitted(code="TOO_SLOW", ratio=0.9)
    assert isinstance(one.step(), Ask), "the third answer isn't judged"
    one.asked(*(said(number) for number in (4, 5, 6)))
    step = one.step()
    assert isinstance(step, Submit)
    assert (len(step.drafts), step.first_right) == (3, False), "faster ones are compared"


def test_beam_goes_on_from_its_fastest_kernels_in_turn() -> None:
    one = Session(author(strategy="beam", width=2))
    for number, ratio in ((1, 1.1), (2, 1.3)):
        one.asked(said(number))
        one.submitted(ratio=ratio)
    parents = set()
    for number in (3, 4):
        prompt = one.asked(said(number))
        parents.add(prompt.partition("# The fastest kernel so far that is right")[2].partition("# ")[0].strip())
        one.submitted(code="RUNTIME_ERROR")
    assert {parent.partition("x = ")[2][0] for parent in parents} == {"1", "2"}


def test_a_functional_session_ends_with_the_first_right_kernel() -> None:
    one = Session(author(passes="functional"))
    one.asked(said(1))
    one.submitted(code="TOO_SLOW", ratio=0.5)
    end = one.step()
    assert isinstance(end, Finished)
    assert (end.reason, end.detail) == ("finalists_judged", "attempt 1 passed every gate")


def test_equal_kernels_and_refuted_hypotheses_are_not_judged_again() -> None:
    one = Session(author())
    one.asked(said(1))
    one.submitted(ratio=1.5)
    one.asked(said(2, "Unroll the loop."))
    one.submitted(code="TOO_SLOW", ratio=1.1)
    one.asked(Replied(text="```python kernel.py\nx  =  1  # as before\n```"))
    assert "kernel.py is the same as in answer 1" in one.asked(said(3, "unroll THE loop"))
    step = one.step()
    assert isinstance(step, Ask)
    assert "the hypothesis was refuted by attempt 2" in step.prompt
    one.asked(said(3, "another idea"))
    assert isinstance(one.step(), Submit), "its kernel is judged under another hypothesis"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Replied(text="prose"), "nothing_left"),
        (Replied(text=None, failure="timeout: no"), "machine_failed"),
        (Missed(step="ask", reason=Reason(code="INFRASTRUCTURE", message="no")), "machine_failed"),
    ],
)
def test_useless_answers_in_a_row_end_it(entry: LogEntry, reason: str) -> None:
    one = Session(author())
    one.log += [entry] * (MOST_USELESS - 1)
    assert isinstance(one.step(), Ask)
    one.log.append(entry)
    end = one.step()
    assert isinstance(end, Finished)
    assert end.reason == reason


def test_no_candidate_left_ends_it_before_anything_is_asked() -> None:
    end = Session(author()).step(candidates=0)
    assert isinstance(end, Finished)
    assert end.reason == "budget"


def test_a_model_says_what_limits_a_right_kernel_by_metrics_that_it_was_shown() -> None:
    profile = [{"id": "perf.ipc", "value": 0.5, "unit": "1"}]
    one = Session(author(analyst="model", profile=profile))
    one.asked(said(1))
    one.submitted(code="TOO_SLOW", ratio=0.9)
    asked = one.step()
    assert isinstance(asked, Ask)
    assert (asked.wording, asked.most_tokens) == ("diagnose", 2000)
    assert "`perf.ipc` | 0.5" in asked.prompt
    right = {"bottleneck": "latency", "metrics": ["perf.ipc"], "recommendation": "unroll\x1b[31m twice"}
    one.log.append(Replied(text=f"```json\n{json.dumps(right)}\n```"))
    step = one.step()
    assert isinstance(step, Ask)
    document = json.loads(step.prompt.rpartition("```json\n")[2].partition("\n```")[0])
    assert document["diagnosis"]["metrics"] == profile
    assert document["diagnosis"]["recommendation"] == "unroll [31m twice"
    one.asked(said(2))
    one.submitted(code="COMPILE_ERROR")
    step = one.step()
    assert isinstance(step, Ask)
    assert step.wording == "plain", "only a right kernel is diagnosed"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"bottleneck": "memory", "metrics": ["made.up"], "recommendation": "x"}', "cites 'made.up'"),
        ('{"bottleneck": "memory", "metrics": [], "recommendation": "x"}', "doesn't fit"),
        ('{"bottleneck": "vibes", "metrics": ["timing.ratio"], "recommendation": "x"}', "doesn't fit"),
        ('{"bottleneck": null, "metrics": ["timing.ratio"], "recommendation": ""}', "doesn't fit"),
        ("It is slow.", "isn't one JSON object"),
        ("[" * 100_000, "isn't one JSON object"),
        (None, "there was no diagnosis: timeout"),
    ],
)
def test_a_diagnosis_that_cites_what_was_not_measured_is_refused_and_the_times_speak(
    answer: str | None, why: str
) -> None:
    one = Session(author(analyst="model"))
    one.asked(said(1))
    one.submitted(ratio=1.1)
    one.asked(Replied(text=answer, failure=None if answer else "timeout"))
    step = one.step()
    assert isinstance(step, Ask)
    document = json.loads(step.prompt.rpartition("```json\n")[2].partition("\n```")[0])
    assert why in document["note"]
    assert "timing.floor_share" in [metric["id"] for metric in document["diagnosis"]["metrics"]]
    assert "made.up" not in json.dumps(document["diagnosis"])
