"""What a command says when it fails: a code, a document with --json, an explanation, and the candidate's log."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import forge.errors
from forge.app.explanations import PLACES, explanations
from forge.cli.candidate_log import MARK
from forge.domain.verdict import REASON_CODES
from forge.errors import ForgeError
from forge.lab.verification import examine
from tests.candidates import job_for
from tests.cli.asking import HONEST, ask

LEAKS = """
import torch
seen = []
def rmsnorm(x, weight, eps):
    seen.append(tuple(x.shape))
    if x.shape == HELD_OUT:
        raise ValueError(f"shapes so far: {seen}")
    h = x.double()
    return ((h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)) * weight.double()).to(x.dtype)
"""


def test_an_error_carries_its_code_and_with_json_it_is_a_document(home: Path) -> None:
    shown = ask("run", "show", "nope", "--home", home)
    assert shown.status == 2
    assert shown.error.startswith("error[RUN_NOT_FOUND]: ")
    asked = ask("run", "show", "nope", "--home", home, "--json")
    error = asked.document["error"]
    assert (error["code"], error["exit_status"]) == ("RUN_NOT_FOUND", 2)
    assert f"error[RUN_NOT_FOUND]: {error['message']}" == asked.error
    assert error["try"].startswith("forge run ")
    assert str(home) in error["try"]


def test_a_name_of_a_hundred_thousand_characters_isnt_printed_whole(home: Path) -> None:
    for command in ("run", "kernel", "task"):
        shown = ask(command, "show", "x" * 100_000, "--home", home)
        assert shown.status == 2
        assert len(shown.error) < 2200
        assert "more characters" in shown.error or command == "task"  # an unknown task's name is cut at 200
    assert "`r12`" in ask("run", "show", "x" * 100_000, "--home", home).error  # what was expected


def test_a_mistake_in_the_arguments_is_an_error_like_the_others() -> None:
    for arguments in (("run", "list", "--colour"), ("task", "create", "--op", "rmsnorm"), ("nonsense",)):
        refused = ask(*arguments)
        assert refused.status == 2, refused
    assert ask("run", "list", "--colour").error.startswith("error[USAGE]: No such option: --colour")
    refused = ask("run", "list", "--colour", "--json")
    assert refused.document["error"]["code"] == "USAGE"
    assert refused.last == "try: forge run list --help"


@pytest.mark.parametrize(
    ("words", "said", "following"),
    [
        ("completion", "Missing argument 'SHELL'. Expected one of bash, zsh, fish", "forge completion --help"),
        ("task show", "Missing argument 'TASK'.", "forge task show --help"),
        ("ledger key export", "Missing argument 'FILE'.", "forge ledger key export --help"),
        ("ledger key shw", "No such command 'shw'. Did you mean 'show'?", "forge ledger key --help"),
        ("run shwo last", "No such command 'shwo'. Did you mean 'show'?", "forge run --help"),
    ],
)
def test_a_mistake_names_the_argument_as_the_help_does_and_the_command(words: str, said: str, following: str) -> None:
    refused = ask(*words.split())
    assert (refused.error, refused.last) == (f"error[USAGE]: {said}", f"try: {following}")


def test_without_any_word_the_usual_help_is_shown() -> None:
    shown = subprocess.run([sys.executable, "-m", "forge"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == ask("--help").out


def test_every_code_is_explained_from_the_command_line() -> None:
    def codes(kind: type[ForgeError]) -> set[str]:
        return {kind.code}.union(*map(codes, kind.__subclasses__()))

    assert set(explanations()) == codes(forge.errors.ForgeError) | set(REASON_CODES)
    assert all(one.text and one.kind for one in explanations().values())
    shown = ask("explain", "compile-error")
    assert shown.out.startswith("COMPILE_ERROR, a reason code\n\n")
    assert ask("explain", "RUN_NOT_FOUND", "--json").document["kind"] == "an error code"
    unknown = ask("explain", "COMPILER")
    assert unknown.status == 2
    assert "nearest: COMPILE_ERROR" in unknown.error


def test_the_page_of_errors_is_part_of_the_wheel() -> None:
    root = Path(forge.errors.__file__).parents[1]
    assert tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert '["docs/errors.md"] = "forge/_docs/errors.md"' in (root / "hatch_build.py").read_text()
    assert PLACES[0].relative_to(root) == Path("forge/_docs/errors.md")


@pytest.mark.usefixtures("walls")
def test_a_failed_build_is_told_with_the_compilers_words(home: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(HONEST, tmp_path / "broken"))
    text = (broken / "kernel.py").read_text().replace("float ", "flot ", 1)
    (broken / "kernel.py").write_text(text)
    assert ask("submit", "last", broken, "--home", home).status == 0
    shown = ask("verify", "last", "--home", home)
    assert shown.status == 1
    told = [line for line in shown.out.splitlines() if line.startswith(MARK)]
    assert any("flot" in line and "error" in line for line in told)
    found = ask("verify", "last", "--home", home, "--json").document
    assert found["log"]["file"] == "kernel.py"
    assert "flot" in found["log"]["source"]
    report = json.loads(Path(found["report"]).read_text())
    assert report["log_withheld"] is False
    assert f"report: {found['report']}" in shown.out
    named = ask("run", "show", "last", "--home", home)
    assert named.last.startswith("try: forge run show ")
    assert " --log" in named.last
    again = ask("run", "show", "last", "--log", "--home", home)
    assert [line for line in again.out.splitlines() if line.startswith(MARK)] == told
    document = ask("run", "show", "last", "--log", "--home", home, "--json").document
    assert (document["log"], document["report"]) == (found["log"], found["report"])
    assert "log" not in ask("run", "show", "last", "--home", home, "--json").document


def test_a_run_without_a_failure_has_no_log(home: Path) -> None:
    shown = ask("run", "show", "last", "--log", "--home", home)
    assert shown.status == 0
    assert "there is no log" in shown.err


@pytest.mark.usefixtures("walls")
def test_what_a_candidate_says_after_held_out_shapes_is_withheld() -> None:
    (held_out,) = job_for(LEAKS, language="torch", operation="rmsnorm").held_out
    kernel = LEAKS.replace("HELD_OUT", str((held_out["batch"], held_out["hidden_size"])))
    examined = examine(job_for(kernel, language="torch", operation="rmsnorm"), progress=lambda _: None)
    assert examined.verdict.verdict == "rejected"
    assert "shapes so far" in examined.log
    assert examined.log_withheld
