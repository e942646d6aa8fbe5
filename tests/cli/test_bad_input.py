"""What is asked wrongly, handed in wrongly, or damaged: one clear line, a status, and nothing half written."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.prepared import benchmarked_run, rejected_run
from tests.cli.asking import HONEST, SHAPE, Answer, ask, check_manners, create_task, files, history, ledger_stands

TASK = {
    "--op": "fused_add_rmsnorm",
    "--language": "cpp",
    "--gpu": "cpu",
    "--dtype": "fp32",
    "--shape": SHAPE,
}
BAD_TASKS = {
    "unknown op": ({"--op": "convolution"}, "'convolution'", "forge op list"),
    "misspelt op": ({"--op": "fused_rms"}, "'fused_rms'", "expected one of fused_add_rmsnorm,"),
    "misspelt axis": ({"--shape": "batch=1,hidden=8"}, "'hidden'", "nearest: hidden_size"),
    "empty op": ({"--op": ""}, "''", "expected"),
    "op as path": ({"--op": "../rmsnorm"}, "'../rmsnorm'", "expected"),
    "unknown language": ({"--language": "fortran"}, "'fortran'", "triton"),
    "unknown gpu": ({"--gpu": "voodoo2"}, "'voodoo2'", "h200"),
    "gpu prefix": ({"--gpu": "h2"}, "'h2'", "h200"),
    "unknown dtype": ({"--dtype": "fp8"}, "'fp8'", "bf16"),
    "misspelt dtype": ({"--dtype": "float31"}, "'float31'", "fp32"),
    "cpp on a gpu": ({"--gpu": "h200"}, "cpp kernels don't run on 'h200'", "expected"),
    "zero axis": ({"--shape": "batch=0,hidden_size=8"}, "0", "expected"),
    "negative axis": ({"--shape": "batch=-1,hidden_size=8"}, "'batch=-1'", "expected"),
    "fractional axis": ({"--shape": "batch=1.5,hidden_size=8"}, "'batch=1.5'", "expected"),
    "word for a size": ({"--shape": "batch=many,hidden_size=8"}, "'batch=many'", "expected"),
    "missing axis": ({"--shape": "batch=16"}, "hidden_size", "expected"),
    "duplicate axis": ({"--shape": "batch=16,batch=16,hidden_size=8"}, "'batch'", "twice"),
    "extra axis": ({"--shape": "batch=16,hidden_size=8,heads=2"}, "'heads'", "expected"),
    "empty shape": ({"--shape": ""}, "''", "expected"),
    "path in an axis": ({"--shape": "../../x=16,hidden_size=8"}, "'../../x=16'", "expected"),
    "newline in an axis": ({"--shape": "batch\n=1,\x1b[2J=8"}, "", "expected"),
    "arabic digits": ({"--shape": "batch=١٦,hidden_size=8"}, "", "expected"),
    "size beyond 2^31": ({"--shape": "batch=9999999999,hidden_size=8"}, "9999999999", "2^31"),
    "size of a hundred digits": ({"--shape": f"batch={'9' * 100},hidden_size=8"}, "999", "expected"),
    "a workload beyond any memory": (
        {"--shape": "batch=2147483648,hidden_size=2147483648"},
        "2147483648",
        "expected at most",
    ),
    "a workload beyond the arena": ({"--shape": "batch=1,hidden_size=2147483648"}, "2147483648", "expected at most"),
    "speedup below policy": ({"--min-speedup": "0.5"}, "0.5", "expected 1.0"),
    "speedup zero": ({"--min-speedup": "0"}, "0.0", "expected 1.0"),
    "speedup nan": ({"--min-speedup": "nan"}, "nan", "expected 1.0"),
    "speedup inf": ({"--min-speedup": "inf"}, "inf", "to 1000"),
    "speedup as word": ({"--min-speedup": "fast"}, "--min-speedup", "number"),
    "constraint without value": ({"--constraint": "note="}, "'note='", "expected key=value"),
    "constraint without key": ({"--constraint": "=x"}, "'=x'", "expected key=value"),
    "constraint without sign": ({"--constraint": "note"}, "'note'", "expected key=value"),
    "constraint that is no name": ({"--constraint": "a b=c"}, "'a b=c'", "expected key=value"),
    "constraint in another script": ({"--constraint": "naïve=é"}, "naïve", "expected"),
    "constraint of two lines": ({"--constraint": "note=a\n| x |"}, "note", "expected"),
    "constraint of a megabyte": ({"--constraint": "note=" + "x" * 100_000}, "note", "expected"),
    "constraint of undecodable bytes": ({"--constraint": "note=\udcff"}, "note", "expected"),
    "model family of a megabyte": ({"--model-family": "x" * 100_000}, "xxx", "expected"),
    "unknown objective": ({"--objective": "beauty"}, "'beauty'", "latency"),
    "baseline that isn't measured": ({"--baseline": "compile"}, "'compile'", "expected best"),
    "unknown baseline": ({"--baseline": "yesterday"}, "'yesterday'", "eager"),
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("agent", "run", "last", "--author", "search", "--candidates", "-1"),
            "'--candidates': got '-1', expected at",
        ),
        (("audit", "sql", "x", "--seconds=1e9"), "'--seconds': got '1e9', expected at most 600"),
        (("audit", "sql", "x", "--limit", "1.5"), "'--limit': got '1.5', expected a whole number"),
        (("audit", "sql", "x", "--seconds", "ten"), "'--seconds': got 'ten', expected a number"),
        (
            ("check", "k.py", "--output-format", "pdf"),
            "got 'pdf', expected one of 'text', 'github', 'junit', 'sarif'",
        ),
    ],
)
def test_a_value_that_an_option_cant_have_is_shown_with_what_it_may_be(arguments: tuple[str, ...], said: str) -> None:
    refused = ask(*arguments)
    assert refused.status == 2
    assert said in refused.error


@pytest.mark.parametrize("case", BAD_TASKS)
def test_a_task_that_can_not_be_is_refused_before_anything_is_written(case: str, home: Path) -> None:
    changes, value, expected = BAD_TASKS[case]
    before, events = files(home), history(home)
    arguments = [part for option in {**TASK, **changes}.items() for part in option]
    answer = ask("task", "create", *arguments, "--home", home, "--json")
    assert answer.status == 2
    assert value in answer.error
    assert expected in answer.err
    assert len(answer.error) < 1000
    assert answer.last == f"try: forge {'op list' if '--op' in changes else 'task create --help'}"
    assert history(home) == events
    assert files(home) == before


@pytest.mark.parametrize("name", ["float32", "float"])
def test_an_element_type_may_have_the_name_that_torch_gives_it(name: str, home: Path) -> None:
    arguments = [part for option in {**TASK, "--dtype": name}.items() for part in option]
    created = ask("task", "create", *arguments, "--home", home, "--json").document
    assert "_fp32_" in created["task_id"]


@pytest.mark.parametrize("option", ["--dtype=fp16", "--gpu=cpu", "--home=elsewhere"])
def test_an_option_that_counts_once_is_refused_if_it_is_given_twice(option: str, home: Path) -> None:
    arguments = [part for one in TASK.items() for part in one]
    answer = ask("task", "create", *arguments, option, "--home", home)
    assert answer.status == 2
    assert f"{option.partition('=')[0]} is given twice" in answer.error
    assert len(history(home)) == 5


def test_what_stands_behind_two_dashes_is_no_repeated_option() -> None:
    assert "given twice" not in ask("run", "show", "--", "--home", "--home").error


def test_a_constraint_given_twice_is_refused(home: Path) -> None:
    arguments = [part for option in TASK.items() for part in option]
    answer = ask("task", "create", *arguments, "--constraint", "a=1", "--constraint", "a=2", "--home", home)
    assert answer.status == 2
    assert "'a' is given twice" in answer.error


def test_a_run_that_is_unknown_or_ambiguous_is_bad_input(home: Path) -> None:
    create_task(home)
    (task, *_) = ask("task", "list", "--home", home, "--json").document
    for name in ("", "20", "nothing", "../../etc", "%s", "\udcff"):
        for command in (("run", "show"), ("verify",), ("bench",), ("promote",), ("plan",), ("run", "abort")):
            answer = ask(*command, name, "--home", home)
            assert answer.status == 2, (command, name)
            assert f"{name!r}" in answer.error
            assert "expected" in answer.error
            no_text = name == "\udcff"
            assert answer.last == f"try: forge {' '.join(command)} --help" if no_text else "try: forge run list"
    assert "2 runs" in ask("run", "show", "20", "--home", home).error
    for name in ("", "nothing", "cpp_"):
        answer = ask("run", "open", name, "--home", home)
        assert answer.status == 2
        assert answer.last == "try: forge task list"
    assert ask("task", "show", task["task_id"][:-8], "--home", home).status == 2
    assert len(history(home)) == 9


def test_last_without_a_run_is_bad_input(empty: Path) -> None:
    for command in (("run", "show"), ("verify",), ("promote",), ("run", "check")):
        answer = ask(*command, "last", "--home", empty)
        assert answer.status == 2
        assert answer.error == "error[RUN_NOT_FOUND]: there is no run yet"
        assert answer.last == "try: forge task create --help"


PHASES: dict[str, tuple[object, ...]] = {
    "submit": ("submit", "last", HONEST),
    "verify": ("verify", "last"),
    "bench": ("bench", "last"),
    "promote": ("promote", "last"),
}


def _only(allowed: set[str], home: Path, state: str, following: str) -> None:
    ask("run", "show", "last", "--home", home)  # what an experiment came to is recorded by whoever looks first
    events = history(home)
    for name, command in PHASES.items():
        if name not in allowed:
            answer = ask(*command, "--home", home, "--json")
            if "recorded already" in answer.err:  # the same command again: nothing is written, as held below
                continue
            assert answer.status == 2, name
            assert f"is {state}: {name} expects a run that is" in answer.error
            assert answer.last.startswith(f"try: forge {following}")
    assert history(home) == events


def test_a_phase_out_of_order_is_refused_with_the_one_that_fits(home: Path) -> None:
    _only({"submit"}, home, "prompt_ready", "submit ")
    ask("submit", "last", HONEST, "--home", home)
    _only({"verify"}, home, "candidate_ready", "verify ")
    ask("run", "abort", "last", "--home", home)
    _only(set(), home, "aborted", "run open cpp_")
    create_task(home)
    benchmarked_run(home)
    _only({"promote"}, home, "benchmarked", "promote ")
    assert ask("promote", "last", "--home", home).status == 0
    _only(set(), home, "promoted", "run open cpp_")
    create_task(home)
    rejected_run(home)
    _only(set(), home, "rejected", "run open cpp_")
    assert ask("run", "abort", "last", "--home", home).status == 2
    assert ledger_stands(home)


def test_a_plan_is_not_made_for_a_run_that_was_aborted(home: Path) -> None:
    ask("run", "abort", "last", "--home", home)
    events = history(home)
    assert ask("plan", "last", "--home", home).status == 0
    assert ask("prompt", "last", "--home", home).out.startswith("# Write a kernel")
    assert history(home) == events


@pytest.mark.parametrize("reason", ["", "   ", "x" * 100_000, "\udcff", "a\nb"], ids=lambda text: ascii(text[:3]))
def test_an_abort_needs_a_reason_of_one_line(reason: str, home: Path) -> None:
    events = history(home)
    answer = ask("run", "abort", "last", "--reason", reason, "--home", home)
    assert answer.status == 2
    assert ("bad argument" if reason == "\udcff" else "bad reason") in answer.error
    assert history(home) == events


def test_a_place_without_a_workspace_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")  # not tmp_path: a workspace may lie above it
    monkeypatch.delenv("FORGE_HOME", raising=False)
    for command in (("run", "list"), ("ledger", "verify"), ("kernel", "list"), ("task", "list")):
        nearest = ask(*command)
        assert nearest.status == 2
        assert "no kernel_registry.db in" in nearest.error
        assert nearest.last.startswith("try: forge init")
        named = ask(*command, "--home", tmp_path / "nowhere")
        assert named.status == 2
        assert ("try: forge ledger verify" if command[0] == "ledger" else "try: forge init") in named.last
    assert list(tmp_path.iterdir()) == []
    assert not Path("/kernel_registry").exists()


def test_the_workspace_is_named_by_home_or_the_variable_or_the_nearest_parent(
    home: Path, empty_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = home / "some" / "where"
    inside.mkdir(parents=True)
    monkeypatch.delenv("FORGE_HOME", raising=False)
    monkeypatch.chdir(inside)
    assert len(ask("run", "list", "--json").document) == 1
    monkeypatch.setenv("FORGE_HOME", str(empty_workspace))
    assert ask("run", "list", "--json").document == []
    assert len(ask("run", "list", "--home", home, "--json").document) == 1
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "nowhere"))
    assert ask("run", "list").status == 2
    monkeypatch.setenv("FORGE_HOME", "")
    assert len(ask("run", "list", "--json").document) == 1


def test_a_file_in_place_of_a_workspace_is_named_with_a_next_step_that_works(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", Path("/dev/null")):
        answer = ask("run", "list", "--home", place)
        assert (answer.status, f"{str(place)!r} is a file: expected" in answer.error) == (2, True)
        assert answer.err.endswith("try: forge init --help\n"), answer.err


def test_a_workspace_is_not_made_where_it_can_not_be(tmp_path: Path, home: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "inside", Path("/proc/forge")):
        answer = ask("init", place)
        assert answer.status == 2, place
        assert repr(str(place)) in answer.error
        assert "Errno" not in answer.error
    for origin in ("", "\udcff", "x" * 10_000):
        answer = ask("init", tmp_path / "new", "--origin", origin)
        assert answer.status == 2
        assert ("bad argument" if origin == "\udcff" else "bad origin") in answer.error
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "policy.toml").write_text("rounds = ")
    assert ask("init", broken).status == 2
    assert [path.name for path in broken.iterdir()] == ["policy.toml"]
    assert not (tmp_path / "new").exists()


def test_bad_numbers_for_the_log_are_bad_input(home: Path) -> None:
    for options in (("--limit", "0"), ("--limit", "-1"), ("--after", "-1"), ("--after", "x"), ("--type", "Nothing")):
        answer = ask("ledger", "log", *options, "--home", home)
        assert answer.status == 2, options
        assert options[1] in answer.error or options[0] in answer.error


def test_unknown_names_in_reading_commands_are_bad_input(home: Path) -> None:
    slot = {"--op": "fused_add_rmsnorm", "--gpu": "cpu", "--dtype": "fp32", "--shape": SHAPE}
    for option, value in (("--op", "x"), ("--gpu", "x"), ("--dtype", "x"), ("--shape", "batch=1")):
        arguments = [part for pair in {**slot, option: value}.items() for part in pair]
        answer = ask("lookup", *arguments, "--home", home)
        assert answer.status == 2, option
        assert "expected" in answer.error
    for command in (("op", "show", "x"), ("skill", "show", "x"), ("kernel", "show", "x", "--home", home)):
        answer = ask(*command)
        assert answer.status == 2
        assert "'x'" in answer.error


def test_a_published_registry_that_is_damaged_is_named(home: Path) -> None:
    slot = [part for pair in TASK.items() if pair[0] != "--language" for part in pair]
    pointer = home / "kernel_registry" / "current.json"
    for content in (b"", b"{}", b"[1]", b"\xff", b'{"snapshot": "../../../etc/passwd"}'):
        pointer.write_bytes(content)
        answer = ask("lookup", *slot, "--home", home)
        assert answer.status == 1, content
        assert str(pointer.parent) in answer.error
        assert answer.last == "try: forge ledger rebuild"
    pointer.unlink()
    assert ask("lookup", *slot, "--home", home).last == "try: forge ledger rebuild"
    assert ask("ledger", "rebuild", "--home", home).status == 0
    found = ask("lookup", *slot, "--home", home, "--json")
    assert found.document["match"] == "none"


def test_manners_are_checked_in_a_real_process_too(home: Path) -> None:
    command = [sys.executable, "-m", "forge", "run", "show", "zz", "--json", "--home", str(home)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    check_manners(Answer(answer.returncode, answer.stdout, answer.stderr), as_json=True)
    assert answer.returncode == 2
