import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

from forge.sandbox.capabilities import probe
from forge.sandbox.isolation import Walls
from tests.shortened import leave_out_shapes, shorten_pairs, shorten_series

pytest_plugins = ["tests.quick"]

# Before torch is first imported, as in the workspace: idle workers sleep instead of taking a guest's processor.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

settings.register_profile("forge", deadline=None)  # a busy machine is no failure
settings.load_profile("forge")


@pytest.fixture(scope="session")
def walls() -> Walls:
    """Skip where this machine can't build the walls; `test_isolation` asserts that it then says so.

    With FORGE_TEST_WALLS set, as on a machine known to have them, a missing wall fails instead: a broken
    wall makes the probe say "none", and would otherwise hide behind skipped tests.
    """
    probed = probe()
    if probed.level != "namespaces":
        assert "FORGE_TEST_WALLS" not in os.environ, probed.missing
        pytest.skip(f"no namespaces here: {probed.missing}")
    return probed


@pytest.fixture
def short_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the series of calls of the gates leaks and endurance: half of what an accepted candidate costs.

    It is for tests that ask another question. The full series are asked of all honest candidates, and of
    hostile ones that one of these gates must refuse; with FORGE_TEST_LONG=1 of all others too.
    """
    shorten_series(monkeypatch)


@pytest.fixture
def no_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the gates that ask shape after shape, for tests of what follows from a verdict."""
    leave_out_shapes(monkeypatch)


@pytest.fixture
def short_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure only the policy's rounds in a process pair, however noisy its control is, after one to warm up.

    It is for tests that ask what follows from a measurement, whatever its outcome. On a busy machine a pair otherwise
    takes four times its rounds.
    """
    shorten_pairs(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, since nearly all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers begin with the tests that take longest: one at the end would run alone, beside idle workers."""
    if hasattr(config, "workerinput") and not config.getoption("--quick") and not config.getoption("--gates"):
        items.sort(key=lambda item: not _comes_first(item))


def _comes_first(item: pytest.Item) -> bool:
    slow = item.get_closest_marker("slow")
    return slow is not None and bool(slow.kwargs.get("first"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Take one worker more than processors for `make test`: a worker often waits for a guest that only waits.

    `make quick` starts no guest, and each worker reads all test files first.
    """
    if config.getoption("--quick") or config.getoption("--gates"):
        return None
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None
