"""One command for two files: the verdict, the reason and the line to mend, without a workspace."""

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from forge.app.check.guessed_kernel import guessed_entry, guessed_language
from forge.cli.check_formats import place_of, written
from forge.sandbox.stage import GPU_NODES
from tests.candidates import EXAMPLES
from tests.cli.asking import ask

HONEST = EXAMPLES / "honest_cpp" / "kernel.py"
REFERENCE = """import torch


def scaled(x):
    return torch.nn.functional.silu(x) * 2.0


def get_inputs():
    return [torch.randn(16, 64)]
"""
ASSEMBLY = """import torch
import triton
import triton.language as tl


@triton.jit
def _rounded(h):
    return tl.inline_asm_elementwise("cvt.rn.f32.f32 $0, $1;", "=r,r", [h], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _multiply(gate, up, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g, u = tl.load(gate + at, mask=at < count), tl.load(up + at, mask=at < count)
    tl.store(y + at, _rounded(g * tl.sigmoid(g) * u), mask=at < count)


def silu_mul(gate, up):
    y = torch.empty_like(gate)
    if y.numel():
        _multiply[(triton.cdiv(y.numel(), 256),)](gate, up, y, y.numel(), BLOCK=256)
    return y
"""
TILED = """import torch


def rmsnorm(x, weight, eps):
    if x.shape[1] % 64:
        raise ValueError("tiles of 64 columns")
    h = x.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
"""
RIGHT = "import torch\n\n\ndef scaled(x):\n    return x * torch.sigmoid(x) * 2.0\n"


@pytest.mark.usefixtures("walls")
def test_a_compilers_error_is_shown_with_its_line_in_kernel_py(tmp_path: Path) -> None:
    text = HONEST.read_text().replace("float ", "flot ", 1)
    number = next(place for place, line in enumerate(text.splitlines(), 1) if "flot " in line)
    (tmp_path / "kernel.py").write_text(text)
    options = (tmp_path / "kernel.py", "--op", "fused_add_rmsnorm", "--shape", "batch=4,hidden_size=64")
    answer = ask("check", *options)
    assert answer.status == 1
    assert f"kernel.py:{number}: in the candidate's words" in answer.out
    assert "  candidate| kernel.cpp:" in answer.out
    document = ask("check", *options, "--json").document
    assert (document["verdict"], document["reason"]["code"]) == ("rejected", "COMPILE_ERROR")
    assert document["log"]["line"] == number
    assert "flot" in document["log"]["untrusted_error"]


@pytest.mark.usefixtures("walls")
def test_two_files_are_enough_in_a_folder_that_cant_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernel.py").write_text(RIGHT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORGE_HOME", raising=False)
    tmp_path.chmod(0o555)
    try:
        before = sorted(os.listdir(tmp_path))
        answer = ask("check", "reference.py", "kernel.py", "--json")
        assert sorted(os.listdir(tmp_path)) == before
    finally:
        tmp_path.chmod(0o755)
    assert answer.status == 0, answer
    document = answer.document
    assert (document["verdict"], document["simulated"], document["recorded"]) == ("accepted", False, False)
    assert (document["language"], document["entry_point"]) == ("torch", "scaled")
    assert {gate["name"]: gate["verdict"] for gate in document["gates"]}["own_tests"] == "not asked"


@pytest.mark.usefixtures("walls")
def test_a_kernel_may_raise_outside_the_domain_that_is_stated(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(TILED)
    asked = ("check", tmp_path / "kernel.py", "--op", "rmsnorm", "--shape", "batch=16,hidden_size=64", "--json")
    refused = ask(*asked)
    assert (refused.status, refused.document["domain"]) == (1, None)
    assert refused.document["reason"]["code"] == "RUNTIME_ERROR"
    accepted = ask(*asked, "--domain", "hidden_size % 64 == 0")
    assert accepted.status == 0, accepted
    assert accepted.document["domain"] == "hidden_size % 64 == 0"
    narrower = ask(*asked, "--domain", "batch % 8 == 0")
    assert (narrower.status, narrower.document["reason"]["code"]) == (1, "RUNTIME_ERROR")


def test_a_check_wants_two_files_or_one_and_an_operation(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(RIGHT)
    kernel = tmp_path / "kernel.py"
    for arguments, said in (
        ((kernel,), "1 file: expected REFERENCE.py KERNEL.py, or KERNEL.py and --op"),
        ((kernel, kernel, "--op", "rmsnorm"), "KERNEL.py alone"),
        ((kernel, kernel, "--shape", "batch=1"), "--shape without --op"),
        ((kernel, "--op", "rmsnorm", "--operand", "x=fp32[4,4]"), "--operand with --op: expected no --operand"),
        ((kernel, "--op", "rmsnorm", "--vary", "x.1=1..9"), "--vary with --op: expected no --vary"),
        ((tmp_path / "none.py", "--op", "rmsnorm"), "the kernel"),
        ((kernel, "--op", "rmsnorm", "--domain", "hiden_size<=9"), "unknown domain axis 'hiden_size'"),
        ((kernel, "--op", "rmsnorm", "--domain", "hidden_size<=9"), "it excludes the task's shape"),
        ((kernel, "--op", "rmsnorm", "--domain", "batch in 1, hidden_size in 4096"), "fewer than 5 shapes lie in it"),
        ((kernel, "--op", "rmsnorm", "--domain", "wide"), "bad domain condition 'wide'"),
        ((kernel, "--op", "rmsnom"), "unknown operation 'rmsnom'"),
        ((kernel, "--op", "rmsnorm", "--json", "--output-format", "sarif"), "exclude each other"),
    ):
        refused = ask("check", *arguments)
        assert refused.status == 2, refused
        assert said in refused.error


def test_a_folder_in_place_of_a_file_is_named_with_the_command_for_its_kernel(tmp_path: Path) -> None:
    folder = tmp_path / "my kernel"
    folder.mkdir()
    (folder / "kernel.py").write_text(RIGHT)
    alone = ask("check", folder)
    assert (alone.status, alone.last) == (2, f"try: forge check --op OP '{folder}/kernel.py'")
    assert f"{str(folder)!r} is a folder: expected a file" in alone.error
    asked = ask("watch", folder, "--op", "rmsnorm")
    assert (asked.status, asked.last) == (2, f"try: forge watch --op rmsnorm '{folder}/kernel.py'")


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("x.half()", "another element type: float16[16, 64]"),
        ("x[1:]", "another shape: float32[15, 64]"),
        ("x, x", "nested differently from the reference's"),
    ],
)
def test_outputs_in_another_form_are_shown_beside_the_expected_one(tmp_path: Path, wrong: str, said: str) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernel.py").write_text(f"import torch\n\n\ndef scaled(x):\n    return {wrong}\n")
    document = ask("check", tmp_path / "reference.py", tmp_path / "kernel.py", "--json").document
    assert said in document["reason"]["message"]
    assert document["reason"]["message"].endswith("; expected output fp32[16, 64]")
    assert document["gates"][-1]["threshold"] == "output fp32[16, 64]"


@pytest.mark.usefixtures("walls")
def test_a_shorter_limit_ends_a_kernel_that_hangs(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import torch\n\n\ndef silu_mul(gate, up):\n    while True:\n        gate = gate + 0\n")
    asked = ("--op", "silu_mul", "--shape", "batch=4,hidden_size=256")
    answer = ask("check", kernel, *asked, "--limit-s", "3", "--json")
    assert answer.status == 1
    assert answer.document["reason"]["code"] == "TIMEOUT"
    assert " 3 " in answer.document["reason"]["message"]
    assert answer.document["mend"]["line"] == 5
    assert ask("check", kernel, *asked, "--limit-s", "0").status == 2


@pytest.mark.usefixtures("walls")
@pytest.mark.skipif(bool(GPU_NODES), reason="a GPU runs it")
def test_what_no_interpreter_can_compute_is_no_verdict(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(ASSEMBLY)
    answer = ask("check", kernel, "--op", "silu_mul", "--shape", "batch=4,hidden_size=64")
    assert answer.status == 3, answer
    assert "inline assembly" in answer.error
    assert "x.is_cuda" in answer.last


@pytest.mark.parametrize(
    ("kernel", "language"),
    [
        ("import torch\n", "torch"),
        ("import triton\n", "triton"),
        ("from triton import language as tl\n", "triton"),
        ('CPP_SOURCE = "int x;"\n', "cpp"),
        ('import triton\nCUDA_SOURCE = "int x;"\n', "cuda"),
        ("m = load_inline(name='m', cpp_sources='', functions=[])\n", "cpp"),
        ("m = load_inline(name='m', cpp_sources='', cuda_sources='')\n", "cuda"),
    ],
)
def test_the_language_is_what_the_kernel_shows(kernel: str, language: str) -> None:
    import ast

    assert guessed_language(ast.parse(kernel), kernel.encode()) == language


def test_the_entry_point_is_the_wanted_name_or_the_only_function() -> None:
    import ast

    assert guessed_entry(ast.parse("def a(): ...\nclass ModelNew: ..."), ["ModelNew", "b"]) == "ModelNew"
    assert guessed_entry(ast.parse("def _h(): ...\ndef mine(): ..."), ["ModelNew", "b"]) == "mine"
    assert guessed_entry(ast.parse("class _Of: ...\nclass Other: ...\nb = _Of()"), ["ModelNew", "b"]) == "b"


HOSTILE: dict[str, Any] = {
    "verdict": "rejected",
    "simulated": False,
    "reason": {"code": "RUNTIME_ERROR", "message": "a\n::error::b % <x> \x1b[2J"},
    "kernel": "a,b:c/kernel.py",
    "gates": [
        {"name": "sources", "verdict": "passed", "observed": "x", "threshold": "y"},
        {"name": "leaks", "verdict": "not asked", "observed": '"<&', "threshold": "y"},
        {"name": "signature", "verdict": "failed", "observed": "]]>", "threshold": "y"},
    ],
    "findings": [],
    "log": {"file": "kernel.py", "line": 7, "untrusted_error": "\n::notice::ok", "untrusted_lines": ["</failure>"]},
}


def test_hostile_words_stay_words_in_each_format() -> None:
    (line,) = written("github", HOSTILE).splitlines()
    assert line.startswith("::error file=a%2Cb%3Ac/kernel.py,line=7,title=RUNTIME_ERROR::a%0A")
    assert "\x1b" not in line
    suite = ElementTree.fromstring(written("junit", HOSTILE))[0]
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    assert [case.get("name") for case in suite] == ["sources", "leaks", "signature"]
    (result,) = json.loads(written("sarif", HOSTILE))["runs"][0]["results"]
    assert result["ruleId"] == "RUNTIME_ERROR"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7


@pytest.mark.usefixtures("walls")
def test_a_reference_with_dropout_is_answered_with_what_turns_it_off(tmp_path: Path) -> None:
    reference = REFERENCE.replace("silu(x) * 2.0", "dropout(x, 0.5)")
    (tmp_path / "reference.py").write_text(reference)
    (tmp_path / "kernel.py").write_text(RIGHT)
    answer = ask("check", tmp_path / "reference.py", tmp_path / "kernel.py")
    assert answer.status == 2
    assert "Call `self.train(False)`" in answer.error
    assert answer.last == "try: forge explain REFERENCE_REFUSED"


@pytest.mark.parametrize(
    ("log", "mend", "line"),
    [
        (None, {"line": 9}, 9),
        ({"file": "kernel.py", "line": 7}, {"line": 9}, 7),
        ({"file": "test_correctness.py", "line": 7}, None, 1),
        ({"file": None, "line": None}, {"line": 9}, 9),
        (None, None, 1),
    ],
)
def test_an_annotation_is_at_the_line_of_the_log_or_at_the_one_to_begin_with(
    log: dict[str, object] | None, mend: dict[str, object] | None, line: int
) -> None:
    assert place_of({"kernel": "own/kernel.py", "log": log, "mend": mend}) == ("own/kernel.py", line)
