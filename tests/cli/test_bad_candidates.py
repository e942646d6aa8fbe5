"""Folders that are no candidate: refused at the door by name, recorded, and nothing of them kept."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.asking import HONEST, ask, create_task, files, history, ledger_stands


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The honest example, to be spoilt."""
    return Path(shutil.copytree(HONEST, tmp_path / "candidate", ignore=shutil.ignore_patterns("__pycache__")))


def _write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _replace(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return spoil


BAD_FOLDERS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "missing file": (lambda folder: (folder / "bench.py").unlink(), "bench.py", "missing"),
    "no metadata": (lambda folder: (folder / "metadata.json").unlink(), "metadata.json", "missing"),
    "extra file": (_write("helper.py", b"x = 1"), "helper.py", "unexpected"),
    "extra hidden file": (_write(".env", b"x = 1"), ".env", "unexpected"),
    "extra folder": (lambda folder: (folder / "data").mkdir(), "data", "unexpected"),
    "name of undecodable bytes": (_write("\udcff\x1b[2J.py", b"x"), "udcff", "unexpected"),
    "oversized file": (_write("bench.py", b"#" * (512 * 1024 + 1)), "bench.py", "524288 bytes"),
    "symlink to a file": (
        _replace("reference.py", lambda path: path.symlink_to("/etc/hostname")),
        "reference.py",
        "put the file itself there",
    ),
    "symlink to nothing": (_replace("kernel.py", lambda path: path.symlink_to("nowhere")), "kernel.py", "a link"),
    "fifo": (_replace("kernel.py", lambda path: os.mkfifo(path)), "kernel.py", "not a regular file"),
    "directory for a file": (_replace("bench.py", lambda path: path.mkdir()), "bench.py", "regular file"),
    "not utf-8": (_write("kernel.py", b"x = '\xff'"), "kernel.py", "not UTF-8 (byte 5)"),
    "nul": (_write("kernel.py", b"x = 1\0"), "kernel.py", "NUL"),
    "empty file": (_write("test_correctness.py", b""), "test_correctness.py", "empty"),
    "blank file": (_write("reference.py", b" \n\t\n"), "reference.py", "empty"),
}
BASE = {"name": "a kernel", "op": "fused_add_rmsnorm", "language": "cpp"}
BAD_METADATA: dict[str, tuple[bytes | dict[str, object], str]] = {
    "not json": (b"{name: 1}", "not JSON"),
    "two documents": (b"{} {}", "not JSON"),
    "a string": (b'"kernel"', "expected an object, got str 'kernel'"),
    "a number": (b"7", "expected an object, got int 7"),
    "null": (b"null", "expected an object, got NoneType"),
    "a list": (b"[1]", "expected an object, got list [1]"),
    "deep nesting": (b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
    "nan": (b'{"name": NaN}', "not JSON"),
    "lone surrogate": (b'{"name": "\\ud800"}', "not JSON"),
    "missing keys": ({"op": "fused_add_rmsnorm", "language": "cpp"}, "name: missing, expected name, op, language"),
    "unknown key": (
        {**BASE, "trust_me": True},
        "trust_me: got True, expected no field but name, op, language, entry_point",
    ),
    "unknown key of a megabyte": ({**BASE, "x" * 300_000: 1}, "xxx"),
    "unknown key that clears the screen": ({**BASE, "\x1b[2J\n": 1}, r"\x1b[2J\n"),
    "a field given twice": (
        b'{"name": "a", "op": "fused_add_rmsnorm", "language": "cpp", "language": "cuda"}',
        "'language' is given more than once",
    ),
    "a field of a field given twice": (
        b'{"name": "a", "op": "fused_add_rmsnorm", "language": "cpp", "cpp": {"flags": [], "flags": ["-O3"]}}',
        "'flags' is given more than once",
    ),
    "an integer of thousands of digits": (b'{"name": 1' + b"0" * 5000 + b"}", "metadata.json"),
    "nested as deep as a reader goes": (b'{"name": ' + b"[" * 1000 + b"]" * 1000 + b"}", "metadata.json"),
    "huge integer": (b'{"name": 1' + b"0" * 400 + b"}", "metadata.json"),
    "a number for the name": ({**BASE, "name": 10**18}, "name: got 1000000000000000000, expected text"),
    "empty name": ({**BASE, "name": ""}, "name: got '', expected at least 1 character"),
    "name with an escape": ({**BASE, "name": "a\x1b[2Jb"}, "name: "),
    "another op": ({**BASE, "op": "rmsnorm"}, "op is 'rmsnorm', the task's is 'fused_add_rmsnorm'"),
    "another language": ({**BASE, "language": "torch"}, "language is 'torch', the task's is 'cpp'"),
    "unknown language": (
        {**BASE, "language": "basic"},
        "language: got 'basic', expected 'cpp', 'cuda', 'triton' or 'torch'",
    ),
    "language by its usual name": (
        {**BASE, "language": "c++"},
        "language: got 'c++', expected 'cpp', 'cuda', 'triton' or 'torch'",
    ),
    "entry point as path": ({**BASE, "entry_point": "os.system"}, "entry_point: "),
    "another kernel file": (
        {**BASE, "kernel_file": "../../etc/passwd"},
        "kernel_file: got '../../etc/passwd', expected 'kernel.py'",
    ),
    "claim of a string": (
        {**BASE, "claims": [{"metric": "speedup", "value": "much"}]},
        "claims.0.value: got 'much', expected a number",
    ),
    "negative claim": (
        {**BASE, "claims": [{"metric": "speedup", "value": -2}]},
        "claims.0.value: got -2, expected more than 0",
    ),
    "claim against a megabyte": (
        {**BASE, "claims": [{"metric": "speedup", "value": 2, "baseline": "x" * 100_000}]},
        "...xxx",
    ),
    "too many claims": ({**BASE, "claims": [{"metric": "speedup", "value": 2}] * 21}, "expected at most 20 of them"),
    "too many parents": ({**BASE, "parents": ["0" * 64] * 1000}, "parents: "),
    "parent that is no digest": (
        {**BASE, "parents": ["main"]},
        "parents.0: got 'main', expected text of the form ^[0-9a-f]{64}$",
    ),
    "flag that loads a plugin": (
        {**BASE, "cpp": {"flags": ["-fplugin=x.so"]}},
        "cpp.flags.0: got '-fplugin=x.so', expected one of -O0 to -O3",
    ),
    "flag that names the output": ({**BASE, "cpp": {"flags": ["-o", "/etc/passwd"]}}, "cpp.flags.0: "),
    "flag that reads a file": ({**BASE, "cpp": {"flags": ["-O3", "@/etc/shadow"]}}, "cpp.flags.1: "),
    "flag with a tail": ({**BASE, "cpp": {"flags": ["-O3\n-fplugin=x"]}}, "cpp.flags.0: "),
    "flag that includes": ({**BASE, "cpp": {"flags": ["-include/etc/passwd"]}}, "cpp.flags.0: "),
}


def _refused_at_the_door(home: Path, folder: Path) -> str:
    """Submit; the refusal is recorded, says why, and leaves the run open with nothing of the candidate in it."""
    before = files(home)
    answer = ask("submit", "last", folder, "--home", home, "--json")
    assert answer.status == 1, answer
    event = history(home)[-1]
    assert event["type"] == "CandidateRejected"
    assert event["payload"]["stage"] == "submit"
    assert event["payload"]["reason"] == answer.document["reason"]
    assert answer.document["reason"]["code"] == "BAD_SUBMISSION"
    (run,) = ask("run", "list", "--home", home, "--json").document
    assert run["state"] == "prompt_ready"
    assert files(home) - before == {f"forge_runs/.tmp-{run['run_id']}/submission_report.json"}
    assert ledger_stands(home)
    message: str = answer.document["reason"]["message"]
    assert len(message) < 600
    assert "\x1b" not in message + ask("submit", "last", folder, "--home", home).out
    return message


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_a_folder_that_is_no_candidate_is_refused_by_the_files_name(case: str, home: Path, folder: Path) -> None:
    spoil, name, why = BAD_FOLDERS[case]
    spoil(folder)
    message = _refused_at_the_door(home, folder)
    assert name in message
    assert why in message


@pytest.mark.parametrize("case", BAD_METADATA)
def test_metadata_that_does_not_follow_the_schema_is_refused(case: str, home: Path, folder: Path) -> None:
    content, why = BAD_METADATA[case]
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / "metadata.json").write_bytes(raw)
    message = _refused_at_the_door(home, folder)
    assert message.startswith("metadata.json: ")
    assert why in message


def test_a_claim_that_is_not_a_number_is_refused(home: Path, folder: Path) -> None:
    for number in ("NaN", "Infinity", "1e999"):
        document = {**BASE, "claims": [{"metric": "speedup", "value": 0}]}
        (folder / "metadata.json").write_text(json.dumps(document).replace('"value": 0', f'"value": {number}'))
        assert ask("submit", "last", folder, "--home", home, "--json").document["verdict"] == "rejected"
    assert {one["type"] for one in history(home)[-3:]} == {"CandidateRejected"}


def test_cpp_is_refused_for_a_task_in_another_language(home: Path, folder: Path) -> None:
    create_task(home, language="torch")
    document = {**BASE, "language": "torch", "cpp": {"source": "CPP_SOURCE"}}
    (folder / "metadata.json").write_text(json.dumps(document))
    answer = ask("submit", "last", folder, "--home", home, "--json")
    assert answer.status == 1
    assert "cpp is only for the language cpp, the task's is 'torch'" in answer.document["reason"]["message"]


def test_the_longest_metadata_that_the_schema_allows_is_taken_in(home: Path, folder: Path) -> None:
    line = "é" * 100
    document = {
        **BASE,
        **dict.fromkeys(("name", "author"), line),
        "hypothesis": "\x01" * 2000,
        "parents": ["0" * 64] * 16,
        "claims": [{"metric": "speedup", "value": 1.7976931348623157e308, "baseline": line}] * 20,
        "tolerance": {str(number): 0.1 for number in range(5000)},
    }
    (folder / "metadata.json").write_text(json.dumps(document))
    assert ask("submit", "last", folder, "--home", home, "--json").status == 0
    assert ledger_stands(home)


@pytest.mark.parametrize("author", ["\udcff", "a\x1b[2Jb", "x" * 1000, "two\nlines"], ids=ascii)
def test_an_author_that_is_no_line_of_text_is_bad_input(author: str, home: Path) -> None:
    events = history(home)
    answer = ask("submit", "last", HONEST, "--author", author, "--home", home)
    assert answer.status == 2
    assert ("bad argument" if author == "\udcff" else "bad author") in answer.error
    assert history(home) == events


def test_a_candidate_that_is_no_folder_is_bad_input(home: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", HONEST / "kernel.py"):
        answer = ask("submit", "last", place, "--home", home)
        assert answer.status == 2
        assert f"{str(place)!r} is not a folder: expected one with kernel.py" in answer.error
