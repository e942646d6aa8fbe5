"""A list that is answered without the parser says the same, byte for byte; where anything is unusual it isn't."""

import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from forge.app.at_head import at_head
from forge.app.stored.run_summary import run_summary
from forge.app.tasks.known_tasks import all_tasks
from forge.app.workspace import Workspace
from forge.cli.quick_lists import quick_list
from forge.cli.quick_skills import quick_skill
from forge.cli.tree import tree_of
from forge.domain.verdict import Reason
from forge.events import CandidateRejected
from forge.pipeline.skills import embedded_skills
from tests.app.prepared import benchmarked_run, concluded, rejected_run, samples, submitted, verified_run
from tests.app.test_tokens import granted
from tests.cli.asking import ask, copied

ROOT = Path(__file__).parents[2]
SEALED = "20261126T121606_gated_rmsnorm_quant_h100_201453"
"""A run that was promoted."""
KERNEL = "triton_cross_entropy_h200_bf16_tokens1024_vocabsize32000_v3"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the registry that ships, published up to its head."""
    home = tmp_path_factory.mktemp("shipped")
    shutil.copy(ROOT / "kernel_registry.db", home)
    (home / "forge_runs").mkdir()
    (home / "forge_runs" / "cas").symlink_to(ROOT / "forge_runs" / "cas")
    shutil.copytree(ROOT / "forge_runs" / SEALED, home / "forge_runs" / SEALED)
    with Workspace.open(home) as workspace:
        workspace.publish()
    return home


def quick(home: Path, *arguments: str) -> str | None:
    """What is printed without the parser; None if the whole command must answer."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        answered = quick_list([*arguments, "--home", str(home)])
    assert answered or not printed.getvalue(), "nothing is printed before the whole command prints"
    return printed.getvalue() if answered else None


def whole(home: Path, *arguments: str) -> str:
    """What the whole command prints."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        tree_of(arguments[0])([*arguments, "--home", str(home)], standalone_mode=False)
    return printed.getvalue()


@pytest.mark.parametrize(
    "arguments",
    [
        *(("run", "list"), ("run", "list", "--json"), ("run", "list", "--state=promoted", "--sort", "-run")),
        *(
            ("task", "list"),
            ("task", "list", "--op", "softmax"),
            ("task", "list", "--json"),
            ("kernel", "list", "--sort", "-speedup"),
        ),
        *(("kernel", "list", "--json", "--limit", "3"), ("kernel", "list", "--status", "active", "--gpu", "h100")),
        *(("run", "list", "--task", "triton_softmax", "--limit=2"), ("ledger", "log", "--last", "20")),
        *(("ledger", "log"), ("run", "show", "r1"), ("run", "show", "last", "--json")),
        *(("token", "list"), ("lesson", "list"), ("work", "list"), ("work", "list", "--json")),
        ("task", "show", "triton_softmax_h200_bf16_b16_h4096_0fa462bc"),
        ("task", "show", "triton_softmax_h200_bf16_b16_h4096_0fa462bc", "--json"),
    ],
)
def test_the_shipped_registry_is_listed_alike(shipped: Path, arguments: Sequence[str]) -> None:
    found = quick(shipped, *arguments)
    assert found is not None
    assert found == whole(shipped, *arguments)


def test_each_task_that_ships_is_shown_alike(shipped: Path) -> None:
    with Workspace.open(shipped) as workspace:
        tasks = all_tasks(workspace)
    with at_head(shipped) as found:
        assert found is not None
        for task in tasks:
            shown = found.task(str(task["task_id"]))
            folded = {name: value for name, value in task.items() if name != "created_at"}
            assert list(shown or ()) == list(folded)
            assert shown == folded


def test_tokens_are_listed_alike(home: Path) -> None:
    granted(home, "ada")
    granted(home, "bob")
    ask("token", "revoke", "bob", "--home", home)
    for form in ((), ("--json",)):
        shown = quick(home, "token", "list", *form)
        assert shown is not None
        assert "revoked" in shown
        assert shown == whole(home, "token", "list", *form)


AUDITS = ("claims", "doubts", "effectiveness", "experiments", "fast-p", "invalidated", "leaderboard")
MORE_AUDITS = ("regressions", "rejections", "replication", "stale", "views")


@pytest.mark.parametrize(
    "arguments",
    [
        *(("audit", "sql", "SELECT count(*) FROM kernels"), ("audit", "sql", "SELECT 1 WHERE 0", "--json")),
        *(("audit", "why", KERNEL), ("audit", "why", KERNEL, "--json"), ("audit", "roofline", "--gpu", "h200")),
        *(("audit", "history", KERNEL), ("audit", "history", KERNEL, "--json"), ("audit", "doubts")),
        *(("audit", name, "--json") for name in (*AUDITS, *MORE_AUDITS)),
        *(("audit", "roofline", "--gpu", "h200", "--json"), ("audit", "stale", "--days", "1", "--current", "ledger")),
        *(("notes", "softmax"), ("notes", "rmsnorm", "--gpu", "h200", "--json"), ("notes", "sampling")),
        *(
            ("plan", "r1", "--json"),
            ("plan", "last", "--json"),
            ("token", "list", "--json"),
            ("lesson", "list", "--json"),
        ),
        *(("plan", "r1"), ("plan", "last"), ("kernel", "history", KERNEL), ("kernel", "history", KERNEL, "--json")),
        *(("run", "show", "last", "--log"), ("run", "show", "r20", "--log", "--json"), ("run", "check", SEALED)),
        *(("run", "diff", "r1", "r2"), ("run", "diff", "r60", "r61", "--json")),
        ("kernel", "show", KERNEL, "--all"),
        *(("prompt", "last"), ("prompt", "r3", "--json"), ("ledger", "imported"), ("ledger", "key", "show")),
    ],
    ids=" ".join,
)
def test_an_answer_at_the_head_is_that_from_the_ledger(
    shipped: Path, arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (*arguments, "--home", str(shipped))
    found = ask(*command)
    monkeypatch.setattr("forge.app.at_head.was_read", lambda _: False)
    assert (found.status, found.out) == (0, ask(*command).out)


@pytest.mark.parametrize(
    "arguments",
    [("why", "no_such_kernel"), ("history", "nope"), ("sql", "DROP TABLE x"), ("stale", "--days", "99999"), ("why",)],
)
def test_a_mistaken_audit_is_refused_alike(
    shipped: Path, arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ask("audit", *arguments, "--home", shipped)
    monkeypatch.setattr("forge.app.at_head.was_read", lambda _: False)
    assert (found.status, found.error) == (2, ask("audit", *arguments, "--home", shipped).error)


def test_a_kernel_is_shown_alike(shipped: Path) -> None:
    with at_head(shipped) as found:
        assert found is not None
        kernel_id = str(found.kernels()[0]["kernel_id"])
    for more in ((), ("--json",)):
        shown = quick(shipped, "kernel", "show", kernel_id, *more)
        assert shown is not None
        assert shown == whole(shipped, "kernel", "show", kernel_id, *more)
    assert quick(shipped, "kernel", "show", "no_such_kernel") is None


def at_the_door(home: Path) -> str:
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        reason = Reason(code="BAD_SUBMISSION", message="no kernel.py")
        event = CandidateRejected(
            run_id=run.run_id, task_id=run.task_id, candidate="0" * 64, stage="submit", reason=reason
        )
        workspace.append((event,), run_id=run.run_id, key="door")
    return run.run_id


def undecided(home: Path) -> str:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        concluded(workspace, run_id, samples(wobble=0.3))
    return run_id


def spoilt(home: Path) -> str:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        concluded(workspace, run_id, samples(harness_ns=60_000, candidate_ns=-50_000))
    return run_id


def submitted_run(home: Path) -> str:
    run_id = at_the_door(home)
    with Workspace.open(home) as workspace:
        submitted(workspace, run_id)
    return run_id


@pytest.mark.parametrize(
    "bring",
    [at_the_door, submitted_run, verified_run, benchmarked_run, undecided, spoilt, rejected_run],
    ids=lambda bring: bring.__name__,
)
def test_a_run_in_each_state_is_listed_as_the_ledger_folds_it(home: Path, bring: object) -> None:
    bring(home)  # type: ignore[operator]  # one of the functions above
    with Workspace.open(home) as workspace:
        folded = [run_summary(run) for run in workspace.run_states().runs.values()]
    with at_head(home) as found:
        assert found is not None
        assert found.runs() == folded
    for name in ("last", "r1", folded[0]["run_id"], str(folded[0]["run_id"])[:12]):
        for more in ((), ("--json",)):
            shown = quick(home, "run", "show", str(name), *more)
            left = folded[0]["state"] in ("verified", "benchmarked") and not folded[0]["sealed"]
            assert (shown is None) is left, name
            assert left or shown == whole(home, "run", "show", str(name), *more), name
    assert quick(home, "run", "show", "r2") is None
    assert quick(home, "run", "show", "nope") is None


def test_nothing_unusual_is_answered_quickly(empty: Path) -> None:
    ask("run", "list", "--home", empty)
    assert quick(empty, "run", "list") is not None
    for arguments in (
        *(("run", "list", "--stat", "x"), ("run", "list", "--state"), ("run", "list", "--limit", "0")),
        *(("run", "list", "--limit", "-1"), ("run", "list", "--limit", "9" * 5000), ("run", "list", "--help")),
        *(
            ("run", "list", "--json", "--json"),
            ("run", "list", "x"),
            ("run", "show", "last", "--log"),
            ("kernel", "show"),
        ),
        *(("run", "list", "--state", "nonsense\x1b"), ("run",), ("run", "list", "--sort", "")),
        *(
            ("ledger", "log", "--last", "101"),
            ("ledger", "log", "--last", "5", "--json"),
            ("ledger", "log", "--json"),
        ),
    ):
        assert quick(empty, *arguments) is None, arguments
    assert quick(empty / "nowhere", "run", "list") is None


def broken_policy(home: Path) -> None:
    (home / "policy.toml").write_text("process_pairs = 1\n")


def dangling_policy(home: Path) -> None:
    (home / "policy.toml").unlink(missing_ok=True)
    (home / "policy.toml").symlink_to("/nonexistent")


def killed_process(home: Path) -> None:
    (home / "kernel_registry.db.present").write_bytes(b"++-")


def another_version(home: Path) -> None:
    import sqlite3

    with closing(sqlite3.connect(home / "kernel_registry" / "history.db")) as history, history:
        history.execute("UPDATE cursor SET projector_version = 1")


def behind(home: Path) -> None:
    import sqlite3

    with closing(sqlite3.connect(home / "kernel_registry" / "history.db")) as history, history:
        history.execute("UPDATE cursor SET seq = seq - 1")


def another_ledger(home: Path) -> None:
    pointer = home / "kernel_registry" / "current.json"
    pointer.write_text(pointer.read_text().replace('"event_hash":"', '"event_hash":"0'))


def no_history(home: Path) -> None:
    (home / "kernel_registry" / "history.db").unlink()


def damaged_ledger(home: Path) -> None:
    ledger = home / "kernel_registry.db"
    ledger.write_bytes(ledger.read_bytes().replace(b'"origin":"', b'"origin":"X', 1))


def signed_further(home: Path) -> None:
    (kept,) = (home / "keys").glob("*.checkpoint")
    lines = kept.read_text().split("\n")
    kept.write_text("\n".join([lines[0], "999999", *lines[2:]]))


@pytest.mark.parametrize(
    "change",
    [
        *(broken_policy, dangling_policy, killed_process, another_version, behind, another_ledger, no_history),
        *(damaged_ledger, signed_further),
    ],
    ids=lambda change: change.__name__,
)
def test_whatever_is_unusual_is_left_to_the_whole_command(
    empty_workspace: Path, tmp_path: Path, change: object
) -> None:
    home = copied(empty_workspace, tmp_path / "home")
    ask("ledger", "checkpoint", "--home", home)
    ask("run", "list", "--home", home)
    assert quick(home, "run", "list") is not None
    change(home)  # type: ignore[operator]  # one of the functions above
    assert quick(home, "run", "list") is None


def test_after_a_clone_the_first_command_builds_the_tables_and_changes_nothing_else(
    shipped: Path, tmp_path: Path
) -> None:
    home = copied(shipped, tmp_path / "clone")
    published = home / "kernel_registry"
    (published / "history.db").unlink()
    before = {path: path.read_bytes() for path in published.rglob("*") if path.is_file()}
    assert quick(home, "run", "list") is None
    answered = ask("run", "list", "--home", home)
    assert answered.status == 0
    assert quick(home, "run", "list") == answered.out
    assert {path: path.read_bytes() for path in before} == before


def test_a_policy_is_read_once_and_again_after_a_change(empty: Path) -> None:
    policy = empty / "policy.toml"
    policy.write_text("process_pairs = 6\n")
    assert quick(empty, "run", "list") is None
    assert ask("run", "list", "--home", empty).status == 0
    assert quick(empty, "run", "list") is not None
    policy.write_text("process_pairs = 7\n")
    assert quick(empty, "run", "list") is None


WITHOUT_HOME = ("explain", "skill")


@pytest.mark.parametrize(
    "arguments",
    [
        *(("run", "list"), ("task", "show", "triton_softmax_h200_bf16_b16_h4096_0fa462bc"), ("token", "list")),
        *(("lesson", "list"), ("work", "list")),
        *(("audit", "why", KERNEL), ("audit", "history", KERNEL), ("audit", "doubts"), ("audit", "replication")),
        *(("audit", "sql", "SELECT 1"), ("notes", "softmax"), ("plan", "last"), ("explain", "COMPILE_ERROR")),
        *(("kernel", "history", KERNEL), ("run", "show", SEALED, "--log"), ("run", "check", SEALED)),
        *(("run", "diff", "r1", "r2"), ("prompt", "last"), ("ledger", "imported"), ("ledger", "key", "show")),
        *(
            ("task", "list", "--json"),
            ("ledger", "prove", KERNEL, "--out", "{home}/proof"),
            ("skill", "search", "row"),
        ),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_quick_answer_loads_neither_the_models_nor_a_parser(shipped: Path, arguments: Sequence[str]) -> None:
    import subprocess

    words = [word.format(home=shipped) for word in arguments]
    words += ["--home", str(shipped)] if arguments[0] not in WITHOUT_HOME and "--help" not in arguments else []
    script = (
        "import sys; from forge.__main__ import _answered_quickly, _status_of; "
        f"words = {words!r}; "
        "assert _answered_quickly(words) or _status_of(words) == 0; "
        "print(sorted({'pydantic', 'sqlmodel', 'torch', 'numpy', 'forge.events.every'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


SEARCHES = [
    ("row reduction",),
    ("softmax", "--json"),
    ("row", "--language", "triton"),
    ("kernel", "--json"),
    ("zzz",),
]
SKILLS = [
    ("list",),
    ("list", "--json"),
    *(("search", *words) for words in SEARCHES),
    *(("show", one.id) for one in embedded_skills()),
]


@pytest.mark.parametrize("arguments", [*SKILLS, ("show", "op.softmax", "--json")], ids=" ".join)
def test_a_skill_is_told_alike(
    arguments: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert quick_skill(arguments)
    found = capsys.readouterr().out
    tree_of("skill")(["skill", *arguments], standalone_mode=False)
    assert found == capsys.readouterr().out


def test_other_skills_and_mistakes_are_left_to_the_whole_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ("search",),
        ("search", "!!"),
        ("search", "x", "--language", "any"),
        ("search", "x", "-x"),
        ("search", "x", "--language", "pascal"),
    ):
        assert not quick_skill(arguments)
    for arguments in (("show", "op.none"), ("list", "--json", "--json"), ("list", "--packages", "."), ("show",), ()):
        assert not quick_skill(arguments)
    changed = tmp_path / "forge"
    (changed / "skills").mkdir(parents=True)
    (changed / "skills" / "op.softmax.md").write_text("+++\n+++\nother words\n")
    with monkeypatch.context() as patched:
        patched.setattr("forge.cli.quick_skills.PACKAGE", changed)
        assert not quick_skill(("show", "op.softmax"))
        assert not quick_skill(("show", "op.rope"))
    (tmp_path / "node_modules").mkdir()
    assert not quick_skill(("list",))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "arguments", [("list",), ("list", "--json"), ("show", "rmsnorm"), ("show", "rope", "--json")]
)
def test_an_operation_is_told_alike(empty: Path, arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import contextlib
    import io

    from forge.cli.quick_operations import quick_operation

    ask("run", "list", "--home", empty)
    monkeypatch.setenv("FORGE_HOME", str(empty))
    printed = [io.StringIO(), io.StringIO()]
    with contextlib.redirect_stdout(printed[0]):
        assert quick_operation(arguments)
    with contextlib.redirect_stdout(printed[1]):
        tree_of("op")(["op", *arguments], standalone_mode=False)
    assert printed[0].getvalue() == printed[1].getvalue()


def test_own_operations_and_mistakes_are_left_to_the_whole_command(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forge.cli.quick_operations import quick_operation

    ask("run", "list", "--home", empty)
    monkeypatch.setenv("FORGE_HOME", str(empty))
    for arguments in (
        ["show", "nope"],
        ["list", "--hom", "x"],
        ["list", "--json", "--json"],
        [],
        ["describe"],
        ["--help"],
    ):
        assert not quick_operation(arguments), arguments
    broken_policy(empty)
    assert not quick_operation(["list"])


def test_a_quick_answer_and_a_completion_leave_no_file_behind(empty: Path) -> None:
    from forge.app.stored.ledger_ids import known_names

    ask("run", "list", "--home", empty)
    before = sorted(path.relative_to(empty) for path in empty.rglob("*"))
    assert quick(empty, "run", "list") is not None
    known_names("run", str(empty))
    assert sorted(path.relative_to(empty) for path in empty.rglob("*")) == before


@pytest.mark.parametrize("module", ["forge.app.recommend", "forge.pipeline.skill_package", "forge.cli.explain"])
def test_commands_that_read_no_events_dont_load_their_models(module: str) -> None:
    import subprocess

    script = f"import sys, {module}; print('forge.events.every' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
