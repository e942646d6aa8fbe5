"""Ways to solve a module: the other one is tried once, and the one that helped is remembered."""

import itertools
import threading
from pathlib import Path

import pytest

from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.solve.routes import record_route, remembered, route_key
from forge.app.solve.solving import solve
from forge.app.workspace import Workspace
from forge.domain.budget import Amounts
from forge.domain.digest import sha256
from forge.events.module import ModuleRouted, Route
from forge.lab.parts.graph import Graph
from forge.pipeline.create import TaskRequest
from forge.projections.sessions import SessionState
from tests.app.prepared import benchmarked_run
from tests.app.scripted import Scripted
from tests.cli.asking import ask, ledger_stands
from tests.lab.parts.modules import X, module
from tests.lab.parts.test_take_apart import SMALL

REQUEST = TaskRequest(op="", language="cpp", gpu="cpu", dtype="fp32", shape="")
KEY = sha256(b"a key")


def test_the_way_that_gave_a_kernel_is_remembered_for_its_key_alone(home: Path) -> None:
    run_id = benchmarked_run(home)
    with Workspace.open(home) as workspace:
        task_id = workspace.find_run(run_id).task_id
        ways: tuple[tuple[Route, str], ...] = (("direct", "few_parts"), ("extract", "fallback"))
        for route, reason in ways:
            made = {"task_id": task_id, "route": route, "reason": reason, "detail": "x", "parts": ()}
            record_route(workspace, ModuleRouted.model_validate({**made, "key_sha256": KEY}), {})
        assert remembered(workspace, KEY) is None, "nothing was promoted"
    assert ask("promote", run_id, "--home", home).status == 0
    with Workspace.open(home) as workspace:
        found = remembered(workspace, KEY)
        assert found is not None
        assert (found.route, found.task_id) == ("extract", task_id)
        assert remembered(workspace, sha256(b"another")) is None
    assert ledger_stands(home)


def test_the_key_has_graph_author_prompt_and_platform() -> None:
    other = TaskRequest(op="", language="triton", gpu="h200", dtype="fp32", shape="")
    graphs: list[Graph | None] = [SMALL, None]
    keys = [
        route_key(source, graph, request, solver)
        for source in (b"a", b"b")
        for graph in graphs
        for request in (REQUEST, other)
        for solver in (sha256(b"one"), sha256(b"two"))
    ]
    assert len(set(keys)) == 4 + 2 * 4, "with a graph the text doesn't count, without one it does"


@pytest.mark.slow
@pytest.mark.usefixtures("walls")
def test_a_small_module_whose_whole_gives_nothing_is_taken_apart_and_its_parts_are_worked_on_side_by_side(
    empty: Path, tmp_path: Path
) -> None:
    small = module("self.a = nn.Linear(16, 8)", "def forward(self, x):\n    return torch.softmax(self.a(x), -1)", X)
    (tmp_path / "small.py").write_text(small)
    together = threading.Barrier(2, timeout=300)
    calls = itertools.count()

    def work(task_id: str, shares: int) -> SessionState:
        if shares > 1 and next(calls) < together.parties:
            together.wait()  # it goes on only if two parts are worked on at the same time
        with Workspace.open(empty) as own:
            author = Scripted(())
            budget = Amounts(wall_ms=10**6, candidates=1)
            session_id = open_session(own, author, SessionRequest(task=task_id, seed=1, budget=budget))
            return work_off(own, session_id, author, Means())

    with Workspace.open(empty) as workspace:
        found = solve(
            workspace,
            tmp_path / "small.py",
            REQUEST,
            work,
            solver=sha256(b"an author"),
            progress=lambda _: None,
        )
        routed = [one.event for one in workspace.ledger.read(types=(ModuleRouted.TYPE,))]
        assert [(one.route, one.reason) for one in routed if isinstance(one, ModuleRouted)] == [
            ("direct", "few_parts"),
            ("extract", "fallback"),
        ]
        assert (found.kernels, found.composed, len(found.sessions)) == ([], None, 1 + len(routed[1].parts))
    assert ledger_stands(empty)
