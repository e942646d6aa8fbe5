"""Ranking: BM25 over fields, the same whatever the order of what is ranked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import UsageError
from forge.pipeline.skill_ranking import Concept, words_of
from forge.pipeline.skill_search import search
from forge.pipeline.skills import FrontMatter, Skill, embedded_skills

LIBRARY = embedded_skills()
WORDS = ("rmsnorm", "softmax", "memory", "warp", "reductions", "fp8", "tile", "launch", "zzz", "row")


def skill(name: str, *, tags: tuple[str, ...] = ("other",), summary: str = "", text: str = "words") -> Skill:
    front = FrontMatter(
        id=f"patterns.{name}",
        category="technique",
        language=("any",),
        platform=("any",),
        summary=summary or "a skill about nothing much",
        tags=tags,
        version="1.0.0",
    )
    return Skill(front=front, text=text, sha256="0" * 64)


def test_a_tag_outweighs_the_summary_and_that_the_text() -> None:
    filler = [skill(f"filler{place}") for place in range(8)]
    by_tag = skill("tagged", tags=("banana",))
    by_summary = skill("summed", summary="everything about one banana")
    by_text = skill("texted", text="a banana somewhere")
    hits = search([by_text, by_summary, by_tag, *filler], [Concept("banana")])
    assert [hit.skill.id for hit in hits] == ["patterns.tagged", "patterns.summed", "patterns.texted"]


def test_words_are_stemmed_and_a_phrase_needs_its_order() -> None:
    library = [skill("one", text="row reductions"), skill("two", text="reduction of a row"), skill("three")]
    assert {hit.skill.id for hit in search(library, [Concept("row reduction")])} == {"patterns.one", "patterns.two"}
    assert [hit.skill.id for hit in search(library, [Concept("row_reduction", phrase=True)])] == ["patterns.one"]


@pytest.mark.parametrize("query", ['"', "*", "a* OR b", "NEAR(", "id:x", "row AND", "x^2 -y", "'; DROP TABLE skill"])
def test_a_query_is_words_and_never_syntax(query: str) -> None:
    for concept in (Concept(query), Concept(query, phrase=True)):
        assert isinstance(search(LIBRARY, [concept]), tuple)


@pytest.mark.parametrize("query", ["", "  ", "-", "___", "!?"])
def test_a_query_without_words_is_refused(query: str) -> None:
    with pytest.raises(UsageError, match="has no words"):
        words_of(query)


def test_a_hit_says_what_found_it_the_strongest_first() -> None:
    (first, *_) = search(LIBRARY, [Concept("memory", weight=0.01), Concept("rope", weight=4.0)])
    assert first.skill.id == "op.rope"
    assert first.matched == ("rope", "memory")


@pytest.mark.slow
@given(
    order=st.permutations(range(len(LIBRARY))),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True),
)
def test_the_ranking_does_not_depend_on_the_order_of_the_library(order: list[int], words: list[str]) -> None:
    concepts = [Concept(word) for word in words]
    assert search([LIBRARY[place] for place in order], concepts) == search(LIBRARY, concepts)
