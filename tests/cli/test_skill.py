"""`forge skill`: what there is, what it says, what fits; names and queries that make no sense are refused."""

from pathlib import Path

import pytest

from forge.pipeline.skill_package import PACKAGE
from tests.cli.asking import ask
from tests.pipeline.test_skill_package import install


def test_every_skill_is_listed_with_its_front_matter() -> None:
    listed = ask("skill", "list", "--json").document
    assert len(listed) > 25
    assert [one["id"] for one in listed] == sorted(one["id"] for one in listed)
    for one in listed:
        assert one.keys() >= {"id", "category", "language", "platform", "summary", "tags", "version", "sha256"}
    table = ask("skill", "list")
    assert table.status == 0
    assert "patterns.test-plan" in table.out


def test_a_search_ranks_and_says_what_matched() -> None:
    found = ask("skill", "search", "rotary embedding", "--json").document
    assert found[0]["id"] == "op.rope"
    assert found[0]["matched"] == ["rotary", "embedding"] or found[0]["matched"] == ["embedding", "rotary"]
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    assert ask("skill", "search", "rotary embedding").status == 0
    assert ask("skill", "search", "qqqqq", "--json").document == []


def test_words_that_most_skills_have_give_no_score() -> None:
    found = ask("skill", "search", "memory")
    assert " 0.00 " not in found.out
    assert "-: most skills have these words" in found.err
    assert found.out.count(" -  ") == len(ask("skill", "search", "memory", "--json").document)
    assert ask("skill", "search", "rotary").err == ""


def test_a_search_keeps_to_a_language() -> None:
    ids = [one["id"] for one in ask("skill", "search", "playbook", "--language", "triton", "--json").document]
    assert "playbook.triton" in ids
    assert not {"playbook.cuda", "playbook.cpp", "playbook.hip"} & set(ids)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "patterns.none"), "patterns.none"),
        (("show", ""), "unknown skill"),
        (("show", "../cli/skill"), "unknown skill"),
        (("search", ""), "has no words"),
        (("search", "--", "-- ;"), "has no words"),
        (("search", "rows", "--language", "fortran"), "fortran"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], said: str) -> None:
    answer = ask("skill", *arguments)
    assert answer.status == 2
    assert said in answer.error


def test_the_package_is_listed_where_it_is_installed_and_refused_in_another_version(tmp_path: Path) -> None:
    install(tmp_path)
    listed = ask("skill", "list", "--packages", tmp_path, "--json").document
    assert f"{PACKAGE}@0.2.0" in {one["provider"] for one in listed}
    shown = ask("skill", "show", "triton.write-triton-softmax-kernel", "--packages", tmp_path)
    assert shown.out.startswith("# A softmax kernel")
    install(tmp_path / "other", pin="9.9.9")
    refused = ask("skill", "list", "--packages", tmp_path / "other")
    assert refused.status == 2
    assert "9.9.9" in refused.error
    assert refused.last.endswith(f"{PACKAGE}@0.2.0")
