"""Links lead somewhere, and no page shows where it was written."""

import re

import pytest

from tests.docs.markdown import ROOT, anchor, headings, links, pages, prose, read

LEAKS = re.compile(r"(?<![\w.])/(work|root|home|tmp/|Users)\b")
URL = re.compile(r"^https://[a-z0-9.-]+/\S*$")


@pytest.mark.parametrize("page", pages())
def test_every_relative_link_resolves(page):
    for link in links(page):
        if ":" in link:
            assert URL.match(link), link
            continue
        path, _, fragment = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if fragment:
            found = target.resolve().relative_to(ROOT).as_posix()
            assert fragment in map(anchor, headings(found)), link


@pytest.mark.parametrize("page", pages())
def test_no_page_shows_a_path_of_the_machine_it_was_written_on(page):
    assert LEAKS.findall(read(page)) == []


@pytest.mark.parametrize("page", pages())
def test_every_page_has_one_title_and_no_line_ends_in_blanks(page):
    assert prose(page).startswith("# ")
    assert [line for line in read(page).splitlines() if line != line.rstrip()] == []


def test_the_code_names_only_pages_that_exist():
    for source in sorted((ROOT / "forge").rglob("*.py")):
        for page in re.findall(r"docs/[\w/-]+\.md", source.read_text(encoding="utf-8")):
            assert (ROOT / page).exists(), f"{source.name} names {page}"


def test_the_licence_is_the_whole_apache_licence():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    for part in (
        "Version 2.0, January 2004",
        "1. Definitions.",
        "9. Accepting Warranty",
        "END OF TERMS",
        "APPENDIX:",
    ):
        assert part in text
