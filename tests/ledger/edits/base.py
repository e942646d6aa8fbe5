"""The workspace that every edit gets a copy of: small, with something in every table and every folder."""

import shutil
from pathlib import Path

import orjson

from forge.app.ledger.signing import checkpoint, rotate_key
from forge.app.runs.states import GATE
from forge.app.workspace import Workspace
from forge.domain.digest import canonical
from forge.events.benchmark import ProfileCaptured
from tests.app.prepared import benchmarked, samples, submitted, verified
from tests.cli.asking import ask, create_task
from tests.ledger.edits.copy import KEPT

POLICY = """
process_pairs = 5
rounds = 4
baselines = ["eager"]
control_half_width = 0.5
minimum_speedup = 1.0
confirmation = false
"""


def build(home: Path) -> None:
    """Make it: a promoted kernel with a launch plan, a profile, two keys, an import, an unsigned end."""
    _ask("init", home, "--origin", "kernels/example")
    (home / "policy.toml").write_text(POLICY)
    (home / KEPT).mkdir()
    task_id = create_task(home)["task_id"]
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        candidate = submitted(workspace, run_id)
        verified(workspace, run_id, artifact_sha256=_built(workspace))
        recorded = benchmarked(workspace, run_id, taken=samples(pairs=5))
        profile = ProfileCaptured(
            run_id=run_id,
            candidate=candidate.candidate,
            tool="Prüfer",
            tool_version="6.1",
            kind="counters",
            metrics={"ipc": 1.1, "misses": 1e-06, "stalls": 0.0},
            raw_sha256=workspace.blobs.put(b"counters as the tool gave them"),
            env_sha256=recorded.env_sha256,
        )
        workspace.append((profile,), run_id=run_id, key=f"profile:{run_id}", actor=GATE)
    _keep(home, "old")
    _ask("promote", "--home", home, "last")
    with Workspace.open(home) as workspace:
        rotate_key(workspace)
    _import(home)
    with Workspace.open(home) as workspace:
        checkpoint(workspace, new_key=False, copy=None)
        workspace.blobs.put(b"a blob that no event names")
    _keep(home, "new")
    _ask("run", "open", task_id, "--home", home)
    _ask("ledger", "verify", "--home", home, "--full")


def _ask(*arguments: object) -> None:
    answer = ask(*arguments)
    assert answer.status == 0, (answer.out, answer.err)


def _built(workspace: Workspace) -> str:
    """The listing of a library and of a launch plan with its device code."""
    cubin = workspace.blobs.put(b"device code")
    plan = canonical({"cubins": {"plan0.cubin": cubin}})
    files = [
        {"path": name, "sha256": workspace.blobs.put(content), "size_bytes": len(content)}
        for name, content in (("libkernel.so", b"a library"), ("plan.json", plan), ("plan0.cubin", b"device code"))
    ]
    return workspace.blobs.put(orjson.dumps({"files": files}))


def _keep(home: Path, when: str) -> None:
    with Workspace.open(home) as workspace:
        checkpoint(workspace, new_key=False, copy=None)
    for name in ("checkpoint", "ledger.vkey"):
        shutil.copyfile(home / "kernel_registry" / name, home / KEPT / f"{when}.{name}")


def _import(home: Path) -> None:
    other = home.with_name(f"{home.name}-other")
    _ask("init", other, "--origin", "kernels/far")
    _ask("ledger", "export", home / KEPT / "far.bundle", "--home", other)
    _ask("ledger", "import", home / KEPT / "far.bundle", "--home", home)
    shutil.rmtree(other)
