"""An answer is untrusted text: files are read out of it, or one sentence says why there are none."""

import json

import pytest

from forge.authors.answer import AnsweredFiles, NoAnswer, read_answer
from forge.authors.outside import OutsideAuthor, OutsideOptions
from forge.domain.authoring import BudgetLeft, Replied
from forge.domain.digest import canonical

KERNEL = 'CPP = r"""\nint a;\n"""\n'


def files(text: str) -> dict[str, str]:
    found = read_answer(text)
    assert isinstance(found, AnsweredFiles), found
    return found.files


@pytest.mark.parametrize(
    "text",
    [
        f"Sure!\n```python kernel.py\n{KERNEL}```\nDone.",
        f"### `kernel.py`\n\n~~~\n{KERNEL}~~~",
        f"```python\n{KERNEL}```",
        f"````python kernel.py\n{KERNEL}````",
        json.dumps({"files": {"kernel.py": KERNEL, "../../etc/passwd": "x"}}),
    ],
)
def test_a_kernel_is_found_in_each_form(text: str) -> None:
    assert files(text) == {"kernel.py": KERNEL}


def test_the_hypothesis_and_a_known_axis_are_read() -> None:
    found = read_answer(f"**Hypothesis:** fewer\x1b[31m bytes\nAxis: no such axis\n```kernel.py\n{KERNEL}```")
    assert isinstance(found, AnsweredFiles)
    assert (found.hypothesis, found.axis) == ("fewer [31m bytes", None)


def test_half_of_a_character_is_no_file_and_breaks_no_session() -> None:
    answer = json.dumps({"files": {"kernel.py": "x = '\ud800'\n"}, "hypothesis": "less\udfff work"})
    found = read_answer(answer)
    assert isinstance(found, NoAnswer)
    assert "UTF-8" in found.why
    author = OutsideAuthor(kind="command", brief="a task", options=OutsideOptions())
    for text in (answer, json.dumps({"finished": "\ud800"})):
        canonical(author.propose(1, [Replied(text=text)], BudgetLeft()))  # it can be recorded


def test_several_files_are_kept_by_their_names() -> None:
    text = f"```python kernel.py\n{KERNEL}```\n```python bench.py\nx\n```\n```sh run.sh\nrm -rf /\n```"
    assert set(files(text)) == {"kernel.py", "bench.py"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I would rather talk about the weather.", "no fenced block"),
        ("```python kernel.py\nimport torch", "ends inside a block"),
        ("```python bench.py\nx\n```", "no kernel.py"),
        ("```\na\n```\n```\nb\n```", "2 blocks without a name"),
        (f"```python kernel.py\n{'x' * 600_000}\n```", "at most 524288"),
        ('{"files": [1, 2]}', "no fenced block"),
        ("[" * 100_000, "no fenced block"),
    ],
)
def test_an_answer_without_a_candidate_says_what_was_expected(text: str, why: str) -> None:
    found = read_answer(text)
    assert isinstance(found, NoAnswer)
    assert why in found.why
