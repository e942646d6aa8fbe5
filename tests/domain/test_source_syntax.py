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


BY_ITS_TEXT = (
    "open(__file__).read().count('#')",
    "__loader__.get_source('reference').count('#')",
    "vars()['__fi' + 'le__'].count('#')",
    "globals()['__fi' + 'le__'].count('#')",
    "getattr(f, '__co' + 'de__').co_firstlineno",
    "f.__code__.co_firstlineno",
    "f.__globals__['x']",
    "(lambda: (yield))().gi_frame.f_lineno",
    "'{0.__code__.co_firstlineno}'.format(f)",
    "eval('__file__').count('#')",
    "torch.os.path.getsize('reference.py')",
    "torch._sources.get_source_lines_and_file(f)",
    "torch.jit.script(f).code.count('#')",
    "torch.from_file('reference.py', size=9, dtype=torch.uint8)",
    "torch.utils.collect_env.run('cat reference.py')",
)
"""Expressions that differ between two files that differ in comments alone, or in their place."""
IMPORTS = (
    "import inspect",
    "import sys as math",
    "from sys import _getframe",
    "from . import reference",
    "from math import *",
    "import torch.utils.collect_env",
    "from torch import utils",
    "from operator import attrgetter",
    "import numpy.f2py",
)


@pytest.mark.parametrize("expression", BY_ITS_TEXT)
def test_a_file_that_may_see_its_own_text_is_known_by_its_bytes(expression: str) -> None:
    source = f"import torch\n\n\ndef f(x):\n    return x * {expression}\n"
    assert syntax_sha256(source.encode()) is None
    assert syntax_sha256(source.replace(expression, "2").encode()) is not None


@pytest.mark.parametrize("line", IMPORTS)
def test_a_file_that_imports_what_could_show_it_its_text_is_known_by_its_bytes(line: str) -> None:
    assert syntax_sha256(f"{line}\n\n\ndef f(x):\n    return x\n".encode()) is None


def test_a_raised_line_number_is_known_by_its_bytes() -> None:
    source = (
        b"def f(x):\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n        return e.__traceback__\n"
    )
    matched = b"def f(x):\n    match x:\n        case object(f_lineno=n):\n            return n\n"
    assert syntax_sha256(source) is syntax_sha256(matched) is None


def test_an_ordinary_module_is_known_by_its_tree() -> None:
    source = b"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.register_buffer("scale", torch.ones(features) * math.sqrt(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.ndim == 2, f"expected rows, got {x.shape}"
        return F.gelu(self.norm(x)) * self.scale


def get_inputs():
    return [torch.rand(4, 8)]


if __name__ == "__main__":
    print(np.asarray(Model(8)(*get_inputs())))
"""
    assert syntax_sha256(source) is not None
