"""Taking a kernel back, from the command line: who may not answer any more, who says so, and what is refused."""

import json
import multiprocessing
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from forge.app.kernels import decisions
from forge.app.workspace import Workspace
from forge.errors import AlreadyDecided, ConcurrencyConflict, RunNotFound, UnknownName, WorkspaceNotFound
from forge.events import KernelRevoked
from forge.lookup import Policy, Registry
from forge.projections.run_lookup import the_run
from tests.app.prepared import benchmarked_run, rejected_run
from tests.app.test_crash import killed
from tests.cli.asking import SHAPE, Answer, ask, built_once, copied, create_task, history, ledger_stands
from tests.full_disk import refuse

SIZES = {"batch": 16, "hidden_size": 4096}
SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)
FIRST = "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
SECOND = "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v2"


@pytest.fixture(scope="session")
def two_kernels(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace with two promoted versions of one family; to be copied, never changed."""

    def build(folder: Path) -> None:
        copied(open_workspace, folder)
        for number in range(2):
            if number:
                create_task(folder)
            benchmarked_run(folder)
            assert ask("promote", "last", "--home", folder).status == 0

    return built_once(tmp_path_factory, "two_kernels", build)


@pytest.fixture
def kept(two_kernels: Path, tmp_path: Path) -> Path:
    return copied(two_kernels, tmp_path / "kept")


def answered(home: Path, *, deprecated: bool = False) -> str | None:
    found = Registry.open(home).lookup(
        op="fused_add_rmsnorm", gpu="cpu", dtype="fp32", shape=SIZES, policy=Policy(deprecated=deprecated)
    )
    return found.kernel.kernel_id if found.kernel else None


def revoke(home: Path, kernel_id: str = FIRST, *more: object):
    return ask("kernel", "revoke", kernel_id, "--reason", "wrong at odd widths", "--home", home, "--json", *more)


def test_a_revoked_kernel_does_not_answer_once_the_command_has_ended(kept: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    report.write_text("row 3")
    assert answered(kept) == FIRST
    answer = revoke(kept, FIRST, "--severity", "wrong_result", "--evidence", 4, "--evidence", report)
    assert (answer.status, answer.document["status"]) == (0, "revoked")
    assert answer.last == f"next: forge kernel history {FIRST}"
    assert answered(kept) == SECOND
    (event,) = [one for one in history(kept) if one["type"] == "KernelRevoked"]
    fourth = history(kept)[3]["event_hash"]
    digest = sha256(b"row 3").hexdigest()
    assert event["actor"].startswith("cli:")
    assert event["payload"] == {
        "kernel_id": FIRST,
        "family": FIRST.removesuffix("_v1"),
        "reason": "wrong at odd widths",
        "severity": "wrong_result",
        "evidence": [f"event:4:{fourth}", f"sha256:{digest}"],
    }
    assert (kept / "forge_runs" / "cas" / digest[:2] / digest).read_bytes() == b"row 3"
    assert ledger_stands(kept)


def test_a_revocation_is_signed(kept: Path) -> None:
    revoked = revoke(kept).document
    last = history(kept)[-1]
    assert (last["type"], last["payload"]["size"]) == ("CheckpointPublished", revoked["seq"])
    assert revoked["signed_size"] == revoked["seq"]
    assert (kept / "kernel_registry" / "checkpoint").read_text() == last["payload"]["note"]


@pytest.mark.parametrize(
    "decide",
    [
        lambda home, *more: ask("kernel", "revoke", FIRST, "--reason", "x", "--home", home, *more),
        lambda home, *more: ask("kernel", "deprecate", FIRST, "--reason", "x", "--home", home, *more),
        lambda home, *more: ask(
            *("benchmark", "invalidate", benchmark_of(home, FIRST), "--reason", "x", "--home", home), *more
        ),
    ],
    ids=["revoke", "deprecate", "invalidate"],
)
def test_a_decision_without_the_private_key_says_that_it_is_unsigned(
    decide: Callable[..., Answer], kept: Path, tmp_path: Path
) -> None:
    unsigned = copied(kept, tmp_path / "unsigned")
    for key in (unsigned / "keys").glob("*.key"):
        key.unlink()
    answer = decide(unsigned, "--json")
    assert (answer.status, answer.document["signed_size"]) == (0, None)
    said = f"note: the private key isn't here, so event {answer.document['seq']} is unsigned: "
    assert said + "forge ledger key import FILE imports it, forge ledger checkpoint --new-key makes" in answer.err
    assert "unsigned" not in decide(kept).err


@pytest.mark.parametrize("has_key", [True, False])
def test_a_promotion_says_whether_it_is_signed(has_key: bool, home: Path) -> None:
    benchmarked_run(home)
    if not has_key:
        for key in (home / "keys").glob("*.key"):
            key.unlink()
    answer = ask("promote", "last", "--home", home, "--json")
    assert answer.status == 0
    assert answer.document["signed_size"] == (answer.document["seq"] if has_key else None)
    assert ("is unsigned" in answer.err) is not has_key


@pytest.mark.parametrize("what", ["published files", "history.db"])
@pytest.mark.parametrize("decision", ["revoke", "deprecate", "invalidate"])
def test_a_decision_that_cannot_be_published_is_said_to_be_recorded_and_leaves_no_lookup(
    what: str, decision: str, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = len(history(kept))
    command: tuple[object, ...] = ("kernel", decision, FIRST)
    if decision == "invalidate":
        command = ("benchmark", "invalidate", benchmark_of(kept, FIRST))
    with monkeypatch.context() as disk:
        refuse(disk, what)
        answer = ask(*command, "--reason", "wrong at odd widths", "--home", kept)
        asked = ask("lookup", *SLOT, "--home", kept)
    assert answer.status == 1
    assert f"event {head + 1} (" in answer.error
    assert ") is recorded, but couldn't be published" in answer.error
    assert "nothing was written" not in answer.error
    assert answer.last == "try: forge ledger rebuild"
    assert asked.status != 0
    with pytest.raises(WorkspaceNotFound):
        Registry.open(kept)
    assert ask("ledger", "rebuild", "--home", kept).status == 0
    assert answered(kept) == SECOND
    assert ledger_stands(kept)


def test_a_second_revocation_says_so_and_records_nothing(kept: Path) -> None:
    assert revoke(kept).status == 0
    events = history(kept)
    again = ask("kernel", "revoke", FIRST, "--reason", "another", "--home", kept)
    assert (again.status, again.out) == (1, "")
    assert "revoked already (event" in again.error
    assert again.last == f"try: forge kernel history {FIRST}"
    deprecated = ask("kernel", "deprecate", FIRST, "--reason", "old", "--home", kept)
    assert deprecated.status == 1
    assert "revoked already" in deprecated.error
    assert history(kept) == events


def test_an_id_is_not_used_again_after_a_revocation(kept: Path) -> None:
    revoke(kept, SECOND)
    create_task(kept)
    benchmarked_run(kept)
    promoted = ask("promote", "last", "--home", kept, "--json").document
    assert promoted["kernel_id"] == SECOND.replace("_v2", "_v3")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((FIRST + "0", "--reason", "x"), FIRST),
        (("gelu", "--reason", "x"), "unknown kernel 'gelu'"),
        ((FIRST, "--reason", ""), "bad reason"),
        ((FIRST, "--reason", "   "), "bad reason"),
        ((FIRST, "--reason", "two\nlines"), "bad reason"),
        ((FIRST, "--reason", "x" * 1001), "bad reason"),
        ((FIRST, "--reason", "x", "--severity", "bad"), "wrong_result"),
        ((FIRST, "--reason", "x", "--evidence", "0"), "no event 0"),
        ((FIRST, "--reason", "x", "--evidence", "9999"), "no event 9999"),
        ((FIRST, "--reason", "x", "--evidence", "9" * 5000), f"no event {'9' * 20}: expected"),
        ((FIRST, "--reason", "x", "--evidence", "nowhere.txt"), "nowhere.txt"),
        ((FIRST, "--reason", "x", *(("--evidence", "1") * 33)), "at most 32"),
    ],
)
def test_a_revocation_with_bad_input_records_nothing(arguments: tuple[str, ...], complaint: str, kept: Path) -> None:
    events = history(kept)
    answer = ask("kernel", "revoke", *arguments, "--home", kept)
    assert answer.status == 2
    assert complaint in answer.error
    assert history(kept) == events
    assert answered(kept) == FIRST


def test_of_many_names_a_few_are_said_and_the_command_that_lists_them_all() -> None:
    known = [f"kernel_{number}" for number in range(9)]
    few = UnknownName("kernel", "x", known[:5], listed_by="forge kernel list")
    assert few.message == f"unknown kernel 'x': expected one of {', '.join(known[:5])}"
    many = UnknownName("kernel", "x", known, near=("kernel_8",), listed_by="forge kernel list")
    assert many.message == (
        "unknown kernel 'x': expected one of kernel_8, kernel_0, kernel_1, kernel_2, kernel_3, or of 4 more, "
        "which forge kernel list lists"
    )
    assert many.hint == few.hint == "forge kernel list"
    assert len(UnknownName("kernel", "x", known).message.split(",")) == 9


def test_runs_that_a_beginning_may_mean_are_counted() -> None:
    with pytest.raises(RunNotFound, match=r"5 runs start \(a1, a2, a3, and 2 more, which forge run list lists\)"):
        the_run(["a1", "a2", "a3", "a4", "a5", "b"], "a")
    with pytest.raises(RunNotFound, match=r"2 runs start \(a1, a2\) with"):
        the_run(["a1", "a2"], "a")


def test_nothing_can_be_taken_back_where_nothing_was_promoted(home: Path) -> None:
    for command in (("kernel", "revoke"), ("kernel", "deprecate"), ("kernel", "history"), ("kernel", "show")):
        reason = ("--reason", "x") if command[1] in ("revoke", "deprecate") else ()
        answer = ask(*command, FIRST, *reason, "--home", home)
        assert (answer.status, answer.last) == (2, "try: forge run list")


def test_a_deprecated_kernel_answers_only_if_asked_for_and_nothing_else_does(kept: Path) -> None:
    def deprecate(kernel_id: str, *more: str):
        return ask("kernel", "deprecate", kernel_id, "--reason", "slower", "--home", kept, "--json", *more)

    assert deprecate(FIRST, "--superseded-by", SECOND).document["superseded_by"] == SECOND
    assert answered(kept) == answered(kept, deprecated=True) == SECOND
    assert deprecate(FIRST).status == 1
    assert deprecate(SECOND).status == 0
    assert answered(kept) is None
    assert answered(kept, deprecated=True) == FIRST
    assert ask("lookup", *SLOT, "--home", kept).status == 1
    assert ask("lookup", *SLOT, "--deprecated", "--home", kept, "--json").document["kernel_id"] == FIRST
    shown = ask("kernel", "show", FIRST, "--home", kept, "--json").document
    assert (shown["status"], shown["superseded_by"]) == ("deprecated", SECOND)


@pytest.mark.parametrize("successor", [FIRST, SECOND + "9", "revoked"])
def test_a_successor_must_be_another_kernel_that_answers(successor: str, kept: Path) -> None:
    if successor == "revoked":
        successor = SECOND
        revoke(kept, SECOND)
    events = history(kept)
    answer = ask("kernel", "deprecate", FIRST, "--reason", "x", "--superseded-by", successor, "--home", kept)
    assert (answer.status, answer.last) == (2, "try: forge kernel list")
    assert history(kept) == events


def benchmark_of(home: Path, kernel_id: str) -> int:
    seq: int = ask("kernel", "show", kernel_id, "--home", home, "--json").document["benchmark_seq"]
    return seq


def test_a_withdrawn_benchmark_names_the_kernels_that_stood_on_it_and_they_stop_answering(kept: Path) -> None:
    seq = benchmark_of(kept, FIRST)
    answer = ask("benchmark", "invalidate", seq, "--reason", "the GPU was shared", "--home", kept, "--json")
    assert answer.document["kernels"] == [{"kernel_id": FIRST, "status": "evidence_invalid"}]
    assert f"forge kernel revoke {FIRST} --severity evidence_invalid" in answer.last
    assert answered(kept, deprecated=True) == SECOND
    (event,) = [one for one in history(kept) if one["type"] == "BenchmarkInvalidated"]
    assert event["payload"]["by"] == event["actor"]
    assert history(kept)[-1]["type"] == "CheckpointPublished"
    events = history(kept)
    again = ask("benchmark", "invalidate", seq, "--reason", "again", "--home", kept)
    assert again.status == 1
    assert "the GPU was shared" in again.error
    assert history(kept) == events
    assert revoke(kept, FIRST, "--severity", "evidence_invalid").status == 0
    assert ledger_stands(kept)


@pytest.mark.parametrize("seq", [1, 9999])
def test_only_a_benchmark_can_be_withdrawn(seq: int, kept: Path) -> None:
    answer = ask("benchmark", "invalidate", seq, "--reason", "x", "--home", kept)
    assert (answer.status, answer.last) == (2, "try: forge ledger log --type BenchmarkRecorded")
    assert str(seq) in answer.error


def test_a_withdrawn_benchmark_promotes_nothing(home: Path) -> None:
    benchmarked_run(home)
    (seq,) = [one["seq"] for one in history(home) if one["type"] == "BenchmarkRecorded"]
    withdrawn = ask("benchmark", "invalidate", seq, "--reason", "x", "--home", home, "--json")
    assert withdrawn.document["kernels"] == []
    assert ask("promote", "last", "--home", home).status == 1
    assert answered(home) is None


def test_a_kernels_history_goes_from_its_task_to_its_revocation(kept: Path) -> None:
    seq = benchmark_of(kept, FIRST)
    ask("benchmark", "invalidate", seq, "--reason", "the GPU was shared", "--home", kept)
    revoke(kept)
    found = ask("kernel", "history", FIRST, "--home", kept, "--json").document
    events = {one["seq"]: one for one in history(kept)}
    assert [one["seq"] for one in found["events"]] == sorted(one["seq"] for one in found["events"])
    assert all(one["event_hash"] == events[one["seq"]]["event_hash"] for one in found["events"])
    types = [one["type"] for one in found["events"]]
    assert types[0] == "TaskCreated"
    assert types[-2:] == ["BenchmarkInvalidated", "KernelRevoked"]
    assert set(types) >= {
        *("RunStarted", "PlanAccepted", "PromptRendered", "CandidateSubmitted", "CandidateVerified"),
        *("BaselineRecorded", "BenchmarkRecorded", "KernelPromoted", "RunSealed"),
    }
    assert (found["status"], found["status_reason"]) == ("revoked", "withdrawn: wrong at odd widths")
    table = ask("kernel", "history", FIRST, "--home", kept)
    assert table.status == 0
    assert "KernelRevoked" in table.out


def test_rejections_are_counted_and_listed_and_filtered(home: Path) -> None:
    rejected_run(home)
    task_id = history(home)[-2]["payload"].get("task_id") or next(
        one["payload"]["task_id"] for one in history(home) if one["type"] == "TaskCreated"
    )
    found = ask("audit", "rejections", "--home", home, "--json").document
    assert (found["refused"], found["rows"]) == (
        1,
        [{"code": "INCORRECT_NUMERICAL", "refused": 1, "inconclusive": 0}],
    )
    assert found["newest"][0]["message"] == "3.2 x the bound"
    for by, name in (("gate", None), ("task", task_id)):
        counts = ask("audit", "rejections", "--by", by, "--home", home, "--json").document["rows"]
        assert counts == [{by: name, "refused": 1, "inconclusive": 0}]
    assert ask("audit", "rejections", "--task", task_id, "--home", home, "--json").document["refused"] == 1
    assert ask("audit", "rejections", "--task", "other", "--home", home).status == 2
    for option, value in (("--code", "TOO_SLOW"), ("--gate", "numerics")):
        assert ask("audit", "rejections", option, value, "--home", home, "--json").document["refused"] == 0
    assert ask("audit", "rejections", "--limit", 0, "--home", home, "--json").document["newest"] == []
    assert ask("audit", "rejections", "--code", "NOPE", "--home", home).status == 2
    assert "INCORRECT_NUMERICAL" in ask("audit", "rejections", "--home", home).out


def test_a_revocation_that_was_killed_ends_in_one_revocation_that_is_published(kept: Path, tmp_path: Path) -> None:
    seen = set()
    command = ("kernel", "revoke", FIRST, "--reason", "wrong")
    for crashed in killed(kept, tmp_path / "killed", *command, most=10):
        recorded = sum(one["type"] == "KernelRevoked" for one in history(crashed))
        seen.add(recorded)
        again = ask(*command, "--home", crashed)
        assert again.status == 0
        assert [one["type"] for one in history(crashed)].count("KernelRevoked") == 1
        assert answered(crashed) == SECOND
        assert ledger_stands(crashed)
    assert seen == {0, 1}, "killed before and after"


def decide(home: Path, number: int, start, answers) -> None:
    start.wait(120)
    try:
        with Workspace.open(home) as workspace:
            decisions.revoke(workspace, FIRST, reason=f"by {number}", severity="unsafe")
        answers.put("revoked")
    except (AlreadyDecided, ConcurrencyConflict) as error:
        answers.put(error.code)


def test_of_many_who_revoke_at_once_one_is_recorded(kept: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, answers = context.Event(), context.Queue()
    askers = [context.Process(target=decide, args=(kept, number, start, answers)) for number in range(4)]
    for asker in askers:
        asker.start()
    start.set()
    said = [answers.get(timeout=120) for _ in askers]
    for asker in askers:
        asker.join(120)
    assert said.count("revoked") == 1
    with Workspace.open(kept) as workspace:
        revoked = [one for one in workspace.ledger.read() if isinstance(one.event, KernelRevoked)]
    assert len(revoked) == 1


def test_a_registry_that_was_edited_back_is_put_right_by_a_rebuild(kept: Path) -> None:
    revoke(kept)
    documents = kept / "kernel_registry" / "verified_kernels.json"
    edited = documents.read_bytes().replace(b'"revoked"', b'"active"')
    documents.write_bytes(edited)
    compared = ask("ledger", "rebuild", "--home", kept, "--json").document["files"]
    assert [one["file"] for one in compared if one["state"] != "identical"] == ["verified_kernels.json"]
    assert {entry["status"] for entry in json.loads(documents.read_bytes())["kernels"]} == {"revoked", "active"}


@pytest.mark.parametrize("decision", ["revoke", "deprecate", "invalidate"])
def test_a_dry_run_says_what_would_be_withdrawn_and_records_nothing(
    decision: str, two_kernels: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.txt"
    report.write_text("wrong at odd widths, in a file that only a dry run saw")
    command: tuple[object, ...] = ("kernel", decision, FIRST)
    if decision == "invalidate":
        command = ("benchmark", "invalidate", benchmark_of(two_kernels, FIRST))
    elif decision == "revoke":
        command += ("--evidence", report)
    before, stored = history(two_kernels), set((two_kernels / "forge_runs" / "cas").rglob("*"))
    for more in ((), ("--json",)):
        shown = ask(*command, "--reason", "wrong", "--dry-run", "--home", two_kernels, *more)
        assert shown.status == 0
        assert FIRST in shown.out
        assert "nothing was recorded" in shown.err
        assert "--dry-run" not in shown.last
    assert shown.document["recorded"] is False
    assert history(two_kernels) == before
    assert set((two_kernels / "forge_runs" / "cas").rglob("*")) == stored
    wrong = ask("kernel", "revoke", "no_kernel_v1", "--reason", "wrong", "--dry-run", "--home", two_kernels)
    assert wrong.status == 2
