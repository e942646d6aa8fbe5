"""What `make quick` runs, chosen by what tests do and not by a list.

`--quick` hides torch and starts no process, so no guest either. A test that asks for either is left to `make test`,
unless it passes without torch; so is a test that is marked as slow. Temporary files are kept in memory. `--gates`
lets each gate alone refuse one evil candidate.
"""

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

EVIL = Path(__file__).parent / "evil"
TORCH, PROCESS = "torch", "a process"
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn"}
"""What Python's audit hooks (PEP 578) call the start of a process."""
IN_MEMORY = Path("/dev/shm")
"""Folder that Linux keeps in memory: a fifth of the time was spent on writing temporary files through to the disk."""
ROOM_BYTES = 4 * 1024**3
"""Bytes that must be free in memory, five times what the tests leave there; elsewhere the usual folder is taken."""
LEFT = "left to make test"
EXAMPLES = 15
"""Number of examples that Hypothesis draws for a test that names no number. Chosen: its usual 100 for all such tests
were a sixth of the work."""
LONG_S = 1.0
"""Processor seconds from which a test is named as slow: a busy machine makes none slower. Thousands of quick tests
share about a minute and a half."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("forge")
    group.addoption("--quick", action="store_true", help="run what passes without torch and starts no process")
    group.addoption("--gates", action="store_true", help="let each gate alone refuse one evil candidate")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.register_profile("quick", settings.get_profile("forge"), max_examples=EXAMPLES)
        settings.load_profile("quick")
        keep_temporary_files_in_memory(config)
        with_workers = bool(config.getoption("numprocesses", None))
        config.pluginmanager.register(LongTests() if with_workers else Quick())
    if config.getoption("--gates"):
        if importlib.util.find_spec(TORCH) is None:
            pytest.exit("torch isn't installed: no gate was tried", returncode=0)
        config.pluginmanager.register(OneForEachGate())


def keep_temporary_files_in_memory(config: pytest.Config) -> None:
    """Give the tests a folder in memory until they have run, if there is room and no other one was asked for."""
    if hasattr(config, "workerinput") or config.option.basetemp or not IN_MEMORY.is_dir():
        return
    if shutil.disk_usage(IN_MEMORY).free >= ROOM_BYTES:
        config.option.basetemp = folder = IN_MEMORY / f"forge-quick-{os.getuid()}"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


class WithoutTorch:
    """A finder of modules that finds what another one does, but for torch."""

    def __init__(self, finder: Any, asked: set[str]) -> None:
        self._finder = finder
        self._asked = asked

    def find_spec(self, name: str, *where: Any) -> Any:
        if name.partition(".")[0] == TORCH:
            self._asked.add(TORCH)
            return None
        return self._finder.find_spec(name, *where)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


class LongTests:
    """Names the tests that took long."""

    def __init__(self) -> None:
        self._long: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and (took_s := getattr(report, "processor_s", 0.0)) > LONG_S:
            self._long.append(f"{took_s:.1f} s: {report.nodeid} ({report.when})")

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return (LEFT, "", "") if hasattr(report, "left") else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._long:
            terminalreporter.write_line(f"took long, is it one for pytest.mark.slow? {line}")


class Quick(LongTests):
    """Runs tests without torch and without processes, and leaves those that need them."""

    def __init__(self) -> None:
        super().__init__()
        assert TORCH not in sys.modules, "a plugin of pytest has imported torch"
        self._asked: set[str] = set()
        self._errors: dict[int, BaseException] = {}
        self._refuses = False
        self._used_s = 0.0
        for place, finder in enumerate(sys.meta_path):
            sys.meta_path[place] = WithoutTorch(finder, self._asked)  # type: ignore[call-overload]  # it has all of it
        sys.addaudithook(self._refuse_processes)

    def _refuse_processes(self, event: str, _: tuple[Any, ...]) -> None:
        """Raise what no code of ours takes for a fault of the machine: it isn't an Exception."""
        if event in PROCESS_EVENTS and self._refuses:
            self._asked.add(PROCESS)
            pytest.skip(LEFT)

    def pytest_collection(self) -> None:
        self._refuses = True

    def pytest_sessionfinish(self) -> None:
        self._refuses = False

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A module that can't be imported without torch has no tests here."""
        self._asked.clear()
        report = yield
        if not report.passed and self._asked:
            report.outcome, report.longrepr, report.result = "passed", None, []
        return report

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._asked.clear()
        self._used_s = time.process_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Leave a test that fails after it asked, and one that would have started a process, whatever it says."""
        report = yield
        before_s, self._used_s = self._used_s, time.process_time()
        report.processor_s = self._used_s - before_s  # type: ignore[attr-defined]  # pytest takes along what a report is given
        error = None if call.excinfo is None else call.excinfo.value
        again = id(error) in self._errors  # of a fixture that many tests use: it is made once
        if PROCESS in self._asked or (not report.passed and (self._asked or again)):
            report.left = True  # type: ignore[attr-defined]  # as above
            report.outcome = "passed" if report.when == "teardown" else "skipped"
            report.longrepr = None if report.when == "teardown" else (str(report.location[0]), 0, LEFT)
            if error is not None:
                self._errors[id(error)] = error
        return report


class OneForEachGate:
    """Keeps one evil candidate for each gate."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Take a candidate for each gate: the first by name of those that cost least to build and ask."""
        from tests.evil.described import BUILD_LIMIT_S, USUAL_OPERATION, described

        chosen: dict[str, tuple[tuple[bool, ...], pytest.Item]] = {}
        for item in items:
            path = item.callspec.params.get("path") if hasattr(item, "callspec") else None
            if item.path.parent != EVIL or path is None:
                continue
            said = described(path)
            usual = said.operation == USUAL_OPERATION and said.shape is None
            effort = (said.language != "torch", said.build_limit_s != BUILD_LIMIT_S, not usual)
            if said.gate not in {None, "any"} and (said.gate not in chosen or chosen[said.gate][0] > effort):
                chosen[said.gate] = (effort, item)
        items[:] = [item for _, item in chosen.values()]
