"""Screening reads any text without running it, and without falling over it."""

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forge.domain.candidate import Metadata
from forge.domain.task import LanguageName
from forge.lab.finding import Failed, Passed
from forge.lab.sources.screen import examine_sources, parse_kernel, source_text
from forge.languages import find_language

LANGUAGES: tuple[LanguageName, ...] = ("cpp", "triton", "torch")
DEF = "\ndef f():\n    pass\n"


def screen(kernel: str, language: LanguageName, *, cpp: bool = False) -> Passed | Failed:
    described: dict[str, object] = {"name": "a", "op": "rmsnorm", "language": language}
    metadata = Metadata.model_validate({**described, **({"cpp": {}} if cpp else {})})
    return examine_sources(kernel, metadata=metadata, language=find_language(language), entry_point="f").finding


def code(finding: Passed | Failed) -> str | None:
    return finding.reason.code if isinstance(finding, Failed) else None


@given(st.text(max_size=200))
@example("-" * 20000 + "1")
@example("(" * 500)
@example("x=" + "lambda:" * 3000 + "1")
@example("x=" + "+".join(["1"] * 2500) + DEF)
@example("x=" + "+".join(["1"] * 50000) + DEF)
@example("x=a" + ".b" * 2500 + DEF)
@example("@(a" + ".b" * 1500 + ")" + DEF)
@example("@(0x" + "f" * 20000 + ")" + DEF)
@example("if a:\n pass\n" + "elif a:\n pass\n" * 3000)
@example("\0")
@example("\ud800")
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_any_text_is_screened_to_a_finding(kernel: str) -> None:
    for language in LANGUAGES:
        assert isinstance(screen(kernel, language, cpp=language == "cpp"), Passed | Failed)


@pytest.mark.parametrize(
    "text",
    [
        "def f(): pass",
        "async def f(): pass",
        "class f: pass",
        "f = max",
        "from math import sqrt as f",
        "import math as f",
    ],
)
def test_an_entry_point_may_be_defined_in_any_way(text: str) -> None:
    assert isinstance(screen(text, "torch"), Passed)


@pytest.mark.parametrize(
    "text", ["def g(): pass", "'def f(): pass'", "# def f(): pass", "def g():\n    def f(): pass"]
)
def test_a_name_that_isnt_at_the_top_level_is_no_entry_point(text: str) -> None:
    assert code(screen(text, "torch")) == "BAD_SUBMISSION"


@pytest.mark.parametrize("decorator", ["@triton.jit", "@jit", "@triton.jit(debug=True)"])
def test_triton_is_used_by_a_decorated_function(decorator: str) -> None:
    assert isinstance(screen(f"{decorator}{DEF}", "triton"), Passed)


@pytest.mark.parametrize(
    "text", ["'@triton.jit'", "# @triton.jit", "@other.jit", "@triton.jit.more", "@triton.autotune"]
)
def test_triton_isnt_used_by_mentioning_it(text: str) -> None:
    assert code(screen(f"{text}{DEF}", "triton")) == "STATIC_POLICY"


def test_cpp_is_used_by_a_named_constant_or_a_call() -> None:
    assert isinstance(screen(f'CPP_SOURCE = "int x;"{DEF}', "cpp", cpp=True), Passed)
    assert isinstance(screen(f"load_inline(){DEF}", "cpp"), Passed)
    assert isinstance(screen(f"cpp_extension.load(){DEF}", "cpp"), Passed)
    assert code(screen(f"'load_inline()'{DEF}", "cpp")) == "STATIC_POLICY"
    assert code(screen(f"CPP_SOURCE = 'a'.upper(){DEF}", "cpp", cpp=True)) == "STATIC_POLICY"
    assert code(screen(f"CPP_SOURCE = 1{DEF}", "cpp", cpp=True)) == "STATIC_POLICY"


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=100))
def test_the_constant_is_read_as_python_would_read_it(text: str) -> None:
    assert source_text(f"CPP_SOURCE = {text!r}", "CPP_SOURCE") == text
    assert source_text(f"OTHER = {text!r}", "CPP_SOURCE") is None


def test_text_nested_too_deeply_for_this_caller_has_no_source_text() -> None:
    deepest = 1
    while isinstance(parse_kernel(_nested(2 * deepest)), ast.Module):
        deepest *= 2
    assert source_text(_nested(deepest), "CPP_SOURCE") == "int x;"
    assert source_text(_nested(2 * deepest), "CPP_SOURCE") is None


def _nested(depth: int) -> str:
    return f"CPP_SOURCE = 'int x;'\nnegated = {'-' * depth}1\n"


CUDA = 'CUDA_SOURCE = r"""\n{text}\n"""\n'


def test_cuda_is_used_by_a_kernel_in_the_named_constant() -> None:
    described = Metadata.model_validate({"name": "a", "op": "rmsnorm", "language": "cuda", "cuda": {}})

    def screened(kernel: str, metadata: Metadata = described) -> Passed | Failed:
        return examine_sources(
            kernel + DEF, metadata=metadata, language=find_language("cuda"), entry_point="f"
        ).finding

    assert isinstance(screened(CUDA.format(text="__global__ void k() {}")), Passed)
    assert code(screened(CUDA.format(text="// __global__ void k() {}"))) == "STATIC_POLICY"
    assert code(screened("CUDA_SOURCE = 'a' + '__global__'")) == "STATIC_POLICY"
    assert code(screened("")) == "STATIC_POLICY"
    bare = described.model_copy(update={"cuda": None})
    assert isinstance(screened("load_inline()", bare), Passed)
    assert code(screened("", bare)) == "STATIC_POLICY"


def test_text_for_the_host_alone_is_no_cuda_candidate() -> None:
    metadata = Metadata.model_validate({"name": "a", "op": "rmsnorm", "language": "cuda", "cpp": {}})
    kernel = "CPP_SOURCE = 'int x;'" + DEF
    assert (
        code(examine_sources(kernel, metadata=metadata, language=find_language("cuda"), entry_point="f").finding)
        == "STATIC_POLICY"
    )
