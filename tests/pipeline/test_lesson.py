"""Lessons: none without evidence, none against it, and none that leaves its line in a playbook."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.axes import ENDS, Ended
from forge.domain.experiment import Conclusion
from forge.errors import LessonRefused, UsageError
from forge.events import ExperimentClosed, LessonProposed
from forge.pipeline.lesson import (
    AMENDED,
    HEADING,
    OPPOSITE,
    TEXT_LIMIT,
    Experiment,
    amend,
    content_of,
    parse_text,
    propose,
)
from forge.pipeline.skills import embedded_skills, find_skill
from tests.pipeline.making import made
from tests.projections.values import digest

PLAYBOOK = find_skill(embedded_skills(), "playbook.cpp")
TASK = made(op="rmsnorm", language="cpp")


def experiment(seq: int, ended: Ended = "improved", *, axis: str | None = "vector_width", **other: str) -> Experiment:
    task = made(**{"op": "rmsnorm", "language": "cpp", **other})
    event = ExperimentClosed(
        run_id=f"r{seq}",
        task_id=task.task_id,
        candidate=digest(seq),
        parent=None,
        layer="L3" if axis else None,
        axis=axis,
        conclusion=Conclusion(ended=ended, reason=None, against=None, speedup=None),
        decided_seq=seq - 1,
    )
    return Experiment(seq, event, task)


def proposed(*evidence: Experiment, known: tuple[Experiment, ...] = (), ended: Ended | None = None) -> LessonProposed:
    return propose(
        "Two rows in flight.",
        op="rmsnorm",
        playbook=PLAYBOOK,
        evidence=evidence,
        known=(*evidence, *known),
        ended=ended,
    )


def test_a_lesson_names_what_it_rests_on() -> None:
    lesson = proposed(experiment(9), experiment(4), experiment(9))
    assert (lesson.experiment_seqs, lesson.ended, lesson.playbook) == ((4, 9), "improved", "playbook.cpp")
    assert lesson.lesson_id == proposed(experiment(4), experiment(9)).lesson_id
    assert lesson.lesson_id != proposed(experiment(4)).lesson_id


def test_without_evidence_there_is_no_lesson() -> None:
    with pytest.raises(LessonRefused, match="no evidence"):
        proposed()


def test_evidence_about_another_operation_is_none() -> None:
    with pytest.raises(LessonRefused, match="is about 'softmax'"):
        proposed(experiment(4), experiment(5, op="softmax"))


def test_evidence_that_ended_otherwise_speaks_against_it() -> None:
    with pytest.raises(LessonRefused, match="experiment 5 ended 'regressed', the lesson says 'improved'"):
        proposed(experiment(4), experiment(5, "regressed"))
    with pytest.raises(LessonRefused, match="experiment 4 ended 'improved', the lesson says 'regressed'"):
        proposed(experiment(4), ended="regressed")


@pytest.mark.parametrize("said", ENDS)
@pytest.mark.parametrize("other", ENDS)
def test_the_same_change_that_ended_otherwise_speaks_against_it(said: Ended, other: Ended) -> None:
    if other in OPPOSITE[said]:
        with pytest.raises(LessonRefused, match="ended otherwise in experiment 7"):
            proposed(experiment(4, said), known=(experiment(7, other),))
    else:
        assert proposed(experiment(4, said), known=(experiment(7, other),)).ended == said


@pytest.mark.parametrize("change", [{"axis": "tiling"}, {"axis": None}, {"language": "torch"}, {"op": "softmax"}])
def test_another_change_or_another_place_says_nothing_about_it(change: dict[str, str]) -> None:
    assert proposed(experiment(4), known=(experiment(7, "regressed", **change),)).experiment_seqs == (4,)


def test_an_amended_playbook_is_a_version_of_its_own() -> None:
    first, second = proposed(experiment(4)), proposed(experiment(9))
    assert amend(PLAYBOOK, ()) == PLAYBOOK
    one, both, turned = amend(PLAYBOOK, (first,)), amend(PLAYBOOK, (first, second)), amend(PLAYBOOK, (second, first))
    assert len({skill.sha256 for skill in (PLAYBOOK, one, both, turned)}) == 4
    assert {one.provider, both.provider} == {AMENDED}
    assert both.text.startswith(PLAYBOOK.text.rstrip())
    assert both.text.count(HEADING) == 1
    assert b"# Playbook" in content_of(both, both.text)


@given(st.text(max_size=TEXT_LIMIT + 20))
def test_whatever_a_lesson_says_stays_on_its_line(text: str) -> None:
    try:
        said = parse_text(text)
    except UsageError:
        joined = " ".join(text.split())
        assert not joined or len(joined) > TEXT_LIMIT or not joined.isprintable()
        return
    lesson = proposed(experiment(4)).model_copy(update={"text": said})
    added = amend(PLAYBOOK, (lesson,)).text.removeprefix(PLAYBOOK.text.rstrip())
    assert len(added.splitlines()) == 7
    assert "```" not in added
