"""Every command: its help, its exit status, its one JSON document, and what it says next."""

import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from forge import __version__
from forge.cli import command_tree
from forge.cli.help_page import help_page
from forge.cli.tree import tree_of
from tests.app.prepared import benchmarked_run, rejected_run, verified_run
from tests.cli.asking import EXAMPLES, HONEST, SHAPE, ask, create_task, history, ledger_stands

SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)
TASK = ("task", "create", *SLOT, "--language", "cpp")


def _commands() -> list[tuple[str, ...]]:
    """Every command there is, from the application itself."""
    found: list[tuple[str, ...]] = []

    def walk(command: object, path: tuple[str, ...]) -> None:
        inner = getattr(command, "commands", None)
        if inner is None:
            found.append(path)
            return
        for name, one in inner.items():
            if not one.hidden:  # those that only another program gives
                walk(one, (*path, name))

    walk(command_tree(), ())
    return sorted(found)


COMMANDS = _commands()
NOUNS = sorted({path[:1] for path in COMMANDS if len(path) == 2})


def test_every_command_of_the_design_is_there() -> None:
    wanted = """init, doctor, demo, task create, task list, task show, run open, run list, run show, run check,
    run abort, plan, prompt, submit, verify, bench, promote, pipeline, kernel list, kernel show, lookup, ledger log,
    ledger verify, ledger rebuild, op list, op show, skill list, skill show"""
    assert {tuple(one.split()) for one in wanted.split(",")} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_its_purpose_and_an_example(path: tuple[str, ...]) -> None:
    answer = ask(*path, "--help")
    assert answer.status == 0
    lines = [line.strip() for line in answer.out.splitlines() if line.strip()]
    assert lines[0].startswith("Usage:")
    assert lines[1][0].isupper()
    assert len(lines[1]) > 15
    example = next(line for line in lines if line.startswith("Example:"))
    assert example.startswith(f"Example: forge {' '.join(path)}")
    if "--json" not in answer.out:
        pytest.fail("every command answers as JSON, too")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_written_without_the_parser_as_by_it(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    tree_of.cache_clear()  # a command remembers the names of its option for help from its first context
    for path in (*NOUNS, *COMMANDS):
        tree_of(path[0]).main([*path, option], prog_name="forge", standalone_mode=False)
        assert help_page([*path, option]) == capsys.readouterr().out.rstrip("\n"), path


@pytest.mark.parametrize(
    "words", [(), ("--help",), ("nope", "-h"), ("run", "nope", "-h"), ("run", "list", "x", "-h")]
)
def test_help_of_anything_else_is_left_to_the_parser(words: tuple[str, ...]) -> None:
    assert help_page(words) is None


@pytest.mark.parametrize("path", [(), *NOUNS], ids=lambda path: " ".join(path) or "forge")
def test_every_group_lists_its_commands_with_their_purpose(path: tuple[str, ...]) -> None:
    answer = ask(*path, "--help")
    assert answer.status == 0
    for command in COMMANDS:
        if command[: len(path)] == path and len(command) == len(path) + 1:
            listed = answer.out.rpartition("Commands:")[2].splitlines()
            line = next(line for line in listed if line.split()[:1] == [command[-1]])
            assert len(line.split()) > 3, line
    if path:  # the first page has no sentence that is cut
        assert "..." not in answer.out.rpartition("Commands:")[2]


def test_the_version_is_that_of_the_package() -> None:
    answer = ask("--version")
    assert (answer.status, answer.out, answer.err) == (0, f"forge {__version__}\n", "")
    assert "--version" in ask("--help").out


def test_a_wrong_option_a_missing_one_and_an_unknown_command_exit_with_two() -> None:
    for arguments in (("frobnicate",), ("init", "--frob"), ("task", "create"), ("run", "show"), ("ledger", "x")):
        answer = ask(*arguments)
        assert answer.status == 2, arguments
        assert "--help" in answer.err or "-h" in answer.err


def test_the_installed_command_answers_through_a_real_process(tmp_path: Path) -> None:
    environment = {**os.environ, "FORGE_HOME": str(tmp_path / "home")}
    made = subprocess.run(
        [sys.executable, "-m", "forge", "init", str(tmp_path / "home"), "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert json.loads(made.stdout)["home"] == str(tmp_path / "home")
    refused = subprocess.run(
        [sys.executable, "-m", "forge", "run", "show", "last", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["code"] == "RUN_NOT_FOUND"
    assert refused.stderr == "error[RUN_NOT_FOUND]: there is no run yet\ntry: forge task create --help\n"


def test_a_reader_that_goes_away_leaves_no_traceback(home: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "forge", "ledger", "log", "--json", "--home", str(home)]
    answer = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr


def test_init_makes_a_workspace_that_stands(tmp_path: Path) -> None:
    made = ask("init", tmp_path / "new" / "home", "--origin", "here", "--json")
    assert made.document.keys() >= {"home", "ledger_id"}
    assert ledger_stands(tmp_path / "new" / "home")
    again = ask("init", tmp_path / "new" / "home")
    assert again.status == 2
    assert "is a workspace already" in again.error
    assert ask("ledger", "rebuild", "--home", tmp_path / "new" / "home", "--json").document["files"]


def test_doctor_tells_what_this_machine_can_do() -> None:
    found = ask("doctor", "--json").document
    assert found.keys() >= {"platforms", "languages", "isolation"}
    assert found["platforms"]["cpu"]["available"] is True
    assert set(found["languages"]) == {"cpp", "cuda", "triton", "torch"}
    assert [step["level"] for step in found["ladder"]] == ["namespaces", "bubblewrap", "none"]
    strongest = next(step["level"] for step in found["ladder"] if step["reached"])
    assert found["isolation"]["level"] == strongest
    assert all(lack["reason"] and lack["next_step"] for step in found["ladder"] for lack in step["lacks"])


def test_task_create_list_and_show_agree(empty: Path) -> None:
    made = ask(*TASK, "--home", empty, "--constraint", "note=keep it short", "--min-speedup", "1.5", "--json")
    assert made.document.keys() == {"task_id", "run_id", "prompt_path", "admission", "same_as"}
    assert made.document["same_as"] == []
    assert made.last == f"next: forge new {made.document['task_id']} my-kernel"
    assert Path(made.document["prompt_path"]).read_text().startswith("# Write a kernel")
    (listed,) = ask("task", "list", "--home", empty, "--json").document
    shown = ask("task", "show", made.document["task_id"], "--home", empty, "--json").document
    assert listed["task_id"] == shown["task_id"] == made.document["task_id"]
    assert shown["minimum_speedup"] == 1.5
    assert shown["constraints"] == {"note": "keep it short"}
    assert ask("task", "list", "--home", empty).out.count("fused_add_rmsnorm") == 2


def test_run_open_list_and_show_agree(home: Path) -> None:
    (first,) = ask("run", "list", "--home", home, "--json").document
    opened = ask("run", "open", first["task_id"][:12], "--home", home, "--json").document
    assert opened.keys() == {"task_id", "run_id", "prompt_path"}
    assert [one["run_id"] for one in ask("run", "list", "--home", home, "--json").document] == [
        first["run_id"],
        opened["run_id"],
    ]
    shown = ask("run", "show", "last", "--home", home, "--json").document
    assert shown["run_id"] == opened["run_id"]
    assert shown["state"] == "prompt_ready"
    assert shown["next"] == f"forge submit {opened['run_id']} DIR"


def test_a_run_is_found_by_its_id_a_unique_beginning_and_last(home: Path) -> None:
    (run,) = ask("run", "list", "--home", home, "--json").document
    for name in (run["run_id"], run["run_id"][:-3], "last"):
        assert ask("run", "show", name, "--home", home, "--json").document["run_id"] == run["run_id"]


def test_plan_and_prompt_show_what_was_recorded(home: Path) -> None:
    planned = ask("plan", "last", "--home", home, "--json").document
    assert 3 <= len(planned["skills"]) <= 5
    assert all(skill["why"] for skill in planned["skills"])
    prompt = ask("prompt", "last", "--home", home)
    document = ask("prompt", "last", "--home", home, "--json").document
    assert document["prompt"] == prompt.out
    Path(document["prompt_path"]).write_text("edited")
    assert ask("prompt", "last", "--home", home).out == prompt.out
    assert len(history(home)) == 5


def test_submit_takes_a_candidate_in_and_says_what_comes_next(home: Path) -> None:
    taken = ask("submit", "last", HONEST, "--home", home, "--author", "ada", "--json")
    assert taken.status == 0
    assert taken.document.keys() >= {"verdict", "candidate", "reason"}
    assert taken.document["verdict"] == "accepted"
    run = ask("run", "show", "last", "--home", home, "--json").document
    assert taken.last == f"next: {run['next']}" == f"next: forge verify {run['run_id']}"
    assert run["author"] == "forge examples", "metadata.json says who wrote it"


def test_a_refused_submission_exits_with_one_and_may_be_repeated(home: Path, tmp_path: Path) -> None:
    refused = ask("submit", "last", _folder(tmp_path, without="bench.py"), "--home", home, "--json")
    assert refused.status == 1
    assert re.fullmatch(r"try: forge pipeline \S+ \S+/\S+", refused.last), refused.last
    assert refused.document["verdict"] == "rejected"
    assert refused.document["reason"] == {
        "code": "BAD_SUBMISSION",
        "message": "bench.py: missing; expected exactly kernel.py, reference.py, test_correctness.py, bench.py, "
        "metadata.json",
    }
    assert ask("submit", "last", HONEST, "--home", home).status == 0


def test_verify_and_pipeline_refuse_a_kernel_that_defines_nothing(home: Path, tmp_path: Path) -> None:
    create_task(home)
    folder = _folder(tmp_path)
    (folder / "kernel.py").write_text("CPP_SOURCE = ''\n")
    runs = ask("run", "list", "--home", home, "--json").document
    ask("submit", runs[0]["run_id"], folder, "--home", home)
    judged = ask("verify", runs[0]["run_id"], "--home", home, "--json")
    whole = ask("pipeline", "last", folder, "--home", home, "--json")
    for answer, run in ((judged, runs[0]), (whole, runs[1])):
        assert answer.status == 1
        found = answer.document
        assert found.keys() >= {"verdict", "reason", "gates", "counterexample"}
        assert found["verdict"] == "rejected"
        assert found["reason"]["code"] == "BAD_SUBMISSION"
        assert "defines no 'fused_add_rmsnorm'" in found["reason"]["message"]
        assert found["gates"][0].keys() == {"name", "verdict", "observed", "threshold"}
        assert ask("run", "check", run["run_id"], "--home", home, "--json").document["ok"] is True
        assert answer.last == f"try: forge run show {run['run_id']}"
    assert set(whole.document["phases"]) == {"submit", "verify"}
    assert ledger_stands(home)


def test_promote_answers_with_the_kernel_and_lookup_finds_it(home: Path) -> None:
    benchmarked_run(home)
    promoted = ask("promote", "last", "--home", home, "--json")
    assert promoted.status == 0, promoted.err
    assert promoted.document.keys() >= {"verdict", "kernel_id", "reason"}
    kernel_id = promoted.document["kernel_id"]
    assert kernel_id == "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
    (entry,) = ask("kernel", "list", "--home", home, "--json").document
    assert entry == ask("kernel", "show", kernel_id, "--home", home, "--json").document
    found = ask("lookup", *SLOT, "--home", home, "--json")
    assert found.document.keys() >= {"match", "kernel_id", "evidence", "rejected"}
    assert (found.document["match"], found.document["kernel_id"]) == ("exact", kernel_id)
    for command in (("kernel", "list"), ("kernel", "show", kernel_id), ("lookup", *SLOT)):
        shown = ask(*command, "--home", home)
        assert shown.status == 0
        assert kernel_id in shown.out.replace("\n", "")
    summary = ask("kernel", "show", kernel_id, "--home", home).out
    assert summary.index("speedup") < summary.index("Over each baseline") < summary.index("Requirements that it met")
    assert f"{entry['speedup']['ratio']:.3f}x" in summary
    assert "verification.report_sha256" not in summary
    assert "verification.report_sha256" in ask("kernel", "show", kernel_id, "--all", "--home", home).out


def test_a_lookup_that_finds_nothing_exits_with_one(empty: Path) -> None:
    answer = ask("lookup", *SLOT, "--home", empty, "--json")
    assert answer.status == 1
    document = answer.document
    assert document.pop("generation")
    assert document == {
        **dict.fromkeys(("kernel_id", "entry_point", "source", "sha256", "evidence", "ran_on_gpu", "domain")),
        "gpu_arch": "host",
        "match": "none",
        "rejected": [],
        "ledger_seq": 1,
    }


@pytest.mark.usefixtures("walls")
def test_a_refusal_says_where_what_was_built_is_kept(home: Path) -> None:
    ask("submit", "last", EXAMPLES / "odd_sizes", "--home", home)
    refused = ask("verify", "last", "--home", home)
    assert refused.status == 1
    run = ask("run", "list", "--home", home, "--json").document[0]
    assert "Built files, to put beside kernel.py" in refused.out
    report = json.loads((home / "forge_runs" / run["run_id"] / "verification_report.json").read_text())
    ask("run", "open", run["task_id"], "--home", home)
    again = ask("pipeline", "last", EXAMPLES / "odd_sizes", "--home", home, "--json").document
    (built,) = again["built"]
    assert [built] == [{**one, "kept_at": built["kept_at"]} for one in report["built"]]
    assert built["path"] == "libkernel.so"
    content = Path(built["kept_at"]).read_bytes()
    assert (len(content), sha256(content).hexdigest()) == (built["size_bytes"], built["sha256"])
    assert built["kept_at"] in refused.out


def test_run_check_and_abort(home: Path) -> None:
    early = ask("run", "check", "last", "--home", home)
    assert early.status == 2
    assert "not sealed" in early.error
    aborted = ask("run", "abort", "last", "--reason", "another shape", "--home", home, "--json")
    assert aborted.document["state"] == "aborted"
    assert history(home)[-1]["payload"]["reason"] == "another shape"
    assert ask("run", "abort", "last", "--home", home).status == 2
    assert ask("submit", "last", HONEST, "--home", home).last.startswith("try: forge run open cpp_")


def test_a_rejected_run_is_checked_against_its_manifest(home: Path) -> None:
    run_id = rejected_run(home)
    assert ask("run", "check", run_id, "--home", home, "--json").document == {
        "run_id": run_id,
        "ok": True,
        "problems": [],
    }
    (home / "forge_runs" / run_id / "extra.txt").write_text("x")
    changed = ask("run", "check", "last", "--home", home, "--json")
    assert changed.status == 1
    assert changed.document["problems"] == [{"kind": "unknown", "path": "extra.txt"}]
    assert changed.last == "try: forge ledger verify"


def test_ledger_log_filters_by_place_number_and_type(home: Path) -> None:
    assert [one["seq"] for one in history(home)] == [1, 2, 3, 4, 5]
    for options, expected in (
        (("--after", 2, "--limit", 2), [3, 4]),
        (("--type", "TaskCreated"), [2]),
        (("--type", "TaskCreated", "--type", "LedgerOpened"), [1, 2]),
        (("--after", 99), []),
    ):
        found = ask("ledger", "log", "--home", home, "--json", *options).document
        assert [one["seq"] for one in found] == expected
    assert ask("ledger", "log", "--home", home).out.count("RunStarted") == 1


def test_ledger_verify_and_rebuild_answer_with_what_they_found(home: Path) -> None:
    report = ask("ledger", "verify", "--home", home, "--json").document
    assert report.keys() >= {"ok", "events", "head", "problems"}
    assert (report["ok"], report["events"], report["problems"]) == (True, 5, [])
    compared = ask("ledger", "rebuild", "--home", home, "--json").document["files"]
    assert {one["file"] for one in compared} >= {"verified_kernels.json", "current.json", "history.db"}
    again = ask("ledger", "rebuild", "--home", home, "--json").document["files"]
    assert {one["state"] for one in again} == {"identical"}


@pytest.mark.slow
def test_operations_and_skills_are_listed_and_shown() -> None:
    listed = [one["op"] for one in ask("op", "list", "--json").document]
    assert "fused_add_rmsnorm" in listed
    for op in listed:
        assert f"def {op}(" in ask("op", "show", op, "--json").document["reference"]
        assert ask("op", "show", op).status == 0
    skills = [one["id"] for one in ask("skill", "list", "--json").document]
    assert "patterns.test-plan" in skills
    for skill in skills:
        assert ask("skill", "show", skill, "--json").document["text"] == ask("skill", "show", skill).out


def test_tables_are_shown_without_json(home: Path) -> None:
    for command in (("run", "list"), ("run", "show", "last"), ("plan", "last"), ("ledger", "verify"), ("doctor",)):
        home_option = () if command == ("doctor",) else ("--home", home)
        answer = ask(*command, *home_option)
        assert answer.status == 0
        assert len(answer.out.splitlines()) > 2


def test_each_phase_answers_with_the_keys_of_the_design(home: Path) -> None:
    verified_run(home)
    verdicts = [one["payload"] for one in history(home) if one["type"] == "CandidateVerified"]
    assert len(verdicts) == 1
    shown = ask("run", "show", "last", "--home", home, "--json").document
    assert shown["state"] == "verified"
    assert shown["next"] == f"forge bench {shown['run_id']}"


def _folder(tmp_path: Path, *, without: str = "") -> Path:
    folder = tmp_path / "candidate"
    folder.mkdir()
    for path in HONEST.iterdir():
        if path.name != without and path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_command_without_its_packages_says_how_to_install_them() -> None:
    code = "import sys; sys.modules['typer'] = None; from forge.__main__ import main; main()"
    answer = subprocess.run([sys.executable, "-c", code, "run", "show"], capture_output=True, text=True, check=False)
    assert answer.returncode == 3
    assert answer.stderr.startswith("error[ENVIRONMENT_UNFIT]: ")
    assert answer.stderr.endswith("try: pip install tensorpath-forge\n")
