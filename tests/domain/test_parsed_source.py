"""A foreign source is parsed in time that its length allows, wherever Forge reads one."""

import ast
import gc
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import forge
from forge.authors.attempts import meaning_of
from forge.authors.search.constants import constants_of
from forge.contenders.description import parse_description
from forge.domain.digest import sha256
from forge.domain.long_tokens import MOST_SIGNS
from forge.domain.parsed_source import LongToken, parse_source
from forge.domain.source_syntax import syntax_sha256
from forge.errors import UsageError
from forge.lab.log_excerpt import excerpt
from forge.lab.parts.compose import CannotCompose, PartKernel, _renamed
from forge.lab.sources.mending import place_to_mend
from forge.pipeline.called_names import called_names
from forge.pipeline.constants import with_constants

LONG_NAME = "a" + "\u0301\u0316" * MOST_SIGNS
"""Name that CPython normalises by sorting its marks by insertion."""
SOURCE = f"n = 1\n{LONG_NAME} = relu(2)\n"
DEEP = "x = " + "+".join("1" * 2500) + "\n"
"""Sum that parses, and that is nested deeper than Python calls itself."""
OWN_PARSER = {"domain/parsed_source.py", "domain/field_docstrings.py"}
"""Files that may call `ast.parse`: the second one reads Forge's own sources."""


@pytest.mark.parametrize("given", [SOURCE, SOURCE.encode(), f"# coding: utf-7\n{SOURCE}".encode("utf-7")])
def test_a_token_that_takes_the_square_of_its_length_is_refused(given: str | bytes) -> None:
    with pytest.raises(LongToken, match=": more than"):
        parse_source(given)


@pytest.mark.parametrize(
    "given", [b"\0", "\0", "(" * 300, "-" * 100_000 + "1", b"# coding: none\n", b"\xff", "9" * 5000, "a b"]
)
def test_any_other_fault_is_a_syntax_error(given: str | bytes) -> None:
    with pytest.raises(SyntaxError) as caught:
        parse_source(given)
    assert str(caught.value)


def test_bytes_have_the_encoding_that_they_declare() -> None:
    tree = parse_source("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    assert ast.dump(tree) == ast.dump(ast.parse("x = 'é'"))


def test_no_other_file_parses_a_source() -> None:
    root = Path(forge.__file__).parent
    found = {
        path.relative_to(root).as_posix() for path in root.rglob("*.py") if "ast.parse(" in path.read_text("utf-8")
    }
    assert found == OWN_PARSER


def _refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except (UsageError, CannotCompose, SyntaxError):
        return True
    return False


def _metadata() -> bytes:
    described = {"name": "a", "op": "rmsnorm", "language": "cpp", "cpp": {"source": "S"}}
    return json.dumps(described).encode()


def test_no_reader_of_a_source_parses_such_a_token() -> None:
    log = "kernel.cpp:1: error: no"
    files = {"metadata.json": _metadata(), "kernel.py": f"{SOURCE}S = '''b\nc'''\n".encode()}
    found = excerpt(log, files=files, withheld=False)
    assert found is not None
    assert found.line == 1  # of the compiled text: kernel.py isn't parsed
    assert meaning_of(SOURCE) == sha256(SOURCE.encode())
    assert syntax_sha256(SOURCE.encode()) is None
    assert called_names(SOURCE.encode()) == ()
    mended = place_to_mend(SOURCE.encode(), entry="f", language="cpp", code="TIMEOUT")
    assert mended is None
    assert _refused(lambda: constants_of(SOURCE, None))
    assert _refused(lambda: with_constants(SOURCE.encode(), ["n=2"]))
    assert _refused(lambda: _renamed(PartKernel(SOURCE, "f", None), "p"))
    with pytest.raises(UsageError):
        parse_description(f"[[contender]]\ncall = '{LONG_NAME}'\n".encode(), "here")


def test_a_deep_sum_is_a_number_or_no_number_and_no_traceback() -> None:
    assert with_constants(f"n = 1\n{DEEP}".encode(), ["n=2"]) == f"n = 2\n{DEEP}".encode()
    assert syntax_sha256(DEEP.encode()) is None
    assert meaning_of(DEEP) == sha256(DEEP.encode())


def test_two_threads_that_parse_at_once_get_their_trees() -> None:
    """The garbage collector runs while a tree is built, and lets another thread parse a text at another depth."""
    started, ended = threading.Event(), threading.Event()

    class LetsAnotherThreadParse:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            started.set()
            ended.wait(0.2)

    def parse() -> None:
        started.wait()
        parse_source("y = [1]\n" * 100)
        ended.set()

    other = threading.Thread(target=parse)
    other.start()
    text, before = "x = [[[1]]]\n" * 2000, gc.get_threshold()
    gc.collect()
    gc.set_threshold(10**9)
    try:
        LetsAnotherThreadParse()
        gc.set_threshold(500)
        found = parse_source(text)
    finally:
        gc.set_threshold(*before)
        started.set()
        other.join()
    assert len(found.body) == 2000
