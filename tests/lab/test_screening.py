"""Screening: what is refused for its sources, and that no honest kernel ever is."""

import re
from pathlib import Path

import pytest

from forge.domain.task import LanguageName
from forge.lab.finding import Failed, Passed
from forge.lab.sources.screen import examine_sources
from forge.languages import LANGUAGES
from tests.lab.test_triage import ENTRY, PYTHON, ROOT, kinds, metadata

TRITON = (
    "import torch\nimport triton\nimport triton.language as tl\n"
    "@triton.jit\ndef k(x, y, n):\n    tl.store(y, tl.load(x))\n"
)
LAUNCHED = {
    "def f(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, 3)\n    return y",
    "run = k\ndef f(x):\n    y = torch.empty_like(x)\n    run[(1,)](x, y, 3)\n    return y",
    "table = {'a': k}\ndef f(x):\n    y = torch.empty_like(x)\n    table['a'][(1,)](x, y, 3)\n    return y",
    "class R:\n    def go(self, x, y):\n        k[(1,)](x, y, 3)\n"
    "def f(x):\n    y = torch.empty_like(x)\n    R().go(x, y)\n    return y",
    "def g(x, y):\n    k[(1,)](x, y, 3)\ndef f(x):\n    y = torch.empty_like(x)\n    g(x, y)\n    return y",
    "def f(x):\n    y = torch.empty_like(x)\n    globals()['k'][(1,)](x, y, 3)\n    return y",
    "launchers = []\ndef f(x):\n    return launchers[0](x)\nlaunchers.append(lambda x: k[(1,)](x, x, 3))",
}
NOT_LAUNCHED = {
    "def f(x):\n    return torch.relu(x)",
    "def f(x):\n    return g(x)\ndef g(x):\n    return x + 1\ndef unused(x):\n    k[(1,)](x, x, 3)",
    "unused = [k]\ndef f(x):\n    return x + 1",
}


def screened(kernel: str, language: LanguageName, *, forbidding: bool = True) -> Passed | Failed:
    forbids = LANGUAGES[language].forbids if forbidding else frozenset()
    return examine_sources(
        kernel, metadata=metadata(language), language=language, entry_point="f", forbids=forbids
    ).finding


@pytest.mark.parametrize("entry", sorted(LAUNCHED))
def test_a_kernel_that_may_be_launched_is_no_fallback(entry: str) -> None:
    assert isinstance(screened(TRITON + entry, "triton"), Passed)


@pytest.mark.parametrize("entry", sorted(NOT_LAUNCHED))
def test_a_kernel_that_is_provably_never_launched_is_a_fallback(entry: str) -> None:
    finding = screened(TRITON + entry, "triton")
    assert isinstance(finding, Failed)
    assert finding.reason.code == "FALLBACK"
    assert "decoy_kernel" in kinds(TRITON + entry, "triton")


def test_a_launch_whose_outputs_are_dropped_is_worth_a_look_and_no_more() -> None:
    entry = "def f(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, 3)\n    return torch.relu(x)"
    assert {"decoy_kernel", "vendor_fallback"} <= kinds(TRITON + entry, "triton")
    assert isinstance(screened(TRITON + entry, "triton"), Passed)


@pytest.mark.parametrize("alias", ["import triton as tr\n@tr.jit", "from triton import jit as compiled\n@compiled"])
def test_triton_is_recognised_under_another_name(alias: str) -> None:
    assert isinstance(
        screened(f"{alias}\ndef k(x):\n    pass\ndef f(x):\n    k[(1,)](x)\n    return x", "triton"), Passed
    )


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("kernel", [text for text, kind in PYTHON.items() if kind in ("network", "processes")])
def test_what_is_forbidden_is_refused_with_its_place(kernel: str, language: LanguageName) -> None:
    own = {
        "triton": "import triton\n@triton.jit\ndef k():\n    pass\n",
        "cpp": "load_inline()\n",
        "cuda": "load_inline()\n",
        "torch": "",
    }[language]
    finding = screened(f"{own}{kernel}{ENTRY}", language)
    assert isinstance(finding, Failed)
    assert finding.reason.code == "STATIC_POLICY"
    assert re.match(r"kernel\.py:\d+:\d+: ", finding.reason.message)
    code = getattr(
        getattr(screened(f"{own}{kernel}{ENTRY}", language, forbidding=False), "reason", None), "code", None
    )
    assert code != "STATIC_POLICY"


def test_nothing_that_honest_kernels_do_is_forbidden() -> None:
    assert {kind for one in LANGUAGES.values() for kind in one.forbids} == {"network", "processes", "frames"}


def honest() -> list[Path]:
    found = [
        *sorted((ROOT / "tests/honest/candidates").glob("*.py")),
        *sorted((ROOT / "examples").glob("honest_*/kernel.py")),
    ]
    return [*found, ROOT / "tests/honest/extension/kernel.py"]


@pytest.mark.parametrize("path", honest(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_honest_kernel_is_never_refused_for_its_sources(path: Path) -> None:
    text = path.read_text()
    said = re.search(r"^Language: (\w+)", text, re.MULTILINE)
    operation = re.search(r"^Operation: (\w+)", text, re.MULTILINE)
    guessed = (
        "cpp" if "cpp" in str(path) or "extension" in str(path) else "triton" if "triton" in str(path) else "torch"
    )
    name = said[1] if said else guessed
    language: LanguageName = next(one for one in ("cpp", "triton", "torch") if one == name)
    finding = examine_sources(
        text,
        metadata=metadata(language, cpp="CPP_SOURCE" in text),
        language=language,
        entry_point=operation[1] if operation else "fused_add_rmsnorm",
        forbids=LANGUAGES[language].forbids,
    ).finding
    assert isinstance(finding, Passed), finding
