import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.app.phases.phases import submit_candidate
from forge.app.workspace import Workspace
from tests.app.prepared import benchmarked_run, rejected_run, verified
from tests.app.test_tokens import granted
from tests.cli.asking import HONEST, ask, built_once, copied, create_task
from tests.cli.conftest import empty, empty_workspace, home, open_workspace
from tests.web.serving import Served, served

__all__ = ["empty", "empty_workspace", "home", "open_workspace"]
HOLDERS = {"ada": "author", "eve": "author", "olga": "operator", "rita": "author"}


@pytest.fixture(scope="session")
def filled_workspace(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace with a promoted kernel, a refused candidate and an open run; to be copied, never changed."""

    def build(folder: Path) -> None:
        copied(open_workspace, folder)
        benchmarked_run(folder)
        ask("work", "request", "last", "--home", folder)
        assert ask("work", "--once", "--home", folder).status == 0
        create_task(folder, "--min-speedup", "1.5")
        rejected_run(folder)
        create_task(folder, "--min-speedup", "1.25")

    return built_once(tmp_path_factory, "filled_workspace", build)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, filled_workspace: Path) -> Iterator[Served]:
    """A server of a module's own workspace, without a worker: what is asked for stays open."""
    folder = copied(filled_workspace, tmp_path_factory.mktemp("served") / "home")
    tokens = {name: granted(folder, name, scope=scope)["token"] for name, scope in HOLDERS.items()}
    ask("token", "revoke", "rita", "--home", folder)
    with served(folder, tokens, "--work", "0") as found:
        yield found


def undecided(folder: Path, author: str) -> str:
    """The last run, with bytes of its own handed in by an author and verified, and still to be timed."""
    with Workspace.open(folder) as workspace, tempfile.TemporaryDirectory() as made:
        run_id = workspace.find_run("last").run_id
        candidate = copied(HONEST, Path(made) / "candidate")
        with (candidate / "bench.py").open("a") as file:
            file.write(f"\n# {run_id}\n")
        submit_candidate(workspace, workspace.find_run(run_id), candidate, author=author, actor=author)
        verified(workspace, run_id)
    return run_id
