"""Twenty typical mistakes: the answer of a refused kernel names the line to mend, or the one to begin with."""

import ast
import re
from pathlib import Path

import pytest

from forge.lab.sources.changed_input import changed_input
from forge.lab.sources.mending import place_to_mend
from tests.cli.asking import ask

RIGHT = "torch.nn.functional.silu(gate) * up"


def written(*body: str, entry: str = "silu_mul(gate, up)") -> str:
    return "\n".join(["import torch", "", "", f"def {entry}:", *(f"    {line}" for line in body), ""])


CPP = '''import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
{head}
extern "C" void silu_mul(const float* g, const float* u, float* o, int64_t n) {{
{body}
}}
"""

_kernel = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).silu_mul
_kernel.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_int64)
_kernel.restype = None


def silu_mul(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    _kernel(gate.data_ptr(), up.data_ptr(), out.data_ptr(), gate.numel())
    return out
'''
HEAD = "#include <cmath>\n#include <cstdint>"


def in_cpp(body: str, head: str = HEAD) -> str:
    return CPP.format(head=head, body=body)


LOOP = "for (int64_t i = 0; i < n; ++i) "
VALUE = "g[i] / (1 + std::exp(-g[i]))"
MISTAKES = {
    "a syntax error": (
        f"import torch\n\n\ndef silu_mul(gate, up)\n    return {RIGHT}\n",
        "COMPILE_ERROR",
        "def silu",
    ),
    "a missing module": ("import einops_of_nowhere\n" + written(f"return {RIGHT}"), "RUNTIME_ERROR", "import einops"),
    "a wrong name": (written("return torch.sillu(gate) * up"), "RUNTIME_ERROR", "torch.sillu"),
    "an exception": (written("if up.ndim == 2:", "    raise ValueError('no')"), "RUNTIME_ERROR", "raise ValueError"),
    "shapes that don't fit": (written("return gate[:, 1:] * up"), "RUNTIME_ERROR", "gate[:, 1:]"),
    "a missing return": (written(f"out = {RIGHT}"), "INCORRECT_SHAPE", "def silu_mul"),
    "a print in place of a return": (written(f"print({RIGHT})"), "INCORRECT_SHAPE", "def silu_mul"),
    "a wrong shape": (written(f"return ({RIGHT})[:, :-1]"), "INCORRECT_SHAPE", "[:, :-1]"),
    "a wrong element type": (written(f"return ({RIGHT}).half()"), "INCORRECT_DTYPE", ".half()"),
    "wrong strides": (written(f"return ({RIGHT}).t().contiguous().t()"), "INCORRECT_STRIDES", ".t().contiguous()"),
    "a step too few": (
        written(f"out = {RIGHT}", "out[:, -1] = 0", "return out"),
        "INCORRECT_NUMERICAL",
        "return out",
    ),
    "a NaN": (written(f"return {RIGHT} * float('nan')"), "NON_FINITE", "float('nan')"),
    "arguments in the wrong order": (
        written(f"return {RIGHT}", entry="silu_mul(up, gate)"),
        "INCORRECT_NUMERICAL",
        "return torch.nn",
    ),
    "memory that isn't written": (
        written("out = torch.empty_like(gate)", f"out[:, 1:] = ({RIGHT})[:, 1:]", "return out"),
        "INCORRECT_NUMERICAL",
        "return out",
    ),
    "an updated input": (
        written("gate.mul_(torch.sigmoid(gate))", "return gate * up"),
        "INPUT_MUTATED",
        "gate.mul_",
    ),
    "an updated view of an input": (
        written("rows = up.view(-1)", "rows[...] = torch.nn.functional.silu(gate).view(-1) * rows", "return up + 0"),
        "INPUT_MUTATED",
        "rows[...] =",
    ),
    "missing argtypes": (
        in_cpp(f"{LOOP}o[i] = {VALUE} * u[i];").replace(
            "_kernel.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_int64)", ""
        ),
        "RUNTIME_ERROR",
        "_kernel(gate.data_ptr()",
    ),
    "an updated input in C++": (
        in_cpp("for (int64_t i = 0; i < n; ++i) { gate[i] += 1; o[i] = gate[i] * u[i]; }").replace(
            "const float* g,", "float* gate,"
        ),
        "INPUT_MUTATED",
        "gate[i] += 1",
    ),
    "a missing header": (
        in_cpp(f"{LOOP}o[i] = {VALUE} * u[i];", HEAD + "\n#include <fast.h>"),
        "COMPILE_ERROR",
        "fast",
    ),
    "a missing semicolon": (in_cpp(f"{LOOP}o[i] = {VALUE} * u[i]"), "COMPILE_ERROR", "for (int64_t i"),
    "a template that doesn't fit": (
        in_cpp(f"{LOOP}o[i] = silu(g[i]);", HEAD + "\ntemplate <class T> T silu(T x) { return x.value(); }"),
        "COMPILE_ERROR",
        "x.value()",
    ),
    "an address out of bounds": (in_cpp(f"{LOOP}o[i + (1LL << 40)] = {VALUE};"), "RUNTIME_ERROR", 'extern "C"'),
    "an integer that overflows": (
        in_cpp(f"{LOOP}{{ const int8_t at = i; o[i] = {VALUE} * u[at < 0 ? 0 : at]; }}"),
        "INCORRECT_NUMERICAL",
        "int8_t at = i",
    ),
    "a race": (
        in_cpp(
            "std::thread([=] { usleep(100000); " + f"{LOOP}o[i] = {VALUE} * u[i]; " + "}).detach();",
            HEAD + "\n#include <thread>\n#include <unistd.h>",
        ),
        "INCORRECT_NUMERICAL",
        "std::thread",
    ),
}
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def _silu_mul(gate, up, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(gate + at, mask=inside, other=0.0)
    u = tl.load(up + at, mask=inside, other=0.0)
    tl.store(out + at, g / (1.0 + tl.exp(-g)) * u, mask=inside)


def silu_mul(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    count = gate.numel()
    if count:
        _silu_mul[(triton.cdiv(count, 512),)](gate, up, out, count, BLOCK=512)
    return out
"""


def in_triton(right: str, wrong: str) -> str:
    assert right in TRITON
    return TRITON.replace(right, wrong, 1)


BLOCK_OF_A_ROW = """import torch
import triton
import triton.language as tl


@triton.jit
def _silu_mul(gate, up, out, width, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside, row = at < width, tl.program_id(0) * width
    g = tl.load(gate + row + at, mask=inside, other=0.0)
    u = tl.load(up + row + at, mask=inside, other=0.0)
    tl.store(out + row + at, g / (1.0 + tl.exp(-g)) * u, mask=inside)


def silu_mul(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    if out.numel():
        _silu_mul[(gate.shape[0],)](gate, up, out, gate.shape[1], BLOCK=64)
    return out
"""
IN_TRITON = {
    "a syntax error": (in_triton("at < count", "at <"), "COMPILE_ERROR", "inside = at <"),
    "a missing import": (in_triton("import triton.language as tl\n", ""), "RUNTIME_ERROR", "tl.constexpr"),
    "a typo in tl": (in_triton("tl.exp(-g)", "tl.expp(-g)"), "RUNTIME_ERROR", "tl.expp"),
    "a wrong name": (in_triton("tl.load(up", "tl.load(upp"), "RUNTIME_ERROR", "upp + at"),
    "a block that is no power of two": (in_triton("BLOCK=512", "BLOCK=500"), "RUNTIME_ERROR", "tl.arange"),
    "a missing argument of the launch": (
        in_triton("out, count, BLOCK=512", "out, BLOCK=512"),
        "RUNTIME_ERROR",
        "_silu",
    ),
    "a missing argument of the entry point": (
        in_triton("def silu_mul(gate, up):", "def silu_mul(gate):"),
        "RUNTIME_ERROR",
        "def silu_mul(gate)",
    ),
    "a kernel that isn't launched": (
        in_triton("        _silu_mul[(triton.cdiv(count, 512),)](gate, up, out, count, BLOCK=512)", "        pass"),
        "FALLBACK",
        "def silu_mul",
    ),
    "a block for a condition": (
        in_triton("    inside = at < count\n", "    inside = at < count\n    if inside:\n        at += 0\n"),
        "RUNTIME_ERROR",
        "if inside:",
    ),
    "a load without a mask": (
        in_triton("tl.load(up + at, mask=inside, other=0.0)", "tl.load(up + at)"),
        "OUT_OF_BOUNDS",
        "tl.load(up + at)",
    ),
    "an element too few": (in_triton("at < count", "at < count - 1"), "INCORRECT_NUMERICAL", "tl.store"),
    "a block too small for the row": (BLOCK_OF_A_ROW, "INCORRECT_NUMERICAL", "BLOCK=64)"),
    "a wrong element type": (in_triton("return out", "return out.half()"), "INCORRECT_DTYPE", "out.half()"),
}
PLACE = re.compile(r"^kernel\.py:(\d+)(?:: in|, which)[^\n]*\n  candidate\| > (.*)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [*MISTAKES.values(), *IN_TRITON.values()],
    ids=[*MISTAKES, *(f"{name} in Triton" for name in IN_TRITON)],
)
@pytest.mark.usefixtures("walls")
def test_a_typical_mistake_is_refused_with_the_line_to_mend(text: str, code: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(text)
    answer = ask("check", tmp_path / "kernel.py", "--op", "silu_mul", "--shape", "batch=4,hidden_size=256")
    assert answer.status == 1, answer
    assert f"{code}: " in answer.out
    found = PLACE.search(answer.out)
    assert found, answer.out
    number, shown = int(found[1]), found[2]
    assert said in shown
    assert text.splitlines()[number - 1].strip() == shown
    assert answer.last == f"try: forge explain {code}"


def test_the_mistakes_are_asked_in_three_languages() -> None:
    assert len(MISTAKES) + len(IN_TRITON) == 37


@pytest.mark.parametrize(
    ("text", "language", "launch"),
    [
        (TRITON, "triton", "_silu_mul[(triton.cdiv(count, 512),)](gate, up, out, count, BLOCK=512)"),
        (in_cpp(LOOP), "cpp", "_kernel(gate.data_ptr(), up.data_ptr(), out.data_ptr(), gate.numel())"),
        (written(f"return {RIGHT}"), "torch", None),
    ],
    ids=["triton", "cpp", "torch"],
)
def test_a_wrong_value_also_names_the_line_that_launches(text: str, language: str, launch: str | None) -> None:
    place = place_to_mend(text.encode(), entry="silu_mul", language=language, code="INCORRECT_NUMERICAL")
    assert place is not None
    assert (place.called_by and place.called_by.source) == launch


TWO_OUTPUTS = in_cpp(
    f"{LOOP}o[i] = 0;\n{LOOP}{{ const float sum = g[i]; total[i] += sum; o[i] = sum == 1 ? 2 : sum; }}\n"
    "for (int64_t i = 0; i < n; ++i) if (o[i] == total[i]) return;"
)


@pytest.mark.parametrize(
    ("text", "language", "wrong", "source"),
    [
        (TWO_OUTPUTS, "cpp", "o", "o[i] = sum == 1"),
        (TWO_OUTPUTS, "cpp", "total", "total[i] += sum"),
        (TWO_OUTPUTS, "cpp", "y", "o[i] = sum == 1"),
        (TWO_OUTPUTS.replace("float* o, int64_t n", "float* o, float* total, int64_t n"), "cpp", "y", 'extern "C"'),
        (TRITON + "# tl.store(o + at, 1)\n", "triton", "out", "tl.store(out + at"),
        (TRITON, "triton", "y", "tl.store(out + at"),
    ],
)
def test_a_wrong_value_names_the_last_line_that_writes_that_output(
    text: str, language: str, wrong: str, source: str
) -> None:
    named = {"entry": "silu_mul", "language": language, "code": "INCORRECT_NUMERICAL"}
    place = place_to_mend(text.encode(), **named, wrong_output=wrong)
    assert place is not None
    assert source in place.source
    assert place.called_by is not None


SUMMED = in_cpp(
    """  float total = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float square = g[i] * g[i];
    total -= square;  // the wrong line
    count = count + 1;
  }
  const float scale = 1 / std::sqrt(total / n);
  for (int64_t i = 0; i < n; ++i) o[i] = u[i] * scale;"""
)
SUMMED_IN_TRITON = TRITON.replace(
    "    tl.store(out + at", "    gated = g * u  # the wrong line\n    tl.store(out + at"
).replace("tl.store(out + at, ", "tl.store(out + at, gated + ")


@pytest.mark.parametrize(
    ("text", "language", "first", "left_out"),
    [
        (SUMMED, "cpp", "float total = 0;", "count"),
        (SUMMED_IN_TRITON, "triton", "at = ", "import"),
        (written("wrong = gate - up", "other = up + 1", "return wrong * 2"), "torch", "wrong = gate - up", "other"),
    ],
    ids=["cpp", "triton", "torch"],
)
def test_a_wrong_value_names_the_lines_that_it_comes_from(
    text: str, language: str, first: str, left_out: str
) -> None:
    named = {"entry": "silu_mul", "language": language}
    place = place_to_mend(text.encode(), **named, code="INCORRECT_NUMERICAL")
    assert place is not None
    shown = [one.source for one in place.comes_from]
    assert shown[0].startswith(first)
    assert language == "torch" or any("the wrong line" in one for one in shown)
    assert not any(left_out in one for one in shown)
    assert all(one.line < place.line for one in place.comes_from)
    of_form = place_to_mend(text.encode(), **named, code="INCORRECT_DTYPE")
    assert of_form is not None
    assert of_form.comes_from == ()


def test_no_line_is_named_where_the_reason_is_a_text_that_is_missing() -> None:
    text = in_cpp(f"{LOOP}o[i] = g[i] * u[i];").replace("CPP_SOURCE", "SOURCE")
    named = {"entry": "silu_mul", "language": "cpp"}
    assert place_to_mend(text.encode(), **named, code="INCORRECT_NUMERICAL") is not None
    assert place_to_mend(text.encode(), **named, code="STATIC_POLICY") is None


def test_the_loop_around_a_line_that_a_wrong_value_comes_from_is_named() -> None:
    body = (
        *(
            "count = 0",
            "for _ in range(gate.shape[0] - 1):",
            "    count = count + 1",
            "if up.ndim == 1:",
            "    other = 2",
        ),
        *("out = torch.zeros_like(gate)", "out[:count] = gate[:count] * up[:count]", "return out"),
    )
    named = {"entry": "silu_mul", "language": "torch", "code": "INCORRECT_NUMERICAL"}
    place = place_to_mend(written(*body).encode(), **named)
    assert place is not None
    shown = [one.source for one in place.comes_from]
    assert shown == [one.strip() for one in (*body[:3], *body[5:7])]


@pytest.mark.usefixtures("walls")
def test_a_wrong_sum_has_its_line_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(SUMMED)
    answer = ask("check", tmp_path / "kernel.py", "--op", "silu_mul", "--shape", "batch=4,hidden_size=256")
    assert answer.status == 1
    line = SUMMED.splitlines().index("    total -= square;  // the wrong line") + 1
    assert f"  candidate| {line:>4}: total -= square;  // the wrong line" in answer.out


@pytest.mark.parametrize("loop", ["while (n > 0) o[0] = 1;", "for (;;) o[0] = 1;"])
def test_an_endless_loop_in_another_language_is_named(loop: str) -> None:
    text = in_cpp(f"// while (this) is no loop\n{loop}").replace(
        "import ctypes", '"""Waits while it can."""\nimport ctypes'
    )
    place = place_to_mend(text.encode(), entry="silu_mul", language="cpp", code="TIMEOUT")
    assert place is not None
    assert place.source == loop


def test_a_remembered_answer_is_named_by_the_line_that_keeps_it() -> None:
    text = written("if not KEPT:", f"    KEPT.append({RIGHT})", "return KEPT[0]").replace(
        "\n\n\n", "\nKEPT = []\n\n\n", 1
    )
    for code, source in (("REPLAYED_OUTPUT", "KEPT.append"), ("INCORRECT_NUMERICAL", "return KEPT[0]")):
        found = [("state", "bench.py", 1), ("state", "kernel.py", 7), ("state", "kernel.py", 8)]
        place = place_to_mend(text.encode(), entry="silu_mul", language="torch", code=code, findings=found)
        assert place is not None
        assert source in place.source


@pytest.mark.usefixtures("walls")
def test_a_check_names_the_line_that_keeps_an_answer(tmp_path: Path) -> None:
    text = written(f"out = {RIGHT}", "return KEPT.setdefault(gate.shape, out)") + "\n\nKEPT = {}\n"
    (tmp_path / "kernel.py").write_text(text)
    asked = ("--op", "silu_mul", "--shape", "batch=4,hidden_size=256", "--json")
    document = ask("check", tmp_path / "kernel.py", *asked).document
    assert document["reason"]["code"] in ("REPLAYED_OUTPUT", "STATE_CARRIED")
    assert "KEPT" in document["mend"]["source"]
    assert document["mend"]["does"] == "keeps a value between calls"


@pytest.mark.usefixtures("walls")
def test_a_check_names_the_line_that_changes_a_setting_at_import(tmp_path: Path) -> None:
    text = written(f"return {RIGHT}").replace("\n\n\n", "\ntorch.backends.cuda.matmul.allow_tf32 = True\n\n\n", 1)
    (tmp_path / "kernel.py").write_text(text)
    asked = ("--op", "silu_mul", "--shape", "batch=4,hidden_size=256", "--json")
    document = ask("check", tmp_path / "kernel.py", *asked).document
    assert document["reason"]["code"] == "STATE_CARRIED"
    assert "allow_tf32" in document["mend"]["source"]
    assert document["mend"]["does"] == "may change what the process shares"


LAZY = """
import torch
from torch.utils.cpp_extension import load_inline


def extension():
    return load_inline(name="mine", cpp_sources=SOURCE, functions=["f"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension().f(x)
"""


def test_an_extension_that_is_built_in_a_function_is_named_where_nothing_was_built() -> None:
    place = place_to_mend(LAZY.encode(), entry="ModelNew", language="cpp", code="COMPILE_ERROR")
    assert place is not None
    assert place.source.startswith("return load_inline(")
    early = LAZY.replace("def extension():\n    return", "extension = lambda: BUILT\nBUILT =")
    other = place_to_mend(early.encode(), entry="ModelNew", language="cpp", code="COMPILE_ERROR")
    assert other is not None
    assert other.source == "return extension().f(x)"


KEEPING = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if {condition}:
            self.kept = {value}
        return x @ self.kept
"""


@pytest.mark.parametrize(
    ("condition", "value", "named"),
    [
        ("self.kept is None", "self.linear.weight.t().contiguous()", True),
        ("not hasattr(self, 'kept')", "torch.cat([self.weight_hh, self.bias_hh], 1)", True),
        ("self.kept is None", "x.half()", True),
        ("self.kept is None or self.kept.shape != x.shape", "torch.empty_like(x)", False),
        ("self.kept is None", "x.shape[-1] ** -0.5", False),
        ("self.ready", "self.linear.weight.t()", False),
    ],
)
def test_a_kept_operand_is_named_where_values_are_wrong(condition: str, value: str, named: bool) -> None:
    text = KEEPING.format(condition=condition, value=value)
    place = place_to_mend(text.encode(), entry="ModelNew", language="torch", code="INCORRECT_NUMERICAL")
    assert place is not None
    assert place.source.startswith("self.kept =") == named


PACKING = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.decay = torch.nn.Parameter(torch.ones(width))
        {statement}

    def forward(self, x):
        return self.linear(x) * self.decay
"""


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("self.kept = self.linear.weight.detach().t().contiguous()", True),
        ("self.kept = -torch.exp(self.decay)", True),
        ("self.register_buffer('kept', self.linear.weight.half())", True),
        ("weight = self.linear.weight.detach(); self.kept = weight.t().contiguous()", True),
        ("self.weight = self.linear.weight", False),
        ("self.weight = torch.nn.Parameter(self.linear.weight.clone())", False),
        ("self.kept = self.linear.weight.shape[0] ** -0.5", False),
        ("self.kept = self.linear.bias is not None", False),
        ("self.kept = torch.empty_like(self.linear.weight)", False),
        ("torch.nn.init.ones_(self.linear.weight)", False),
        ("self.other = torch.nn.Linear(width, width, bias=config.bias)", False),
    ],
)
def test_what_a_constructor_computes_from_weights_is_named_where_values_are_wrong(
    statement: str, named: bool
) -> None:
    text = PACKING.format(statement=statement)
    place = place_to_mend(text.encode(), entry="ModelNew", language="torch", code="INCORRECT_NUMERICAL")
    assert place is not None
    assert (place.does == "computes from weights before they are given") == named
    assert (place.source == statement) == named


def test_a_value_kept_between_calls_is_named_by_its_statement() -> None:
    text = written("global OUT", "OUT = torch.empty_like(gate)", "return OUT")
    place = place_to_mend(text.encode(), entry="silu_mul", language="torch", code="STATE_CARRIED")
    assert place is not None
    assert place.source == "global OUT"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (written("while True:", "    gate = gate * 1"), 5),
        (written(f"out = {RIGHT}", "for _ in range(10**9):", "    out = out * 1", "return out"), 8),
        (in_cpp("for (;;) o[0] = 1;"), 10),
    ],
    ids=["while", "for", "cpp"],
)
def test_the_place_of_an_endless_call_is_its_loop_or_its_function(text: str, line: int) -> None:
    language = "cpp" if "CPP_SOURCE" in text else "torch"
    place = place_to_mend(text.encode(), entry="silu_mul", language=language, code="TIMEOUT")
    assert place is not None
    assert place.line == line


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("x = torch.ones(1 << 36)", "OUT_OF_MEMORY"),
        ("print('a' * 10**7)", "RESOURCE_ABUSE"),
    ],
)
def test_a_call_that_takes_too_much_is_named(line: str, code: str) -> None:
    text = written("gate = gate + 0", line, f"return {RIGHT}")
    place = place_to_mend(text.encode(), entry="silu_mul", language="torch", code=code)
    assert place is not None
    assert place.source == line


@pytest.mark.parametrize(
    "text", ["", "\x00", "(" * 10_000, "def silu_mul(gate, up): return \\\n", "x = 1\n", "class silu_mul: pass\n"]
)
def test_a_place_is_found_or_none_whatever_the_source_is(text: str) -> None:
    place = place_to_mend(text.encode(), entry="silu_mul", language="torch", code="RUNTIME_ERROR")
    assert place is None or place.line >= 1


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (["gate += 1", "return gate"], 5),
        (["h = gate.view(-1)", "h.add_(1)", "return h"], 6),
        (["h, k = up, gate[1:]", "torch.add(gate, 1, out=k)", "return k"], 6),
        (["h = gate + 0", "h.add_(1)", "return h"], None),
        (["gate = gate.clone()", "gate += 1", "return gate"], None),
        (["h = gate", "h = h + 1", "h += 1", "return h"], None),
        (["up[0] = gate.__init__()", "return gate"], 5),
    ],
)
def test_a_write_in_place_is_named_only_if_it_is_an_inputs(body: list[str], line: int | None) -> None:
    function = ast.parse(written(*body)).body[1]
    assert isinstance(function, ast.FunctionDef)
    found = changed_input(function)
    assert (found and found[0]) == line


def test_a_number_is_named_only_if_one_line_has_it() -> None:
    named = {"entry": "silu_mul", "language": "triton", "code": "INCORRECT_NUMERICAL"}
    place = place_to_mend(BLOCK_OF_A_ROW.encode(), **named, wrong_output="out", wrong_from=64)
    assert place is not None
    assert "BLOCK=64" in place.source
    for text, begins in ((BLOCK_OF_A_ROW + "# 64\n", 64), (BLOCK_OF_A_ROW, 65), (BLOCK_OF_A_ROW, 1)):
        other = place_to_mend(text.encode(), **named, wrong_output="out", wrong_from=begins)
        assert other is not None
        assert "tl.store" in other.source
