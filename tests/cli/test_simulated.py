"""A verdict says what it rests on: an interpreter in place of the target, a gate that wasn't asked, a build alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forge.app.machine.doctor import language_here
from forge.lab.device.toolkit import has_toolkit
from forge.languages import LANGUAGES
from tests.cli.asking import EXAMPLES, ask, history, task_of

TRITON, CUDA = EXAMPLES / "honest_triton", EXAMPLES / "h200" / "rmsnorm_cuda"
SMALL = ("--shape", "batch=2,hidden_size=64")
WRONG_SUM = ("tl.sum(", "0.5 * tl.sum(")


def submitted(home: Path, folder: Path) -> None:
    assert ask("submit", "last", folder, "--home", home).status == 0


def tritontask_of(home: Path) -> None:
    asked = ("--op", "fused_add_rmsnorm", "--language", "triton", "--gpu", "h200", "--dtype", "fp32", *SMALL)
    assert ask("task", "create", *asked, "--home", home).status == 0


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    return {gate["name"]: gate["verdict"] for gate in answer["gates"]}


def test_an_interpreters_acceptance_is_called_simulated_wherever_it_is_shown(empty: Path) -> None:
    tritontask_of(empty)
    submitted(empty, TRITON)
    shown = ask("verify", "last", "--home", empty)
    if shown.status == 3:
        pytest.skip(shown.error)
    assert "accepted (SIMULATED)" in shown.out
    assert "SIMULATED: an interpreter ran the kernel" in shown.err
    (task,) = ask("task", "list", "--home", empty, "--json").document
    assert f"next: forge run open {task['task_id']}" in shown.err, "it can't be timed here"
    found = ask("verify", "last", "--home", empty, "--json").document
    assert (found["simulated"], verdicts(found)["leaks"], verdicts(found)["endurance"]) == (True, *["not asked"] * 2)
    assert "not asked" in shown.out
    assert "verified (SIMULATED)" in ask("run", "show", "last", "--home", empty).out
    assert ask("run", "show", "last", "--home", empty, "--json").document["simulated"] is True
    assert "verified (SIMULATED)" in ask("run", "list", "--home", empty).out
    (run,) = ask("run", "list", "--home", empty, "--json").document
    report = json.loads((empty / "forge_runs" / f".tmp-{run['run_id']}" / "verification_report.json").read_text())
    assert report["simulated"] is True
    effect = ask("audit", "effectiveness", "--home", empty, "--json").document
    assert [(row["simulated"], row["verified"]) for row in effect["rows"]] == [(1, 0)]
    is_never_timed(empty, run["run_id"])


def is_never_timed(home: Path, run_id: str) -> None:
    """Neither a benchmark nor a promotion follows from what an interpreter saw, and nothing is recorded."""
    events = history(home)
    assert events[-1]["payload"]["simulated"] is True
    timed = ask("bench", "last", "--home", home, "--json")
    assert timed.status == 3
    assert "interpreter" in timed.error
    assert "bench on the target itself" in timed.error
    assert timed.last == "try: forge doctor"
    assert history(home) == events
    assert ask("run", "show", run_id, "--home", home, "--json").document["state"] == "verified"
    assert ask("promote", "last", "--home", home).status == 2


def test_an_interpreters_refusal_is_called_simulated_wherever_it_is_shown(empty: Path, tmp_path: Path) -> None:
    tritontask_of(empty)
    wrong = Path(shutil.copytree(TRITON, tmp_path / "wrong"))
    text = (wrong / "kernel.py").read_text()
    assert WRONG_SUM[0] in text
    (wrong / "kernel.py").write_text(text.replace(*WRONG_SUM))
    submitted(empty, wrong)
    shown = ask("verify", "last", "--home", empty)
    if shown.status == 3:
        pytest.skip(shown.error)
    assert "rejected (SIMULATED)" in shown.out
    assert "SIMULATED" in ask("run", "list", "--home", empty).out
    assert "SIMULATED" in ask("audit", "experiments", "--home", empty).out
    assert "SIMULATED" in ask("audit", "rejections", "--home", empty).out
    assert "SIMULATED" in ask("notes", "fused_add_rmsnorm", "--home", empty).out
    tritontask_of(empty)
    assert ", SIMULATED |" in ask("prompt", "last", "--home", empty).out


@pytest.mark.skipif(not has_toolkit(), reason="no CUDA toolkit here")
def test_a_cuda_candidate_is_compiled_without_a_gpu_and_its_compiler_is_heard(empty: Path, tmp_path: Path) -> None:
    asked = ("--op", "rmsnorm", "--language", "cuda", "--gpu", "h200", "--dtype", "bf16")
    assert ask("task", "create", *asked, "--shape", "batch=16,hidden_size=4096", "--home", empty).status == 0
    broken = Path(shutil.copytree(CUDA, tmp_path / "broken"))
    text = (broken / "kernel.py").read_text()
    (broken / "kernel.py").write_text(text.replace("__global__", "__global_", 1))
    submitted(empty, broken)
    refused = ask("verify", "last", "--home", empty, "--json")
    if refused.status == 3:
        pytest.skip(refused.error)
    assert refused.status == 1
    assert (refused.document["reason"]["code"], refused.document["simulated"]) == ("COMPILE_ERROR", False)
    assert ask("run", "open", refused.document and task_of(empty), "--home", empty).status == 0
    submitted(empty, CUDA)
    events = history(empty)
    unfit = ask("verify", "last", "--home", empty)
    assert unfit.status == 3
    if "nor can they be built here" in unfit.error:
        pytest.skip(unfit.error)  # a busy machine
    assert "build passed" in unfit.error
    assert "expected a h200" in unfit.error
    assert history(empty) == events


def test_doctor_says_what_can_be_built_verified_and_timed_each_by_itself() -> None:
    everything = frozenset(need for language in LANGUAGES.values() for need in language.needs)
    here = {name: language_here(LANGUAGES[name], present=everything, gpu=False) for name in ("cuda", "triton", "cpp")}
    told = {
        name: [fact[key] for key in ("builds_here", "verifies_here_on", "times_here_on")]
        for name, fact in here.items()
    }
    assert told == {"cuda": [True, [], []], "triton": [None, [], []], "cpp": [True, ["cpu"], ["cpu"]]}
    assert [here[name]["ready"] for name in ("cuda", "triton", "cpp")] == [False, True, True]
    assert here["triton"]["simulates_here_on"] == ["cpu"]
    assert here["cuda"]["lacks"] == ["an NVIDIA GPU"]
    without = language_here(LANGUAGES["cuda"], present=everything - {"the CUDA toolkit"}, gpu=True)
    assert (without["builds_here"], without["verifies_here_on"]) == (False, [])
    on_a_gpu = language_here(LANGUAGES["cuda"], present=everything, gpu=True)
    assert (on_a_gpu["verifies_here_on"], on_a_gpu["lacks"]) == (["cuda"], [])
    shown, found = ask("doctor"), ask("doctor", "--json").document
    assert set(found["languages"]["cuda"]) >= {"builds_here", "verifies_here_on", "times_here_on", "lacks"}
    assert "isolation lacks" in shown.out


def test_a_policy_file_that_is_a_dangling_link_is_refused(home: Path, tmp_path: Path) -> None:
    (home / "policy.toml").unlink()
    (home / "policy.toml").symlink_to(tmp_path / "gone.toml")
    refused = ask("run", "list", "--home", home)
    assert refused.status == 2
    assert "is a link to" in refused.error
    assert "gone.toml" in refused.error
    (tmp_path / "gone.toml").write_text("rounds = 4\n")
    assert ask("run", "list", "--home", home).status == 0


def test_an_import_without_a_key_says_that_only_the_bundle_vouches_for_itself(home: Path, tmp_path: Path) -> None:
    bundle, elsewhere = tmp_path / "b.bundle", tmp_path / "elsewhere"
    vkey = home / "kernel_registry" / "ledger.vkey"
    key = ask("ledger", "export", bundle, "--home", home, "--json").document["key"]
    for place in (elsewhere, tmp_path / "third"):
        assert ask("init", place).status == 0
    first = ask("ledger", "import", bundle, "--home", elsewhere, "--json")
    assert first.document["key_trusted_from"] == "the bundle itself"
    assert "WARNING: no --key was given" in first.err
    assert key in first.err
    again = ask("ledger", "import", bundle, "--home", elsewhere, "--json")
    assert (again.document["key_trusted_from"], "WARNING" in again.err) == ("an earlier import", False)
    named = ask("ledger", "import", bundle, "--key", vkey, "--home", tmp_path / "third", "--json")
    assert (named.document["key_trusted_from"], "WARNING" in named.err) == ("--key", False)
