"""What exists is documented: commands, events, gates, operations, errors, reasons, policy, languages, words."""

import ast
import re
from functools import cache

import pytest

from forge import errors
from forge.cli import command_tree
from forge.domain.policy import Policy
from forge.domain.verdict import REASON_CODES, UNDECIDED
from forge.events import EVENT_TYPES
from forge.guest import wire
from forge.lab.verification import ORDER
from forge.languages import LANGUAGES
from forge.operations import OPERATIONS
from forge.pipeline.promote import RULES
from forge.platforms import PROCESSORS
from tests.docs.markdown import ROOT, headings, pages, prose, read


def commands(command=None, path="forge"):
    command = command or command_tree()
    children = getattr(command, "commands", {})
    if not children:
        yield path
    for name, child in children.items():
        yield from commands(child, f"{path} {name}")


def error_codes(kind=errors.ForgeError):
    yield kind.code
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from error_codes(child)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("docs/reference/cli.md", tuple(commands())),
        ("docs/reference/events.md", tuple(EVENT_TYPES)),
        ("docs/reference/operations.md", tuple(OPERATIONS)),
        ("docs/reference/gates.md", ORDER),
        ("docs/reference/languages.md", tuple(LANGUAGES)),
        ("docs/errors.md", (*error_codes(), *REASON_CODES)),
    ],
)
def test_each_name_has_a_section(page, names):
    assert names
    assert [name for name in names if name not in headings(page)] == []


@pytest.mark.parametrize("page", ["docs/reference/policy.md", "docs/how-to/tune-the-policy.md"])
def test_each_policy_field_is_explained(page):
    assert [name for name in Policy.model_fields if f"`{name}`" not in prose(page)] == []


def test_each_rule_of_promotion_and_each_processor_is_listed():
    assert [rule.name for rule in RULES if f"| `{rule.name}` |" not in read("docs/reference/gates.md")] == []
    assert [slug for slug in PROCESSORS if f"| `{slug}` |" not in read("docs/reference/languages.md")] == []


def test_the_error_page_has_no_section_for_what_is_gone():
    titles = {"Errors and reasons", "Error codes", "Reason codes"}
    known = {*error_codes(), *REASON_CODES, *titles}
    assert [heading for heading in headings("docs/errors.md") if heading not in known] == []


def test_no_section_about_an_error_or_a_reason_is_empty():
    sections = re.split(r"^## ", prose("docs/errors.md"), flags=re.MULTILINE)[1:]
    assert [section.split("\n")[0] for section in sections if len(section.split()) < 6] == []


def test_the_error_page_names_the_reasons_that_leave_the_question_open():
    (sentence,) = re.findall(r"give \*inconclusive\*: ([A-Z_, ]+)\.", read("docs/errors.md"))
    assert set(sentence.split(", ")) == UNDECIDED


def test_each_error_says_its_own_exit_status():
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^#|\Z)", read("docs/errors.md"), re.DOTALL | re.MULTILINE))
    for kind in (errors.UsageError, errors.EnvironmentUnfit, errors.IntegrityError):
        for code in error_codes(kind):
            assert f"Exit status {kind.exit_status}." in sections[code], code


def test_every_page_is_reachable_from_the_index_or_the_readme():
    linked = read("docs/index.md") + read("README.md")
    lonely = [page for page in pages() if page.startswith("docs/") and page.removeprefix("docs/") not in linked]
    assert [page for page in lonely if page != "docs/index.md"] == []


def test_the_glossary_has_each_word_once_and_in_order():
    words = re.findall(r"^\| ([a-z][^|]*?) \| ", read("docs/glossary.md"), re.MULTILINE)[1:]
    assert words == sorted(set(words))
    assert {"task", "operation", "workspace", "candidate", "baseline", "gate", "evidence", "verdict"} <= set(words)


def test_a_reason_that_nothing_gives_is_said_to_be_reserved():
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^#|\Z)", read("docs/errors.md"), re.DOTALL | re.MULTILINE))
    files = {path.relative_to(ROOT / "forge").as_posix(): path for path in (ROOT / "forge").rglob("*.py")}
    lists_them = (
        "domain/reason_codes.py",
        "ledger/audit/",
    )  # the audit repeats the codes, since it imports nothing of ours
    sources = [path for name, path in files.items() if not name.startswith(lists_them)]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for reason in REASON_CODES:
        assert (f'"{reason}"' in code) != ("Not given in this release" in sections[reason]), reason


def test_the_trust_page_has_the_size_of_a_reply():
    assert f"one record of {wire.RECORD_BYTES} bytes" in read("docs/trust.md")


@cache
def lengths() -> list[tuple[str, int, list[tuple[str, int]]]]:
    """Return each file of ours with its number of lines, and its functions with the lines after their first."""
    found = []
    for path in sorted((ROOT / "forge").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
        long = [(node.name, node.end_lineno - node.lineno) for node in functions]
        found.append((path.relative_to(ROOT).as_posix(), source.count("\n"), long))
    assert len(found) > 500
    return found


@pytest.mark.slow
def test_our_own_long_files_and_functions_are_listed():
    said = read("CONTRIBUTING.md").split("## Where we break our own rules")[1]
    for name, lines, functions in lengths():
        assert lines <= 300 or f"`{name}`" in said, f"{name} has more than 300 lines"
        for function, more in functions:
            listed = f"`{function}` in `{name}`" in said
            assert more < 40 or listed, f"{function} in {name} has more than 40 lines"


@pytest.mark.slow
def test_what_is_listed_as_long_is_long():
    said = read("CONTRIBUTING.md").split("## Where we break our own rules")[1].split("- The sandbox draws")[0]
    files, functions = said.split("- Functions of more than 40 lines:")
    long_files = {name for name, lines, _ in lengths() if lines > 300}
    assert set(re.findall(r"`(forge/[\w/]+\.py)`", files)) == long_files
    long = {(function, name) for name, _, found in lengths() for function, more in found if more >= 40}
    assert set(re.findall(r"`(\w+)` in `([\w/]+\.py)`", functions)) == long


def test_no_file_of_ours_has_more_than_400_lines_and_no_function_more_than_60():
    for name, lines, functions in lengths():
        assert lines <= 400, name
        for function, more in functions:
            assert more < 60, f"{function} in {name}"
