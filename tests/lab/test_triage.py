"""Triage: sees through aliases and assembled names, stays quiet about honest kernels, survives any text."""

import ast
import random
import time
import warnings
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forge.domain.candidate import FILE_LIMIT_BYTES, Metadata
from forge.domain.source_finding import FindingKind, SourceFinding
from forge.domain.task import LanguageName
from forge.lab.triage import triage
from forge.lab.triage.collector import MOST_PLACES, WHY
from forge.lab.triage.cpp_tokens import tokens
from forge.languages import find_language

ROOT = Path(__file__).parents[2]
ENTRY = "\ndef f(x):\n    return x\n"
MOST_PARSES = 8
"""Triage may take so many times as long as Python takes to parse a large file: that goes with the machine."""


def metadata(language: str, *, cpp: bool = False) -> Metadata:
    described: dict[str, object] = {"name": "a", "op": "rmsnorm", "language": language}
    return Metadata.model_validate({**described, **({"cuda" if language == "cuda" else "cpp": {}} if cpp else {})})


def seen(kernel: str, language: LanguageName = "torch", *, cpp: bool = False) -> tuple[SourceFinding, ...]:
    tree = ast.parse(kernel)
    described = metadata(language, cpp=cpp)
    return triage(tree, kernel, metadata=described, language=find_language(language), entry_point="f").findings


def kinds(kernel: str, language: LanguageName = "torch", *, cpp: bool = False) -> set[str]:
    return {one.kind for one in seen(kernel, language, cpp=cpp)}


PYTHON = {
    "import importlib\nm = importlib.import_module('ct' + 'ypes')": "dynamic_import",
    "m = __import__('math')": "dynamic_import",
    "import ctypes as c\nl = c.CDLL('libc.so.6')": "foreign_code",
    "from ctypes import CDLL as load\nl = load('/usr/lib/libcublas.so')": "foreign_code",
    "l = __import__('ct' + 'ypes').CDLL(None)": "foreign_code",
    "import torch as t\nt.allclose = lambda *a: True": "patching",
    "import torch\nsetattr(torch.cuda.Event, 'elapsed_time', lambda *a: 0)": "patching",
    "def g():\n    pass\ng.__code__ = f.__code__": "patching",
    "import torch\nclass L(torch.Tensor):\n    pass": "patching",
    "class L:\n    def __torch_function__(self):\n        pass": "patching",
    "import threading as h\nh.Thread(target=f).start()": "threads",
    "import torch\ns = getattr(torch.cuda, 'Str' + 'eam')()": "threads",
    "import torch\ns = getattr(torch.cuda, ''.join(['Str', 'eam']))()": "threads",
    "from os import environ as e\ne.get('X')": "environment",
    "import sys\nn = len(sys.argv)": "environment",
    "import sys\nfr = sys._getframe(1)": "frames",
    "import gc\ngc.get_objects()": "frames",
    "import sys\nh = [m for m in sys.modules.values() if hasattr(m, 'look')]": "frames",
    "fr.f_back.f_locals": "frames",
    "from guest import run as harness\nharness.run(1)": "frames",
    "import guest.run\nguest.run.copy = None": "patching",
    "import gc\ngc.collect()": "introspection",
    "b = __builtins__": "introspection",
    "import sys\nsys.modules['torch']": "introspection",
    "p = ope\uff4e('/proc/self/maps')": "files",
    "from pathlib import Path\nPath('x').read_text()": "files",
    "import socket as s\ns.create_connection(('h', 1))": "network",
    "from socket import *\ncreate_connection(('h', 1))": "network",
    "import urllib.request\nurllib.request.urlopen('http://h')": "network",
    "import os\nos.system('true')": "processes",
    "import os\ng = getattr(os, 'me' 'tsys'[::-1])": "processes",
    "import sys\nsys.modules['os'].fork()": "processes",
    "import os\nos.__dict__['fork']()": "processes",
    "import os\nvars(os)['fork']()": "processes",
    "NAME = 'fork'\nimport os\ngetattr(os, NAME)()": "processes",
    "import os\ngetattr(os, chr(102) + 'ork')()": "processes",
    "import os\ngetattr(os, ' FORK'.lower().strip())()": "processes",
    "__import__(str(b'socket'.decode())).socket()": "network",
    "import time\ntime.perf_counter()": "clock",
    "import random\nrandom.random()": "randomness",
    "import torch\ntorch.rand(3)": "randomness",
    "from flash_attn import flash_attn_func": "foreign_kernel",
    "def g(x):\n    try:\n        return k(x)\n    except Exception:\n        return x": "fallback_on_error",
    "import contextlib\ndef g(x):\n    with contextlib.suppress(Exception):\n        k(x)": "fallback_on_error",
    "c = {}\ndef g(x):\n    c[id(x)] = x": "state",
    "def g(x, c={}):\n    return c": "state",
    "def g(x):\n    global n\n    n = x": "state",
    "import functools as ft\n@ft.lru_cache\ndef g(x):\n    return x": "state",
    "def g(x):\n    g.last = x": "state",
    "class C:\n    pass\nc = C()\ndef g(x):\n    c.last = x": "state",
    "\uff45val('1')": "eval_exec",
    "import builtins as b\nb.exec('1')": "eval_exec",
    "import pickle\npickle.loads(b'')": "serialized_payload",
    "d = '" + "QUJD" * 500 + "'": "serialized_payload",
}


@pytest.mark.parametrize("kernel", PYTHON, ids=lambda text: ascii(text)[:60])
def test_a_kind_is_seen_however_it_is_written(kernel: str) -> None:
    assert PYTHON[kernel] in kinds(kernel + ENTRY)


QUIET = (
    "import os\nx = os.path.join('a', 'b')",
    "# os.fork()\n'socket.socket()'",
    '"""open("/etc/passwd"); eval(x)"""',
    "def g(open):\n    pass",
    "import socket",
    "import subprocess\ndef g():\n    raise subprocess.CalledProcessError(1, 'x')",
    "import torch\nx = torch.empty(3)\ny = torch.empty_like(x)",
    "def g(x):\n    c = {}\n    c[x] = 1\n    return c",
    "import time\nif __name__ == '__main__':\n    print(time.time())",
    "try:\n    import triton\nexcept ImportError:\n    triton = None",
    "def g(x):\n    try:\n        return k(x)\n    except ValueError as e:\n        raise RuntimeError from e",
)


@pytest.mark.parametrize("kernel", QUIET, ids=lambda text: ascii(text)[:60])
def test_what_only_looks_alike_isnt_seen(kernel: str) -> None:
    assert kinds(kernel + ENTRY) == set()


def test_a_main_block_counts_where_the_name_is_changed() -> None:
    block = "import time\nif __name__ == '__main__':\n    time.time()"
    assert "clock" in kinds(f"__name__ = '__main__'\n{block}{ENTRY}")


CPP = {
    "static int counter = 0; ++counter;": {"state"},
    "static const float scale = 2; (void)scale;": set(),
    "std::thread t([]{}); t.join();": {"threads"},
    "auto n = std::thread::hardware_concurrency(); (void)n;": set(),
    "#pragma omp parallel for schedule(static)\nfor (int i = 0; i < 3; ++i) {}": set(),
    "fork();": {"processes"},
    "worker.fork();": set(),
    "// fork();\n/* system(0); */ const char* s = \"fork()\"; const char* r = R\"x(fork())x\";": set(),
    "getenv(\"X\");": {"environment"},
    "at::matmul(a, b);": {"vendor_fallback"},
    "cublasSgemm(h);": {"vendor_fallback"},
    "auto now = std::chrono::steady_clock::now(); (void)now;": {"clock"},
    "asm(\"nop\");": {"foreign_code"},
    "dlopen(\"x\", 1);": {"foreign_code"},
}  # fmt: skip


@pytest.mark.parametrize("body", CPP)
def test_cpp_is_read_by_tokens(body: str) -> None:
    text = f'CPP_SOURCE = r"""\nextern "C" void f() {{\n{body}\n}}\n"""\n'
    assert kinds(text + ENTRY, "cpp", cpp=True) == CPP[body]


CUDA = {
    "__device__ int counter;": {"state"},
    "__device__ __align__(16) float table[4] = {1, 2, 3, 4};": {"state"},
    "__managed__ int counter{3};": {"state"},
    "static __device__ const float half = 0.5f;\n__constant__ float w[8];": set(),
    "__device__ float twice(float x);\n__host__ __device__ inline float f(float x) { return x * 2; }": set(),
    "#define HD __host__ __device__\nstruct Pair { float a, b; };": set(),
    '__device__ int lane() { int r; asm volatile("mov.u32 %0, %laneid;" : "=r"(r)); return r; }': set(),
    '__global__ void k(long* p) { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(*p)); }': {"clock"},
    "__global__ void __launch_bounds__(256) k(long* p) { *p = clock64(); }": {"clock"},
    "__global__ void k(int* p) { if (*p << 3) child<<<1, 1>>>(p); }": {"threads"},
    '__global__ void k(int* p) {}\nextern "C" void f(int* p) { k<<<1, 1>>>(p); }': set(),
    "__global__ void k(int* p) { static int seen; *p = ++seen; }": {"state"},
    'extern "C" void f() { asm("syscall"); }': {"foreign_code"},
    'extern "C" void f() { fork(); }': {"processes"},
    'extern "C" void f(void* p) { cuModuleLoadData(0, p); }': {"foreign_code"},
    "#include <cooperative_groups.h>\n#include <cuda_bf16.h>": set(),
}


@pytest.mark.parametrize("text", CUDA)
def test_cuda_is_read_by_tokens(text: str) -> None:
    kernel = f'CUDA_SOURCE = r"""\n{text}\n"""\n'
    assert kinds(kernel + ENTRY, "cuda", cpp=True) == CUDA[text]


def test_the_library_that_forge_built_isnt_foreign_to_cuda() -> None:
    text = "import ctypes\nfrom pathlib import Path\nl = ctypes.CDLL(str(Path(__file__).with_name('libkernel.so')))\n"
    assert kinds(text + "def f(x):\n    return l.f(x)", "cuda") == set()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["__device__ ", "__device__ (", "__global__ f(){", "__device__ x;"])
def test_device_code_without_an_end_is_read_in_bounded_time(text: str) -> None:
    kernel = f'CUDA_SOURCE = """{text * (FILE_LIMIT_BYTES // len(text) - 20)}"""{ENTRY}'
    began_s = time.process_time()
    seen(kernel, "cuda", cpp=True)
    assert time.process_time() - began_s < 3 * limit_s()


def test_a_cpp_function_of_its_own_by_a_known_name_isnt_taken_for_it() -> None:
    text = 'CPP_SOURCE = r"""\nstatic void fork(int n) {}\nextern "C" void f() { fork(3); }\n"""\n'
    assert kinds(text + ENTRY, "cpp", cpp=True) == set()


DECLARED = {
    'extern "C" int system(const char*);\nint now = system("true");': {"processes"},
    'extern "C" { void* dlopen(const char*, int); }\nvoid* all = dlopen(0, 1);': {"foreign_code"},
    'extern "C" int PyRun_SimpleString(const char*);\nauto run = PyRun_SimpleString;': {"frames"},
    "#include <Python.h>\nPyObject* all = PyImport_GetModuleDict();": {"frames"},
    "static float scale(float);\nstatic float scale(float x) { return x; }": set(),
    "static void fork(int n);\nstatic void fork(int n) { }": set(),
    "struct Pool { void fork() const noexcept { } };": set(),
}


@pytest.mark.parametrize("text", DECLARED)
def test_a_function_that_cpp_text_declares_and_doesnt_define_is_a_librarys(text: str) -> None:
    assert kinds(f"CPP_SOURCE = r'''\n{text}\n'''{ENTRY}", "cpp", cpp=True) == DECLARED[text]


@pytest.mark.parametrize(
    ("header", "kind"),
    [("<sys/socket.h>", "network"), ('"/proc/1/environ"', "files"), ("<cutlass/gemm.h>", "foreign_kernel")],
)
def test_headers_are_seen(header: str, kind: str) -> None:
    assert kinds(f"CPP_SOURCE = r'''\n#include {header}\n'''{ENTRY}", "cpp", cpp=True) == {kind}


def test_a_place_in_cpp_is_the_place_in_the_file() -> None:
    text = f'X = 1\nCPP_SOURCE = r"""\n#include <cmath>\nint g() {{\n  return fork();\n}}\n"""{ENTRY}'
    (found,) = seen(text, "cpp", cpp=True)
    assert (found.line, found.column, found.end_column) == (5, 10, 14)
    assert text.split("\n")[4][9:13] == "fork" == found.untrusted_excerpt


def test_the_library_that_forge_built_isnt_foreign_and_any_other_is() -> None:
    beside = "import ctypes\nfrom pathlib import Path\nHERE = Path(__file__).parent\n"
    for path in (
        "Path(__file__).with_name('libkernel.so')",
        "str(HERE / 'libkernel.so')",
        "HERE.joinpath('libkernel.so')",
    ):
        assert kinds(f"{beside}l = ctypes.CDLL({path})\ndef f(x):\n    return l.f(x)", "cpp") == set(), path
    for path in (
        "HERE / '..' / 'libkernel.so'",
        "'libkernel.so'",
        "HERE / 'libother.so'",
        "str(HERE) + 'libkernel.so' + 'x'",
    ):
        assert kinds(f"{beside}l = ctypes.CDLL({path})\ndef f(x):\n    return l.f(x)", "cpp") == {"foreign_code"}, (
            path
        )


@given(st.text(max_size=300))
@example("x = " + "-" * 900 + "1" + ENTRY)
@example("x=" + "+".join(["'a'"] * 900) + ENTRY)
@example("getattr(os, " + "+".join(["'a'"] * 900) + ")" + ENTRY)
@example("x = os" + ".path" * 900 + ENTRY)
@example("a = b\nb = a\na.c = 1\nimport a" + ENTRY)
@example("x = " + "getattr(" * 90 + "os" + ", 'x')" * 90 + ENTRY)
@example("CPP_SOURCE = '#include \"' " + ENTRY)
@example("if 1:\n" + "".join(" " * n + "if 1:\n" for n in range(1, 90)) + " " * 90 + "pass\n" + ENTRY)
def test_triage_never_raises_on_any_text(kernel: str) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(kernel)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for language in ("cpp", "triton", "torch"):
        found = triage(
            tree, kernel, metadata=metadata(language, cpp=True), language=find_language(language), entry_point="f"
        )
        for one in found.findings:
            assert one.untrusted_excerpt.isprintable()


@given(st.text(alphabet=st.sampled_from(list("\"'/*\\\n#R()x ;{}ab1=:")), max_size=200))
def test_tokens_cover_any_cpp_text_in_order(text: str) -> None:
    end = 0
    for token in tokens(text):
        assert token.offset >= end
        assert text.startswith(token.text, token.offset) or token.kind == "directive"
        end = token.offset + 1


HUGE = {
    "names": "x = [" + "a," * 260_000,
    "calls": "import os\n" + "os.fork()\n" * 50_000,
    "one long line of calls": "import os\nx = [" + "os.fork()," * 50_000,
    "functions": "c = {}\n" + "def g(x):\n c[x] = 1\n" * 24_000,
    "assignments": "".join(f"a{n} = a{n + 1}\n" for n in range(30_000)),
    "flows": "import ctypes\nl = ctypes.CDLL('x')\ndef f(x):\n"
    + "".join(f" a{n} = a{n + 1}\n" for n in range(15_000))
    + " l.g(a0)\n" * 5000 + " return a1\n",
    "wide line": "x = '" + "é" * 100_000 + "'; import os; " + "os.fork(); " * 20_000,
    "cpp quotes": "CPP_SOURCE = r'''" + '#include "x"' * 40_000 + "'''",
    "cpp directives": "CPP_SOURCE = r'''" + "#if " * 120_000 + "'''",
    "cpp braces": "CPP_SOURCE = r'''" + "f(){static int x;" * 25_000 + "'''",
    "cpp openings": "CPP_SOURCE = r'''" + "/*" * 10 + "R\"a(" * 100_000 + "'''",
    "strings": "x = [" + "'socket'," * 50_000,
    "decorators": "import triton\n" + "@triton.jit\ndef k():\n k()\n" * 18_000,
}  # fmt: skip


@cache
def limit_s() -> float:
    began_s = time.process_time()
    ast.parse("x = f(a, 1)\n" * (FILE_LIMIT_BYTES // 12))
    return MOST_PARSES * (time.process_time() - began_s)


@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE)
def test_the_largest_file_that_is_taken_is_read_in_bounded_time(name: str) -> None:
    kernel = HUGE[name]
    closing = "]" if kernel.startswith("x = [") or "x = [" in kernel[:20] else ""
    kernel = (kernel + closing + ENTRY) if not kernel.endswith("]") else kernel + ENTRY
    assert len(kernel.encode()) <= FILE_LIMIT_BYTES * 2
    languages: tuple[LanguageName, ...] = ("cpp", "triton")
    tree = ast.parse(kernel)
    for language in languages:
        described = metadata(language, cpp=True)
        began_s = time.process_time()
        found = triage(tree, kernel, metadata=described, language=find_language(language), entry_point="f")
        assert time.process_time() - began_s < limit_s()
        assert all(sum(one.kind == kind for one in found.findings) <= MOST_PLACES for kind in get_args(FindingKind))


def test_places_that_arent_listed_are_counted() -> None:
    found = seen("import os\n" + "os.fork()\n" * 50 + ENTRY)
    assert len(found) == MOST_PLACES
    assert sum(1 + one.further for one in found) == 50


def test_excerpts_show_no_control_characters() -> None:
    (found,) = seen("import os\nos.getenv('\u202e\x1b[2J')" + ENTRY)
    assert found.untrusted_excerpt == "os.getenv"
    (payload,) = seen("x = b'\\x1b' + b'" + "A" * 2000 + "\u202e'".replace("\u202e", "") + ENTRY)
    assert payload.untrusted_excerpt.isprintable()


def test_every_kind_says_why_it_matters() -> None:
    assert set(WHY) == set(get_args(FindingKind))


def test_the_order_of_statements_never_matters_to_what_is_kept() -> None:
    rng = random.Random(5)
    functions = [f"def g{n}(x):\n    c[x] = {n}\n" for n in range(5)]
    expected = kinds("c = {}\n" + "".join(functions) + ENTRY)
    rng.shuffle(functions)
    assert kinds("".join(functions) + "c = {}\n" + ENTRY) == expected == {"state"}
