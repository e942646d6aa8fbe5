"""A command that was killed after its commit, and is given again, answers as it would have the first time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from tests.app.prepared import benchmarked_run, concluded, rejected_run, samples, submitted, verified, verified_run
from tests.app.test_crash import killed
from tests.cli.asking import HONEST, Answer, ask, copied, history, ledger_stands

TOLD = "recorded already"
LEFT_TO_DO = {"ExperimentClosed", "ClaimAssessed", "RunSealed", "CheckpointPublished"}
"""What follows a phase's own event."""


def repeated(home: Path, *command: object) -> Answer:
    """The command's answer where its event stands and nothing after it was done; nothing more is recorded."""
    before = history(home)
    answer = ask(*command, "--home", home, "--json")
    new = [one["type"] for one in history(home)[len(before) :]]
    assert set(new) <= LEFT_TO_DO, new
    assert ledger_stands(home)
    return answer


@pytest.mark.parametrize(
    ("prepare", "command", "status", "verdict"),
    [
        (verified_run, ("submit", "last", HONEST, "--author", "ada"), 0, "accepted"),
        (verified_run, ("verify", "last"), 0, "accepted"),
        (verified_run, ("verify", "last", "--again"), 0, "accepted"),
        (lambda home: rejected_run(home, seal=False), ("verify", "last"), 1, "rejected"),
        (benchmarked_run, ("bench", "last"), 0, "accepted"),
        (benchmarked_run, ("verify", "last"), 0, "accepted"),
    ],
    ids=["submit", "verify", "verify again", "verify, refused", "bench", "an earlier phase"],
)
def test_a_phase_that_is_over_answers_again(
    prepare: Callable[[Path], str], command: tuple[object, ...], status: int, verdict: str, home: Path
) -> None:
    prepare(home)
    answer = repeated(home, *command)
    assert (answer.status, answer.document["verdict"]) == (status, verdict), answer
    assert TOLD in answer.err


def test_a_benchmark_that_was_too_slow_says_so_again(home: Path) -> None:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        concluded(workspace, run_id, samples(candidate_ns=150_000))
    answer = repeated(home, "bench", "last")
    assert (answer.status, answer.document["reason"]["code"]) == (1, "TOO_SLOW")


def test_other_files_are_another_submission(home: Path, tmp_path: Path) -> None:
    verified_run(home)
    other = copied(HONEST, tmp_path / "other")
    (other / "kernel.py").write_text("# another\n")
    assert ask("submit", "last", other, "--author", "ada", "--home", home).status == 2


def test_a_run_that_was_given_up_answers_no_phase(home: Path) -> None:
    verified_run(home)
    abort = ("run", "abort", "last", "--reason", "wrong shape")
    assert ask(*abort, "--home", home).status == 0
    assert repeated(home, *abort).status == 0
    assert ask("run", "abort", "last", "--reason", "another", "--home", home).status == 2
    for command in (("submit", "last", HONEST, "--author", "ada"), ("verify", "last"), ("bench", "last")):
        assert ask(*command, "--home", home).status == 2


def test_a_pipeline_goes_on_where_it_was_killed(home: Path) -> None:
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        verified(workspace, run_id)
        concluded(workspace, run_id, samples())
    answer = ask("pipeline", "last", HONEST, "--author", "ada", "--home", home, "--json")
    assert answer.status == 0, answer
    assert answer.document["kernel_id"] is not None
    assert {name: one["verdict"] for name, one in answer.document["phases"].items()} == dict.fromkeys(
        ("submit", "verify", "bench", "promote"), "accepted"
    )
    assert answer.err.count(TOLD) == 3


def test_a_promotion_answers_again(home: Path) -> None:
    benchmarked_run(home)
    first = ask("promote", "last", "--home", home, "--json")
    again = repeated(home, "promote", "last")
    assert (again.status, again.document) == (0, first.document)


def test_a_decision_in_the_same_words_answers_again(home: Path) -> None:
    benchmarked_run(home)
    kernel = ask("promote", "last", "--home", home, "--json").document["kernel_id"]
    (seq,) = [one["seq"] for one in history(home) if one["type"] == "BenchmarkRecorded"]
    for command in (
        ("kernel", "deprecate", kernel, "--reason", "slower"),
        ("benchmark", "invalidate", seq, "--reason", "the GPU was shared"),
        (
            "kernel",
            "revoke",
            kernel,
            "--reason",
            "wrong",
            "--severity",
            "wrong_result",
            "--evidence",
            HONEST / "kernel.py",
        ),
    ):
        first = ask(*command, "--home", home, "--json")
        assert first.status == 0, first
        again = repeated(home, *command)
        assert again.status == 0, again
        same = set(first.document) - {"signed_size", "kernels"}
        assert {name: again.document[name] for name in same} == {name: first.document[name] for name in same}
    assert ask("kernel", "revoke", kernel, "--reason", "other words", "--home", home).status == 1


@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "rotate-key"),
        ("ledger", "checkpoint"),
        ("run", "abort", "last", "--reason", "x"),
    ],
)
def test_a_command_that_was_killed_anywhere_can_be_given_again(
    command: tuple[str, ...], home: Path, tmp_path: Path
) -> None:
    for crashed in killed(home, tmp_path / "killed", *command, most=8):
        assert ask(*command, "--home", crashed).status == 0
        assert ledger_stands(crashed)
