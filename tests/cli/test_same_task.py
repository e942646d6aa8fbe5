"""A second task that asks the same says so, and how to go on with the first."""

from pathlib import Path

from tests.cli.asking import ask, create_task
from tests.cli.test_commands import TASK


def test_a_task_that_asks_the_same_is_named(empty: Path) -> None:
    first = create_task(empty)
    assert first["same_as"] == []
    again = ask(*TASK, "--home", empty)
    assert again.status == 0
    assert f"note: this asks the same as {first['task_id']}; to go on with that: forge run open" in again.err
    assert ask("run", "open", first["task_id"], "--home", empty).status == 0
    third = ask(*TASK, "--home", empty)
    assert " and 1 more; to go on" in third.err


def test_a_task_with_another_wish_is_another(empty: Path) -> None:
    create_task(empty)
    assert create_task(empty, "--min-speedup", "1.5")["same_as"] == []
    assert create_task(empty, "--constraint", "memory=none")["same_as"] == []
