"""init, doctor, demo."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.document import fact_text
from forge.cli.opening import open_workspace
from forge.cli.options import Cluster, DeviceName, Home, Json, PlainNetwork
from forge.cli.output import SIMULATED, emit_answer, emit_json, emit_table, say
from forge.cli.suggest import suggest


def init(
    directory: Annotated[Path, typer.Argument(help="The folder of the new workspace.")] = Path(),
    origin: Annotated[str, typer.Option(help="A name for this ledger that people recognise.")] = "forge",
    as_json: Json = False,
) -> None:
    """Make a workspace with a new ledger.

    Example: forge init my-kernels
    """
    from forge.app.user.user_paths import resolved
    from forge.app.workspace import Workspace

    with Workspace.create(resolved(directory), origin=origin) as workspace:
        made = {"home": str(workspace.home), "ledger_id": workspace.ledger.ledger_id}
    if as_json:
        emit_json(made)
    else:
        emit_table("Workspace", ("home", "ledger"), [(made["home"], made["ledger_id"])])
        suggest("next", "forge task create --help")


def doctor(
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Measure the highest rates of memory and matrix products here, and record them."
        ),
    ] = False,
    device: DeviceName = None,
    ray: Cluster = None,
    plain_network: PlainNetwork = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what this machine supports: languages, platforms, isolation.

    Example: forge doctor
    """
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.machine.doctor import examine_machine

    if ray is not None:
        _show_cluster(ray, plain_network=plain_network, as_json=as_json)
        return
    chosen_device(device)
    if calibrate:
        _calibrate(home, as_json=as_json)
        return
    found = examine_machine()
    if as_json:
        emit_json(found)
        return
    rows = [
        (name, found[name]) for name in ("processor", "python", "torch", "triton", "compiler", "sqlite", "abi_key")
    ]
    platforms, languages = found["platforms"], found["languages"]
    assert isinstance(platforms, dict)
    assert isinstance(languages, dict)
    rows += [(f"platform {name}", _facts(fact)) for name, fact in platforms.items()]
    rows += [(f"language {name}", _language(fact)) for name, fact in languages.items()]
    rows += [(f"GPU {one['index']}", _gpu(one)) for one in _listed(found["devices"])]
    wall = found["isolation"]
    assert isinstance(wall, dict)
    rows.append(("isolation", wall["level"]))
    rows.append(("isolation lacks", ", ".join(wall["missing"]) or "nothing"))
    rows.append(("guest memory", _memory(found["guest_memory"])))
    emit_table("This machine", ("", ""), rows)
    emit_table("Isolation, the strongest first", ("level", "here", "lacks", "next step"), _rungs(found["ladder"]))
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    for warning in warnings:
        say(f"note: {warning}")


def _memory(fact: object) -> str:
    """Say whether the host can read its guests' memory, which timing on a processor needs."""
    assert isinstance(fact, dict)
    if fact["readable"] is None:
        return "not read: without isolation, guests copy their outputs"
    return "readable" if fact["readable"] else f"{fact['reason']}; next: {fact['next_step']}"


def _show_cluster(cluster: str, *, plain_network: bool, as_json: bool) -> None:
    """Print for each place of a Ray cluster whether jobs may run there."""
    from forge.app.work.cluster import cluster_report
    from forge.domain.policy import Policy

    found = cluster_report(cluster, Policy(), plain_network=plain_network)
    columns = ("place", "usable", "gpu", "forge", "torch", "isolation", "why_not")
    rows = [[one.get(column) if one.get(column) is not None else "" for column in columns] for one in found]
    emit_answer(found, "Places of the cluster", columns, rows, as_json=as_json)


def _calibrate(home: Path | None, *, as_json: bool) -> None:
    """Measure the ceilings and print them; record them if there is a workspace."""
    from forge.app.machine.ceilings import calibrated
    from forge.app.machine.chosen_executor import executor_here, executor_of
    from forge.app.user.home import find_home
    from forge.domain.policy import Policy
    from forge.errors import WorkspaceNotFound

    try:
        where: Path | None = find_home(home)
    except WorkspaceNotFound:
        where = None
    if where is None:
        executor = executor_here()
        environment, ceilings = executor.site(Policy()).environment, executor.calibrate()
        say("note: there is no workspace here, so nothing is recorded; name one with --home")
    else:
        with open_workspace(where) as workspace:
            executor = executor_of(workspace)
            environment = executor.site(workspace.policy).environment
            ceilings = calibrated(workspace, executor, environment)
    document = {
        "recorded": where is not None,
        "env_sha256": environment.env_sha256,
        "ceilings": ceilings.model_dump(),
    }
    rows = [(name, _rate(name, value)) for name, value in ceilings.model_dump(exclude={"flop_per_s"}).items()]
    rows += [(f"flop_per_s {name}", f"{rate / 1e12:.1f} T/s") for name, rate in ceilings.flop_per_s.items()]
    emit_answer(document, "Ceilings of this machine", ("", ""), rows, as_json=as_json)


def _rate(name: str, value: float | None) -> str:
    if value is None:
        return "not measured"
    return f"{value / 1e9:.0f} GB/s" if name.endswith("_per_s") else f"{value:g}"


# Any: JSON documents
def _listed(devices: object) -> list[dict[str, Any]]:
    assert isinstance(devices, list)
    return devices


def _gpu(device: dict[str, Any]) -> str:
    state = device["state"]
    chosen = ", chosen" if device["chosen"] else ""
    if state is None:
        return f"{device['uuid']}{chosen}; no NVML: pip install nvidia-ml-py"
    held = ", ".join(state["slowdown"]) or "nothing"
    return f"{device['uuid']}{chosen}; {len(state['compute_pids'])} processes on it; clocks held down by {held}"


def _rungs(ladder: object) -> list[tuple[str, str, str, str]]:
    assert isinstance(ladder, list)
    rows = []
    for step in ladder:
        here = "reached" if step["reached"] else "not reached"
        rows += [(step["level"], here, f"{one['what']}: {one['reason']}", one["next_step"]) for one in step["lacks"]]
        if not step["lacks"]:
            rows.append((step["level"], here, "nothing", ""))
    return rows


def _language(fact: dict[str, Any]) -> str:
    """Say what can be built, verified and timed here, each by itself, and what is missing."""
    builds = {True: "builds here", False: "can't be built here", None: "nothing to build"}[fact["builds_here"]]
    on = " and ".join(fact["verifies_here_on"])
    simulated = f"verification is {SIMULATED} here, by an interpreter" if fact["simulates_here_on"] else ""
    verifies = f"verifies on {on}" if on else simulated or "can't be verified here"
    times = f"times on {' and '.join(fact['times_here_on'])}" if fact["times_here_on"] else "can't be timed here"
    lacks = f"lacks {', '.join(fact['lacks'])}" if fact["lacks"] else ""
    return "; ".join(part for part in (builds, verifies, times, lacks) if part)


def _facts(fact: dict[str, object]) -> str:
    named = ((key.replace("_", " "), fact_text(value)) for key, value in fact.items())
    return "; ".join(f"{name} {text}" for name, text in named if text is not None)


def demo(
    home: Annotated[
        Path | None,
        typer.Option("--home", help="A new folder for the demonstration's workspace.", show_default=False),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search the settings of a template on the processor instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run all phases on shipped examples: promote one kernel, refuse one cheat, and look the kernel up.

    With --search, a session tries settings of a C++ template, and submits the fastest one.

    Example: forge demo --home .demo
    """
    from forge.cli.demo import run_demo, run_search_demo

    raise typer.Exit((run_search_demo if search else run_demo)(home, as_json=as_json))
