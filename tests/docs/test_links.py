"""Links lead somewhere, and no page shows where it was written."""

import re
import shutil
import subprocess

import pytest

from tests.docs.markdown import ROOT, anchor, headings, links, pages, prose, read

COMMIT = re.compile(r"\b(?:The commit|git show) ([0-9a-f]{7,40})\b")
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


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="no history here")
def test_each_commit_that_a_page_names_is_in_the_history():
    named = {commit for page in pages() for commit in COMMIT.findall(read(page))}
    assert len(named) >= 6
    if (
        subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True).stdout
        == b"true\n"
    ):
        pytest.skip("only the newest commits are here")
    for commit in named:
        known = subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], cwd=ROOT, capture_output=True)
        assert known.returncode == 0, commit
