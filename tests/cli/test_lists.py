"""Lists can be filtered, ordered and cut, and runs have short numbers."""

import shlex
import shutil
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.cli.kernel_summary import resident_interval
from tests.app.prepared import benchmarked_run
from tests.cli.asking import ask, copied
from tests.shipped import copy_shipped_ledger

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the ledger that ships, with 91 runs."""
    folder = copy_shipped_ledger(tmp_path_factory.mktemp("home"))
    shutil.copytree(ROOT / "kernel_registry", folder / "kernel_registry")
    with Workspace.open(folder):
        pass
    return folder


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace with one promoted kernel, of the operation fused_add_rmsnorm on the processor."""
    folder = copied(open_workspace, tmp_path_factory.mktemp("promoted") / "home")
    benchmarked_run(folder)
    assert ask("promote", "last", "--home", folder).status == 0
    return folder


def column(home: Path, *asked: str, name: str) -> list[object]:
    return [row[name] for row in ask(*asked, "--home", home, "--json").document]


def test_runs_are_filtered_ordered_and_cut(home: Path) -> None:
    every = column(home, "run", "list", name="number")
    assert every == list(range(1, len(every) + 1))
    assert column(home, "run", "list", "--sort", "-run", "--limit", "3", name="number") == every[:-4:-1]
    assert set(column(home, "run", "list", "--state", "promoted", name="state")) == {"promoted"}
    tasks = column(home, "run", "list", "--task", "cuda_", name="task_id")
    assert tasks
    assert all(str(task).startswith("cuda_") for task in tasks)
    assert "no run is of a task that begins with 'kuda_'" in ask("run", "list", "--task", "kuda_", "--home", home).err


def test_kernels_are_filtered_and_ordered_by_what_the_table_shows(home: Path) -> None:
    fastest = ask("kernel", "list", "--sort", "-speedup", "--op", "softmax", "--home", home, "--json").document
    ratios = [one["benchmark"]["speedup"] for one in fastest]
    assert ratios == sorted(ratios, reverse=True) != []
    assert {one["op"] for one in fastest} == {"softmax"}


def test_kernels_show_and_are_ordered_by_the_speedup_with_resident_operands(home: Path) -> None:
    asked = ("kernel", "list", "--sort", "-resident", "--home", home)
    intervals = [resident_interval(one) for one in ask(*asked, "--json").document]
    ratios = [0.0 if one is None else one["ratio"] for one in intervals]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > ratios[-1] == 0.0
    table = ask(*asked).out
    assert f" {ratios[0]:.3f}x " in table
    assert " - " in table


def test_tasks_are_filtered(home: Path) -> None:
    assert set(column(home, "task", "list", "--op", "rmsnorm", "--gpu", "h200", name="op")) == {"rmsnorm"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("run", "list", "--state", "promotd"), "nearest: promoted"),
        (("run", "list", "--sort", "stat"), "nearest: state"),
        (("kernel", "list", "--status", "activ"), "nearest: active"),
        (("task", "list", "--op", "rmsnrm"), "nearest: rmsnorm"),
        (("run", "list", "--limit", "0"), "--limit"),
    ],
)
def test_an_unknown_value_is_answered_with_the_nearest(home: Path, asked: tuple[str, ...], said: str) -> None:
    answer = ask(*asked, "--home", home)
    assert answer.status == 2
    assert said in answer.error


@pytest.mark.parametrize(
    "asked",
    [
        ("run", "list", "--state", "benchmarked"),
        ("kernel", "list", "--status", "revoked"),
        ("kernel", "list", "--op", "softmax"),
        ("kernel", "list", "--gpu", "h200"),
        ("task", "list", "--op", "softmax"),
        ("task", "list", "--gpu", "h200"),
    ],
)
def test_a_known_value_that_nothing_has_gives_an_empty_list(promoted: Path, asked: tuple[str, ...]) -> None:
    answer = ask(*asked, "--json", "--home", promoted)
    assert (answer.status, answer.document) == (0, [])
    assert f"note: nothing here has the {asked[2].removeprefix('--').replace('op', 'operation')} " in answer.err


def test_a_list_knows_a_gpu_by_any_of_its_names(home: Path) -> None:
    named = column(home, "task", "list", "--gpu", "NVIDIA H200", name="task_id")
    assert named == column(home, "task", "list", "--gpu", "h200", name="task_id") != []


def test_a_runs_number_names_it(home: Path) -> None:
    listed = ask("run", "list", "--home", home, "--json").document
    (second,) = [one for one in listed if one["number"] == 2]
    with Workspace.open(home) as workspace:
        assert workspace.find_run("r2").run_id == second["run_id"]
    refused = ask("run", "show", f"r{len(listed) + 1}", "--home", home)
    assert (refused.status, f"there are {len(listed)} runs" in refused.error) == (2, True)
    assert refused.last.startswith("try: forge run list")


def test_the_newest_events_can_be_asked_for(home: Path) -> None:
    newest = column(home, "ledger", "log", "--last", "3", name="seq")
    every = column(home, "ledger", "log", name="seq")
    assert newest == every[-3:]


def test_a_table_of_events_has_the_newest_ones_and_says_so(home: Path) -> None:
    whole = ask("ledger", "log", "--home", home, "--after", "0").out.splitlines()
    newest = ask("ledger", "log", "--home", home)
    cells = [[line.split() for line in lines[-50:]] for lines in (newest.out.splitlines(), whole)]
    assert cells[0] == cells[1], "columns are as wide as what is shown"
    assert len(newest.out.splitlines()) < 60 < len(whole)
    assert "these are the newest 50 events" in newest.err
    assert len(ask("ledger", "log", "--home", home, "--json").document) > 50


def test_facts_of_a_proof_are_written_for_people(home: Path, tmp_path: Path) -> None:
    kernel = ask("kernel", "list", "--home", home, "--json").document[0]["kernel_id"]
    answer = ask("ledger", "prove", kernel, "--home", home, "--out", tmp_path / "proof")
    assert "False" not in answer.out
    assert "[" not in answer.out
    checked = ask(*shlex.split(answer.last.removeprefix("next: forge ")))
    assert checked.status == 0, checked
    assert "The proof holds" in checked.out


def test_a_proof_of_a_kernel_that_is_not_on_offer_says_so(home: Path, tmp_path: Path) -> None:
    for one in ask("kernel", "list", "--home", home, "--json").document[:40:13]:
        answer = ask("ledger", "prove", one["kernel_id"], "--home", home, "--out", tmp_path / "proof")
        assert (f"note: this kernel is {one['status']} now" in answer.err) == (one["status"] != "active")


def test_a_ledgers_file_is_no_workspace_and_its_folder_is_named(home: Path) -> None:
    answer = ask("run", "list", "--home", home / "kernel_registry.db")
    assert answer.status == 2
    assert f"try: forge run list --home {home}\n" in answer.err
