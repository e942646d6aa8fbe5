"""The author sees the compiler's and the interpreter's words, and a hostile log gets nothing by them."""

import json

import pytest

from forge.lab.log_excerpt import MOST_COLUMNS, MOST_LINES, LogExcerpt, excerpt

HARNESS = """Traceback (most recent call last):
  File "/stage/guest/__main__.py", line 135, in _call
    run.run(function, served.layout, command)
  File "/stage/guest/run.py", line 184, in _run_once
    returned = function(*on_device(layout, index), *scalars)
"""
KERNEL = "import torch\n\n\ndef kernel(x):\n    return x.view(3, 7)\n"
FILES = {"kernel.py": KERNEL.encode()}
RAISED = HARNESS + (
    '  File "/stage/candidate/kernel.py", line 5, in kernel\n    return x.view(3, 7)\n'
    "           ^^^^^^^^^^^^\nRuntimeError: shape '[3, 7]' is invalid for input of size 1024\n"
)
CPP = 'import ctypes\n\nCPP_SOURCE = r"""\n#include <cmath>\nextern "C" void kernel(flot* x) {}\n"""\n'
CPP_FILES = {
    "kernel.py": CPP.encode(),
    "metadata.json": json.dumps({"name": "a", "op": "rmsnorm", "language": "cpp", "cpp": {}}).encode(),
}
GCC = """/scratch/kernel.cpp:3:24: error: variable or field 'kernel' declared void
    3 | extern "C" void kernel(flot* x) {}
      |                        ^~~~
Traceback (most recent call last):
  File "/stage/guest/build.py", line 22, in main
    files: list[Path] = language.build(setup.body)
  File "/usr/lib/python3.11/subprocess.py", line 571, in run
    raise CalledProcessError(retcode, process.args,
subprocess.CalledProcessError: Command '['/usr/bin/env', 'g++']' returned non-zero exit status 1.
"""


def found(log: str, files: dict[str, bytes] = FILES, *, withheld: bool = False) -> LogExcerpt:
    said = excerpt(log, files=files, withheld=withheld)
    assert said is not None
    return said


def test_an_exception_is_told_with_file_line_and_source_and_without_the_harness() -> None:
    said = found(RAISED)
    assert (said.file, said.line, said.source) == ("kernel.py", 5, "return x.view(3, 7)")
    assert said.untrusted_error == "RuntimeError: shape '[3, 7]' is invalid for input of size 1024"
    text = "\n".join(said.untrusted_lines)
    assert "_run_once" not in text
    assert "/stage" not in text
    assert 'File "kernel.py", line 5, in kernel' in text


CHAINED = (
    """Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/triton/runtime/interpreter.py", line 1511, in __call__
    self.fn(**args)
  File "/stage/candidate/kernel.py", line 5, in kernel
    return x.view(3, 7)
  File "/usr/lib/python3.11/site-packages/triton/language/semantic.py", line 623, in arange
    raise ValueError("a power of 2")
ValueError: a power of 2

The above exception was the direct cause of the following exception:

"""
    + HARNESS
    + """  File "/stage/candidate/kernel.py", line 1, in launch
    import torch
  File "/usr/lib/python3.11/site-packages/triton/runtime/interpreter.py", line 1515, in __call__
    raise InterpreterError(repr(e)) from e
triton.runtime.errors.InterpreterError: ValueError('a power of 2')
"""
)


def test_of_a_chain_of_exceptions_the_one_that_caused_the_others_is_told() -> None:
    said = found(CHAINED)
    assert (said.line, said.untrusted_error) == (5, "ValueError: a power of 2")
    assert not any("InterpreterError" in line for line in said.untrusted_lines)
    assert said.lines_left_out == 6
    withheld = found(CHAINED, withheld=True)
    assert (withheld.line, withheld.untrusted_error) == (5, "ValueError")


def test_a_chain_that_began_elsewhere_is_told_by_its_end() -> None:
    elsewhere = CHAINED.replace("/stage/candidate/kernel.py", "/usr/lib/python3.11/site-packages/other.py", 1)
    said = found(elsewhere)
    assert (said.line, said.untrusted_error) == (
        1,
        "triton.runtime.errors.InterpreterError: ValueError('a power of 2')",
    )


def test_frames_of_the_guest_alone_leave_the_exception() -> None:
    said = found(HARNESS + "TypeError: kernel() takes 0 positional arguments but 1 was given\n")
    assert said.untrusted_lines == ("TypeError: kernel() takes 0 positional arguments but 1 was given",)
    assert said.file is None


def test_a_compilers_error_is_placed_in_kernel_py() -> None:
    said = found(GCC, CPP_FILES)
    assert (said.file, said.line) == ("kernel.py", 5)
    assert said.source == 'extern "C" void kernel(flot* x) {}'
    assert said.untrusted_error == "error: variable or field 'kernel' declared void"
    assert said.untrusted_lines[0].startswith("kernel.cpp:3:24: error: ")
    assert not any("CalledProcessError" in line or "pyenv" in line for line in said.untrusted_lines)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ('/scratch/kernel.cu(2): error: identifier "flot" is undefined', 4),
        ("/scratch/kernel.cpp:2:10: fatal error: nothing.h: No such file or directory", 4),
    ],
)
def test_every_compilers_form_is_read(line: str, number: int) -> None:
    said = found(line, CPP_FILES)
    assert (said.file, said.line) == ("kernel.py", number)


def test_after_held_out_shapes_only_place_and_type_are_told() -> None:
    leaking = RAISED.replace("shape '[3, 7]' is invalid", "secret is 11 x 4097,")
    said = found(leaking, withheld=True)
    assert (said.file, said.line, said.untrusted_error, said.untrusted_lines) == ("kernel.py", 5, "RuntimeError", ())
    named = found(leaking.replace("RuntimeError", "Secret_11_4097"), withheld=True)
    assert named.untrusted_error is None
    assert "4097" not in json.dumps([said.document(), named.document()])


def test_a_hostile_log_is_escaped_cut_and_without_places_of_the_machine() -> None:
    hostile = (
        "\x1b[2J\u202eaccepted\x00\n" + "error: no run\n" * 5000 + "x" * 10**6 + "\n/home/ada/secret/key.pem: read\n"
    )
    said = found(hostile)
    assert len(said.untrusted_lines) <= MOST_LINES
    assert all(len(line) <= MOST_COLUMNS and line.isprintable() for line in said.untrusted_lines)
    assert said.untrusted_lines[-1] == "key.pem: read"
    assert said.lines_left_out > 0
    escaped = found("\x1b[2J\u202eok\n").untrusted_lines
    assert escaped == ("\\x1b[2J\\u202eok",)


def test_a_line_that_no_file_has_shows_no_source() -> None:
    forged = 'Traceback (most recent call last):\n  File "kernel.py", line 9999999, in kernel\nValueError: no\n'
    said = found(forged)
    assert (said.line, said.source) == (9999999, None)
    outside = found('Traceback (most recent call last):\n  File "/etc/passwd", line 1, in x\nValueError: no\n')
    assert (outside.file, outside.source) == (None, None)


def test_an_empty_log_says_nothing() -> None:
    assert excerpt("", files=FILES, withheld=False) is None
    assert excerpt(" \n\n", files=FILES, withheld=False) is None


def test_a_missing_module_is_answered_with_which_modules_there_are_and_no_name_to_install() -> None:
    log = 'Traceback (most recent call last):\n  File "/guest/kernel.py", line 2, in <module>\n    import einops\n'
    found = excerpt(f"{log}ModuleNotFoundError: No module named 'einops'\n", files=FILES, withheld=False)
    assert found is not None
    note = found.document()["note"]
    assert isinstance(note, str)
    assert "the modules of the Python that runs forge" in note
    assert "einops" not in note
    submitted = excerpt(f"{log}ModuleNotFoundError: No module named 'reference'\n", files=FILES, withheld=False)
    assert submitted is not None
    beside = str(submitted.document()["note"])
    assert "copy what it needs" in beside
    assert "install" not in beside
    other = excerpt(f"{log}ImportError: no\n", files=FILES, withheld=False)
    assert other is not None
    assert other.document()["note"] is None


@pytest.mark.parametrize(
    ("source", "raised", "noted"),
    [
        ("assert x.is_cuda and w.is_cuda", "AssertionError", True),
        ("assert x.is_cuda", "AssertionError: Tensors must be on CUDA.", True),
        ("raise ValueError('no')", "ValueError: Input must be a CUDA tensor", True),
        ("x = x.cuda()", "AssertionError: Torch not compiled with CUDA enabled", True),
        ("n = torch.cuda.device_count()", "RuntimeError: No CUDA GPUs are available", True),
        ("d = driver.active", "RuntimeError: 0 active drivers ([]). There should only be one.", True),
        ("assert x.is_contiguous()", "AssertionError", False),
        ("run(x)", "RuntimeError: CUDA error: misaligned address", False),
    ],
)
def test_an_exception_for_lack_of_a_gpu_is_answered_with_what_to_guard(source: str, raised: str, noted: bool) -> None:
    files = {"kernel.py": f"def kernel(x, w):\n    {source}\n".encode()}
    log = (
        f'Traceback (most recent call last):\n  File "/guest/kernel.py", line 2, in kernel\n    {source}\n{raised}\n'
    )
    note = found(log, files).document()["note"]
    assert ("with `x.is_cuda`, don't assert it" in str(note)) == noted


def test_a_refused_write_says_where_a_candidate_may_write() -> None:
    log = 'Traceback (most recent call last):\n  File "/guest/kernel.py", line 2, in <module>\n    open(path, "w")\n'
    note = found(f"{log}OSError: [Errno 30] Read-only file system: 'ext.cpp'\n").document()["note"]
    assert "tempfile.gettempdir()" in str(note)


def test_what_bindings_say_of_leaks_at_the_end_of_a_process_hides_nothing() -> None:
    leaks = "".join(f' - leaked function "f{place}"\n' for place in range(MOST_LINES))
    log = f"1 failed in 0.09s\nnanobind: leaked 514 functions!\n{leaks} - ... skipped remainder\n"
    said = found(f"{log}See https://nanobind.readthedocs.io/en/latest/refleaks.html\n")
    assert (said.untrusted_lines, said.lines_left_out) == (("1 failed in 0.09s",), 0)
