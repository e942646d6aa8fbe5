"""One kernel's promotion, checked by a stranger: with the artifact, the proof and the public key alone."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.ledger.signatures.signing import SigningKey, signed_note
from tests.app.prepared import benchmarked_run
from tests.cli.asking import QUICK_POLICY, Answer, ask, create_task

EVIL_SEED = bytes([66]) * 32


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a stranger gets: kernel.py, the proof, the key; and what was built, and kernel.txt."""
    home, folder = tmp_path_factory.mktemp("log") / "home", tmp_path_factory.mktemp("given")
    assert ask("init", home).status == 0
    (home / "policy.toml").write_text(QUICK_POLICY)
    create_task(home)
    benchmarked_run(home)
    assert ask("promote", "last", "--home", home).status == 0
    (entry,) = ask("kernel", "list", "--home", home, "--json").document
    kernel_id = entry["kernel_id"]
    proof = folder / "kernel.tlog-proof"
    made = ask("ledger", "prove", kernel_id, "--out", proof, "--home", home, "--json")
    assert made.status == 0, made
    for name in ("kernel.py", "bench.py"):
        shutil.copy(home / "kernel_registry" / "kernels" / kernel_id / name, folder / name)
    shutil.copy(home / "kernel_registry" / "ledger.vkey", folder / "ledger.vkey")
    (folder / "kernel.txt").write_text(kernel_id)
    shutil.rmtree(home)
    return folder


def check(given: Path, **changed: object) -> Answer:
    named = {"proof": given / "kernel.tlog-proof", "artifact": given / "kernel.py", "key": given / "ledger.vkey"}
    named |= changed
    extra = ("--kernel", named["kernel"]) if "kernel" in named else ()
    return ask(
        "verify-proof", named["proof"], "--artifact", named["artifact"], "--key", named["key"], *extra, "--json"
    )


def fails(answer: Answer, status: int) -> None:
    """Check that a --json answer is an error document alone, with the exit status that the process had."""
    assert answer.status == status, answer
    assert list(answer.document) == ["error"]
    assert answer.document["error"]["exit_status"] == status
    assert answer.document["error"]["message"] in answer.error


def lines(given: Path) -> list[str]:
    return (given / "kernel.tlog-proof").read_text().split("\n")


def test_it_holds_without_the_workspace_that_made_it(given: Path) -> None:
    answer = check(given, kernel=(given / "kernel.txt").read_text())
    assert answer.status == 0, answer
    found = answer.document
    assert found["kernel_id"] == (given / "kernel.txt").read_text()
    assert found["file"] == "kernel.py"
    assert found["size"] >= found["seq"] > 1
    assert check(given, key=(given / "ledger.vkey").read_text().strip()).document == found


def test_the_proof_has_the_form_that_others_read(given: Path) -> None:
    head, _, note = (given / "kernel.tlog-proof").read_text().partition("\n\n")
    first, extra, index, *path = head.split("\n")
    assert first == "c2sp.org/tlog-proof@v1"
    assert extra.startswith("extra ")
    assert index.startswith("index ")
    assert all(len(base64.b64decode(step, validate=True)) == 32 for step in path)
    origin, size, root, blank, *_ = note.split("\n")
    assert origin == (given / "ledger.vkey").read_text().split("+")[0]
    assert int(size) > int(index.removeprefix("index "))
    assert (len(base64.b64decode(root)), blank) == (32, "")


def altered(given: Path, change: Callable[[dict[str, str]], None]) -> str:
    """The proof with its event changed."""
    text = lines(given)
    extra = json.loads(base64.b64decode(text[1].removeprefix("extra ")))
    change(extra)
    text[1] = "extra " + base64.b64encode(json.dumps(extra).encode()).decode()
    return "\n".join(text)


def resigned(given: Path) -> str:
    """The proof with its checkpoint signed by a stranger's key of the same name."""
    head, _, note = (given / "kernel.tlog-proof").read_text().partition("\n\n")
    text = note.split("\n\n")[0] + "\n"
    return head + "\n\n" + signed_note(text, [SigningKey(text.split("\n")[0], EVIL_SEED)])


def another_origin(given: Path) -> str:
    head, _, note = (given / "kernel.tlog-proof").read_text().partition("\n\n")
    return head + "\n\n" + note.replace(note.split("\n")[0], "other/log")


def _sub(name: str, old: str, new: str) -> Callable[[Path], str]:
    def change(extra: dict[str, str]) -> None:
        assert old in extra[name]
        extra[name] = extra[name].replace(old, new)

    return lambda given: altered(given, change)


def _line(number: int, change: Callable[[str], str]) -> Callable[[Path], str]:
    def made(given: Path) -> str:
        text = lines(given)
        text[number] = change(text[number])
        return "\n".join(text)

    return made


REFUSED: dict[str, tuple[Callable[[Path], str], str]] = {
    "altered envelope": (_sub("envelope", "system:gate", "system:gats"), "altered"),
    "altered payload": (_sub("payload", '"version":1', '"version":2'), "altered"),
    "another kernel id in the payload": (_sub("payload", "_v1", "_v2"), "altered"),
    "altered place": (_line(2, lambda line: f"index {int(line.split()[1]) - 1}"), "altered"),
    "a place beyond the log": (_line(2, lambda _: "index 100000"), "altered"),
    "altered step": (_line(3, lambda _: base64.b64encode(bytes(32)).decode()), "altered"),
    "a step too many": (_line(3, lambda line: f"{line}\n{line}"), "altered"),
    "another size": (lambda given: _text(given, -5, lambda line: str(int(line) + 1)), "signature"),
    "another root": (lambda given: _text(given, -4, lambda _: base64.b64encode(bytes(32)).decode()), "signature"),
    "signed by another key": (resigned, "signed by"),
    "another origin": (another_origin, "is of the log 'other/log'"),
}


def _text(given: Path, place: int, change: Callable[[str], str]) -> str:
    text = lines(given)
    text[place] = change(text[place])
    return "\n".join(text)


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_its_reason(case: str, given: Path, tmp_path: Path) -> None:
    make, says = REFUSED[case]
    proof = tmp_path / "changed.tlog-proof"
    proof.write_text(make(given))
    answer = check(given, proof=proof)
    fails(answer, 1)
    assert says in answer.error


def test_another_artifact_another_key_and_another_kernel_are_refused(given: Path, tmp_path: Path) -> None:
    other = tmp_path / "kernel.py"
    other.write_bytes((given / "kernel.py").read_bytes() + b"\n")
    name = (given / "ledger.vkey").read_text().split("+")[0]
    for changed, says in (
        ({"artifact": other}, "artifact's digest"),
        ({"artifact": given / "bench.py"}, "artifact's digest"),
        ({"key": SigningKey(name, EVIL_SEED).verifier}, "signed by"),
        ({"key": SigningKey("other/log", EVIL_SEED).verifier}, "expected 'other/log', as the key says"),
        ({"kernel": "cpp_other_cpu_fp32_b1_v1"}, "expected 'cpp_other_cpu_fp32_b1_v1'"),
    ):
        answer = check(given, **changed)
        fails(answer, 1)
        assert says in answer.error, answer.error


def test_every_cut_of_the_file_is_unusable_or_refused(given: Path, tmp_path: Path) -> None:
    whole = (given / "kernel.tlog-proof").read_bytes()
    proof = tmp_path / "cut.tlog-proof"
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        proof.write_bytes(whole[:length])
        answer = check(given, proof=proof)
        fails(answer, 2)
    proof.write_bytes(whole[:-1])
    assert check(given, proof=proof).status == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"c2sp.org/tlog-proof@v2\nindex 0\n\nx\n",
        b"c2sp.org/tlog-proof@v1\nindex 0\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra !!notbase64!!\nindex 0\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra e30=\nindex 0\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra W10=\nindex 0\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra e30=\nindex notanumber\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra e30=\nindex -5\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra e30=\nindex 0\n" + base64.b64encode(bytes(64)) + b"\n\ncheckpoint\n",
        b"c2sp.org/tlog-proof@v1\nextra "
        + base64.b64encode(b'{"envelope":"\\ud800","payload":"{}","listing":null}')
        + b"\nindex 0\n\na\n1\nAAAA\n\n",
    ],
)
def test_what_is_no_proof_is_unusable(content: bytes, given: Path, tmp_path: Path) -> None:
    proof = tmp_path / "p.tlog-proof"
    proof.write_bytes(content)
    answer = check(given, proof=proof)
    fails(answer, 2)


def test_files_that_are_not_there_are_unusable(given: Path, tmp_path: Path) -> None:
    for name in ("proof", "artifact", "key"):
        answer = check(given, **{name: tmp_path / "absent"})
        assert answer.status == 2, name
        assert "absent" in answer.error
    assert check(given, key=given / "kernel.py").status == 2


def test_the_check_loads_the_standard_library_and_cryptography_alone(given: Path) -> None:
    code = (
        "import sys, runpy\n"
        "try:\n    runpy.run_module('forge.proof', run_name='__main__', alter_sys=True)\n"
        "except SystemExit as left:\n    assert left.code == 0, left.code\n"
        "loaded = {name for name in sys.modules if name.startswith('forge')}\n"
        "others = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(loaded), sorted(others), file=sys.stderr)\n"
    )
    command = [sys.executable, "-I", "-c", code, given / "kernel.tlog-proof"]
    command += ["--artifact", given / "kernel.py", "--key", given / "ledger.vkey"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=given, env={"PATH": os.environ["PATH"]}
    )
    assert json.loads(ran.stdout)["kernel_id"] == (given / "kernel.txt").read_text()
    forge, others = (set(json.loads(part.replace("'", '"') + "]")) for part in ran.stderr.strip()[:-1].split("] "))
    assert forge == {
        "forge",
        "forge.errors",
        "forge.proof",
        *(f"forge.proof.{m}" for m in ("check", "files", "note", "tree")),
    }
    heavy = {"torch", "numpy", "pydantic", "orjson", "sqlmodel", "sqlalchemy", "typer", "sqlite3", "alembic", "rich"}
    assert heavy & others == set()
    assert "cryptography" in others


def test_the_module_alone_answers_with_the_same_exit_statuses(given: Path, tmp_path: Path) -> None:
    def run(proof: Path, artifact: Path) -> int:
        command = [sys.executable, "-m", "forge.proof", proof, "--artifact", artifact, "--key", given / "ledger.vkey"]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert run(given / "kernel.tlog-proof", given / "kernel.py") == 0
    assert run(given / "kernel.tlog-proof", given / "bench.py") == 1
    assert run(given / "kernel.py", given / "kernel.py") == 2
    assert run(tmp_path / "absent", given / "kernel.py") == 2
