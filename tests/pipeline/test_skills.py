"""The embedded library: every skill is typed, unique, of readable size; a file that isn't is refused by name."""

import tomllib
from pathlib import Path

import pytest

from forge.domain.digest import sha256
from forge.errors import UnknownName, UsageError
from forge.languages import LANGUAGES
from forge.operations import OPERATIONS
from forge.pipeline.skills import embedded_skills, find_skill, parse_skill, read_skills

FRONT = {
    "id": '"patterns.one"',
    "category": '"technique"',
    "language": '["any"]',
    "platform": '["any"]',
    "summary": '"what this skill is about"',
    "tags": '["one"]',
    "version": '"1.0.0"',
}
FILES = {path.stem: path for path in (Path(__file__).parents[2] / "forge" / "skills").iterdir()}
FILES |= {f"playbook.{name}": language.playbook_file for name, language in LANGUAGES.items()}


def content(text: str = "# One\n", **changes: str | None) -> bytes:
    fields = {**FRONT, **changes}
    lines = [f"{name} = {value}" for name, value in fields.items() if value is not None]
    return "\n".join(("+++", *lines, "+++", "", text)).encode()


def test_every_skill_parses_and_is_named_by_its_files_bytes() -> None:
    skills = embedded_skills()
    assert [one.id for one in skills] == sorted(FILES)
    assert [one.sha256 for one in skills] == [sha256(FILES[name].read_bytes()) for name in sorted(FILES)]
    assert len({one.id for one in skills}) == len(skills)


@pytest.mark.parametrize("skill", embedded_skills(), ids=lambda skill: skill.id)
def test_a_skill_begins_with_its_title_and_fits_on_a_page_or_two(skill) -> None:
    lines = FILES[skill.id].read_text().splitlines()
    assert 25 <= len(lines) <= 70
    assert skill.text.startswith("# ")
    assert all(line == line.rstrip() for line in lines)
    assert skill.text.count("```") % 2 == 0


@pytest.mark.parametrize("skill", [one for one in embedded_skills() if one.front.category == "playbook"])
def test_a_playbook_is_laid_out_by_bottleneck_and_layer(skill) -> None:
    for bottleneck in ("Memory", "Compute", "Sync", "Launch"):
        assert f"\n## {bottleneck}\n" in skill.text
    for layer in ("L1 structure", "L2 synchronisation", "L3 instruction", "L4 resource"):
        assert layer in skill.text


def test_every_language_has_a_playbook_and_every_operation_a_guide() -> None:
    skills = embedded_skills()
    playbooks = {language for one in skills if one.front.category == "playbook" for language in one.front.language}
    assert set(LANGUAGES) | {"asm", "ck", "hip"} <= playbooks
    guided = {tag for one in skills if one.front.category == "operation" for tag in one.front.tags}
    assert not {operation.guide or name for name, operation in OPERATIONS.items()} - guided


def test_a_whole_skill_is_read() -> None:
    skill = parse_skill(content(), origin="one.md", stem="patterns.one")
    assert (skill.id, skill.text, skill.provider) == ("patterns.one", "# One\n", "embedded")


@pytest.mark.parametrize("field", FRONT)
def test_a_missing_field_is_refused_with_the_file_named(field: str) -> None:
    with pytest.raises(UsageError, match=rf"one\.md: {field}: field required"):
        parse_skill(content(**{field: None}), origin="one.md", stem="patterns.one")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": '"red"'}, "colour"),
        ({"id": '"Patterns.One"'}, "id"),
        ({"id": '"../one"'}, "id"),
        ({"id": '"patterns.other"'}, "the file's name"),
        ({"category": '"magic"'}, "category"),
        ({"language": '["fortran"]'}, "language"),
        ({"language": "[]"}, "language"),
        ({"platform": '"cuda"'}, "platform"),
        ({"summary": '"short"'}, "summary"),
        ({"tags": "[]"}, "tags"),
        ({"version": '"1"'}, "version"),
        ({"version": "1"}, "version"),
        ({"id": "unquoted"}, "TOML"),
        ({"text": "\n"}, "no text"),
    ],
)
def test_bad_front_matter_is_refused_with_the_field_named(changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        parse_skill(content(**changes), origin="one.md", stem="patterns.one")
    assert "one.md" in refused.value.message


@pytest.mark.parametrize("raw", [b"", b"# One\n", b"+++\nid = 1\n", b"---\nid: one\n---\n# One\n", b"\xff\xfe"])
def test_a_file_without_front_matter_is_refused(raw: bytes) -> None:
    with pytest.raises(UsageError, match=r"one\.md"):
        parse_skill(raw, origin="one.md", stem="patterns.one")


def test_a_folder_is_read_by_name_and_an_empty_one_or_a_way_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no skills"):
        read_skills(tmp_path)
    (tmp_path / "patterns.one.md").write_bytes(content())
    assert [one.id for one in read_skills(tmp_path)] == ["patterns.one"]
    outside = tmp_path.parent / f"{tmp_path.name}-outside.md"
    outside.write_bytes(content(id='"patterns.two"'))
    (tmp_path / "patterns.two.md").symlink_to(outside)
    with pytest.raises(UsageError, match="leads out"):
        read_skills(tmp_path)


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"patterns\.none"):
        find_skill(embedded_skills(), "patterns.none")


def test_front_matter_is_toml_as_it_stands() -> None:
    text = FILES["patterns.test-plan"].read_text()
    assert tomllib.loads(text.split("+++")[1])["category"] == "hygiene"


@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000])
def test_front_matter_that_python_cannot_read_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="front matter isn't TOML"):
        parse_skill(f"+++\nid = {value}\n+++\n# One\n".encode(), origin="one.md", stem="one")
