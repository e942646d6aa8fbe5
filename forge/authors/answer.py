"""Reads a candidate's files out of an answer. The answer is untrusted text of any length and form.

An answer has a fenced block for each file, with the file's name behind the fence or on the line before it. One
unnamed block is `kernel.py`. Instead, an answer may be one JSON object with `files` and `hypothesis`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from forge.domain.axes import AXES
from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.domain.candidate_files import REQUIRED_FILES

LONGEST_HYPOTHESIS = 600
"""Number of characters of a hypothesis that are kept: a few sentences."""
_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
"""Pattern of a line that opens or closes a block of code in Markdown."""
_NAMED = re.compile(r"(?<![\w/.-])(" + "|".join(map(re.escape, REQUIRED_FILES)) + r")(?![\w-])")
"""Pattern that finds the name of a required file in the text before a block."""
_SAID = re.compile(r"^\W{0,4}(?P<what>hypothesis|axis)\W{0,4}:\W{0,3}(?P<said>.+)$", re.IGNORECASE)
"""Pattern of a line with the answer's hypothesis or axis."""
_KNOWN_AXES = frozenset(axis for axes in AXES.values() for axis in axes)
"""Axes of experiments that an answer may name."""


@dataclass(frozen=True)
class AnsweredFiles:
    """The files that an answer has."""

    files: dict[str, str] = field(default_factory=dict)
    hypothesis: str = ""
    axis: str | None = None


@dataclass(frozen=True)
class NoAnswer:
    """An answer without a candidate."""

    why: str
    """One sentence for the author: what was seen, and what is expected."""


def read_answer(untrusted_text: str) -> AnsweredFiles | NoAnswer:
    """Return the files of an answer, or why there are none."""
    found = _of_json(untrusted_text) or _of_blocks(untrusted_text)
    if isinstance(found, NoAnswer):
        return found
    if not found.files:
        return NoAnswer("the answer has no fenced block: expected one with the whole kernel.py")
    if "kernel.py" not in found.files:
        return NoAnswer(f"the answer has {', '.join(found.files)} and no kernel.py: expected the whole kernel.py")
    for name, text in found.files.items():
        if not _is_whole(text):
            return NoAnswer(f"{name} holds half of a character (a lone surrogate): expected text in UTF-8")
        size = len(text.encode())
        if size > FILE_LIMIT_BYTES:
            return NoAnswer(f"{name} has {size} bytes: expected at most {FILE_LIMIT_BYTES}")
    return found


def _of_json(untrusted_text: str) -> AnsweredFiles | None:
    if not untrusted_text.lstrip().startswith("{"):
        return None
    try:
        said = json.loads(untrusted_text)
    except (ValueError, RecursionError):
        return None
    files = said.get("files") if isinstance(said, dict) else None
    if not isinstance(files, dict):
        return None
    kept = {name: text for name, text in files.items() if name in REQUIRED_FILES and isinstance(text, str)}
    axis = said.get("axis")
    return AnsweredFiles(kept, one_line(str(said.get("hypothesis", ""))), axis if axis in _KNOWN_AXES else None)


def _of_blocks(untrusted_text: str) -> AnsweredFiles | NoAnswer:
    files: dict[str, str] = {}
    said: dict[str, str] = {}
    before, unnamed = "", 0
    lines = iter(untrusted_text.splitlines())
    for line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            spoken = _SAID.match(line)
            if spoken is not None:
                said[spoken["what"].lower()] = spoken["said"]
            before = line if line.strip() else before
            continue
        body = _block(lines, fence["fence"])
        if body is None:
            return NoAnswer("the answer ends inside a block: expected the whole file and the fence that closes it")
        named = _NAMED.search(fence["info"]) or _NAMED.search(before)
        unnamed += named is None
        name = named[1] if named is not None else "kernel.py"
        if named is not None or name not in files:
            files[name] = body
        before = ""
    if unnamed > 1 and len(files) == 1:
        return NoAnswer(f"the answer has {unnamed} blocks without a name: expected a file's name behind each fence")
    axis = said.get("axis", "").strip(" .*`")
    return AnsweredFiles(files, one_line(said.get("hypothesis", "")), axis if axis in _KNOWN_AXES else None)


def _block(lines: Iterator[str], fence: str) -> str | None:
    """Return the lines up to the closing fence; None if the text ends before it."""
    body: list[str] = []
    for line in lines:
        closing = line.strip()
        if closing.startswith(fence) and set(closing) == {fence[0]}:
            return "\n".join(body) + "\n"
        body.append(line)
    return None


def _is_whole(text: str) -> bool:
    """Return whether a file can hold the text. An escape in JSON can spell half of a character."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def one_line(text: str) -> str:
    """Return the text in one line of printable characters, cut at the length of a hypothesis."""
    return "".join(one if one.isprintable() else " " for one in text).strip(" *`")[:LONGEST_HYPOTHESIS]
