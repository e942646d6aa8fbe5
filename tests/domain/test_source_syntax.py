"""A source file is known by its syntax tree: what only its layout changes leaves the digest as it is."""

import pytest

from forge.domain.source_syntax import syntax_sha256

SOURCE = b"""import torch


def pool(x, n=2):
    '''Mean of rows.'''
    return x.mean(0) * n, "a", 1.0, 1, True, None, b"a"
"""


@pytest.mark.parametrize(
    "other",
    [
        b"# a comment\n" + SOURCE,
        SOURCE.replace(b"import torch\n\n\n", b"import torch\n"),
        SOURCE.replace(b"x.mean(0) * n", b"(x.mean( 0 )*n)"),
        SOURCE.replace(b"x, n=2", b"x,n = 2"),
        SOURCE.replace(b"\n", b"\r\n"),
    ],
)
def test_comments_and_spacing_do_not_change_it(other: bytes) -> None:
    assert other != SOURCE
    assert syntax_sha256(other) == syntax_sha256(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"n=2", b"n=3"),
        (b"1.0", b"1"),
        (b"True", b"1"),
        (b'b"a"', b'"a"'),
        (b"None", b"False"),
        (b"x.mean(0)", b"x.mean(1)"),
        (b"* n", b"/ n"),
        (b"def pool", b"def pooled"),
        (b"Mean of rows", b"Sum of rows"),
        (b"(x, n=2):", b"(x, n=2):  # type: (int, int) -> int"),
        (b"(x, n=2)", b"(x, *, n=2)"),
    ],
)
def test_what_an_interpreter_may_see_changes_it(old: bytes, new: bytes) -> None:
    other = SOURCE.replace(old, new, 1)
    assert other != SOURCE
    assert syntax_sha256(other) not in (None, syntax_sha256(SOURCE))


def test_it_is_the_same_on_every_version_of_python() -> None:
    assert syntax_sha256(SOURCE) == "97273a38ac3c0d106a2e60a0b91955d54d882ab9b5beb2fec10baeb04c278c3f"


@pytest.mark.parametrize("bad", [b"def f(:", b"x = 1\0", b"(" * 10_000, b"# coding: nowhere\nx = 1\n"])
def test_a_file_that_does_not_parse_has_none(bad: bytes) -> None:
    assert syntax_sha256(bad) is None
