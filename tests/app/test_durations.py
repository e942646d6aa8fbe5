"""A phase's remaining time is that of earlier phases like it; a file that can't be read says nothing."""

from pathlib import Path

import pytest

from forge.app.phases.durations import FILE, MOST_KEPT, Durations, Subject

RMSNORM, SOFTMAX = Subject("rmsnorm", "cpp", "cpu"), Subject("softmax", "cpp", "cpu")


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def phase(folder: Path, subject: Subject = RMSNORM, name: str = "verify") -> tuple[Durations, Clock]:
    clock = Clock()
    return Durations(folder / FILE, name, subject, clock), clock


def ran(folder: Path, *, gates: float, rest: float, passed: bool = True, subject: Subject = RMSNORM) -> None:
    """Let a phase take `gates` seconds for its first step, and `rest` for the others."""
    earlier, clock = phase(folder, subject)
    earlier.begin("build")
    clock.now_s = gates
    earlier.begin("numerics")
    clock.now_s += rest
    earlier.keep(passed=passed)


def test_what_is_left_is_what_earlier_phases_took_from_this_step_on(tmp_path: Path) -> None:
    for rest in (30.0, 40.0, 90.0):
        ran(tmp_path, gates=10, rest=rest)
    now, clock = phase(tmp_path)
    now.begin("build")
    assert now.left_s() == 50
    clock.now_s = 25
    now.begin("numerics")
    assert now.left_s() == 40
    clock.now_s = 70
    assert now.left_s() == -5


def test_nothing_is_said_without_an_earlier_phase_that_had_the_step(tmp_path: Path) -> None:
    first, _ = phase(tmp_path)
    first.begin("build")
    assert first.left_s() is None
    ran(tmp_path, gates=1, rest=1)
    for other in (phase(tmp_path, name="bench")[0], phase(tmp_path, Subject("rmsnorm", "cuda", "h200"))[0]):
        other.begin("build")
        assert other.left_s() is None
    unknown, _ = phase(tmp_path)
    unknown.begin("a step of a newer version")
    assert unknown.left_s() is None


def test_phases_of_the_operation_that_passed_count_first(tmp_path: Path) -> None:
    ran(tmp_path, gates=1, rest=3, subject=SOFTMAX)
    now, _ = phase(tmp_path)
    now.begin("build")
    assert now.left_s() == 4
    ran(tmp_path, gates=1, rest=9)
    ran(tmp_path, gates=1, rest=1, passed=False)
    now, _ = phase(tmp_path)
    now.begin("build")
    assert now.left_s() == 10


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "{}", "[1]", "[[]]", "null", '[{"phase": "verify"}]', "[" * 100_000),
        '[{"phase":"verify","op":"rmsnorm","language":"cpp","gpu":"cpu","passed":true,"began_s":{"build":0},'
        '"total_s":NaN}]',
        '[{"phase":"verify","op":"rmsnorm","language":"cpp","gpu":"cpu","passed":true,"began_s":{"build":-1},'
        '"total_s":3}]',
    ],
)
def test_a_file_of_another_form_says_nothing_and_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    now, clock = phase(tmp_path)
    now.begin("build")
    assert now.left_s() is None
    clock.now_s = 7
    now.keep(passed=True)
    again, _ = phase(tmp_path)
    again.begin("build")
    assert again.left_s() == 7


def test_a_folder_that_cant_be_written_to_is_no_fault(tmp_path: Path) -> None:
    now, _ = phase(tmp_path / "missing")
    now.begin("build")
    now.keep(passed=True)
    assert not (tmp_path / "missing").exists()


def test_the_file_doesnt_grow_for_ever(tmp_path: Path) -> None:
    for _ in range(MOST_KEPT + 5):
        ran(tmp_path, gates=1, rest=1)
    assert (tmp_path / FILE).read_text().count('"total_s"') == MOST_KEPT
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
