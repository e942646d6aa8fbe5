"""A registry, stored files and tokens that are damaged under the running server: built anew, or refused by name."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import new_id, now
from forge.events import HumanDecided
from forge.ledger.store import Ledger
from tests.app.test_tokens import granted
from tests.cli.asking import copied, ledger_stands
from tests.web.serving import Served, problem, served
from tests.web.test_pages import page

SLOT = "/lookup?op=fused_add_rmsnorm&gpu=cpu&dtype=fp32&shape=batch=16,hidden_size=4096"
REGISTRY = "kernel_registry"


def overwrite(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(os.urandom(max(1, path.stat().st_size)))


def files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file() and not one.is_symlink()]


def overwrite_tables(home: Path) -> None:
    overwrite(home / REGISTRY / "history.db")


def cut_tables(home: Path) -> None:
    os.truncate(home / REGISTRY / "history.db", 5000)


def remove_tables(home: Path) -> None:
    for one in (home / REGISTRY).glob("history.db*"):
        one.unlink()


def overwrite_all(home: Path) -> None:
    for one in files(home / REGISTRY):
        if not one.name.endswith(".lock"):
            overwrite(one)


def remove_all(home: Path) -> None:
    shutil.rmtree(home / REGISTRY)


DAMAGES: tuple[Callable[[Path], None], ...] = (
    overwrite_tables,
    cut_tables,
    remove_tables,
    overwrite_all,
    remove_all,
)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, filled_workspace: Path) -> Iterator[Served]:
    """A server of a workspace that these tests damage."""
    folder = copied(filled_workspace, tmp_path_factory.mktemp("damaged") / "home")
    tokens = {name: granted(folder, name)["token"] for name in ("ada", "eve")}
    with served(folder, tokens, "--work", "0") as found:
        yield found


def one_more(home: Path, name: str) -> None:
    """Record an event past the commands, which would repair the registry: the server keeps no answer from before."""
    event = HumanDecided(subject_stream="x:y", subject=name, choice="x", reason="x")
    with Ledger.open(home / LEDGER_FILE, now=now, new_id=new_id) as ledger:
        ledger.append((event,), actor="cli:test", correlation_id="x:y")


def answers(server: Served) -> list[object]:
    """Answers out of each part of the registry; the lists are asked anew, since an event was recorded before."""
    listed = [server.get(f"/{name}?limit=200").json()["items"] for name in ("tasks", "kernels")]
    looked_up = {**server.get(SLOT).json(), "ledger_seq": None}
    rows = [server.get(path).json()["rows"] for path in ("/leaderboard", "/audits/rejections", "/experiments")]
    return [*listed, looked_up, *rows]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_a_registry_that_is_damaged_under_the_server_is_built_anew(
    own: Served, damage: Callable[[Path], None]
) -> None:
    before = answers(own)
    damage(own.home)
    one_more(own.home, damage.__name__)
    assert answers(own) == before
    for path in ("/", "/leaderboard", "/experiments", "/tasks"):
        assert page(own, path).status_code == 200
    assert ledger_stands(own.home)


def test_a_stored_file_that_is_damaged_or_gone_is_refused_by_its_name(own: Served) -> None:
    (kernel,) = own.get("/kernels").json()["items"]
    source = own.get(f"/kernels/{kernel['kernel_id']}/files/kernel.py").content
    stored = next(one for one in files(own.home / "forge_runs" / "cas") if one.read_bytes() == source)
    digest = stored.parent.name + stored.name if len(stored.name) < 64 else stored.name
    for break_it in (overwrite, Path.unlink):
        break_it(stored)
        one_more(own.home, break_it.__name__)
        found = problem(own.get(f"/kernels/{kernel['kernel_id']}/files/kernel.py"))
        assert (found["status"], found["code"], found["hint"]) == (503, "BLOB_CORRUPT", "forge ledger verify")
        assert digest in found["detail"]
        assert str(own.home) not in found["detail"]
        shown = page(own, f"/kernels/{kernel['kernel_id']}")
        assert (shown.status_code, digest in shown.text) == (503, True)
        assert own.get(f"/kernels/{kernel['kernel_id']}").status_code == 200, "the entry needs no stored file"
    stored.write_bytes(source)
    assert own.get(f"/kernels/{kernel['kernel_id']}/files/kernel.py").content == source


def test_a_token_whose_file_is_damaged_or_open_to_others_is_not_accepted(own: Served) -> None:
    for holder, break_it in (("ada", overwrite), ("eve", lambda path: path.chmod(0o644))):
        assert own.get("/state", holder).status_code == 200
        (path,) = [one for one in files(own.home / "tokens") if f'"{holder}"'.encode() in one.read_bytes()]
        break_it(path)
        found = problem(own.get("/state", holder))
        assert (found["status"], found["code"]) == (503, "INTEGRITY")
        assert page(own, "/", holder).status_code == 503
    assert own.get("/state").status_code == 200, "others are answered"
