"""forge demo: runs the demonstration and prints what happened."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge.cli.output import emit_json, terminal_width
from forge.cli.progress import Report, reporting
from forge.cli.suggest import suggest

if TYPE_CHECKING:
    from forge.app.demo.demo import DemoResult

Reported = dict[str, Any]  # Any: a JSON document, taken apart for people


def run_demo(home: Path | None, *, as_json: bool) -> int:
    """Run the demonstration in a new workspace; return 0 if it went as expected.

    A machine that is too noisy for a verdict also counts as expected.
    """
    from forge.app.demo.demo import demonstrate, make_workspace, story_here
    from forge.app.user.user_paths import resolved

    folder = resolved(home) if home else Path(tempfile.mkdtemp(prefix="forge-demo-"))
    with make_workspace(folder) as workspace, reporting("demo") as report:
        told = demonstrate(workspace, story_here(), progress=partial(_within, report))
    if as_json:
        emit_json(asdict(told))
    else:
        tell(told)
    return 0 if went_well(told) else 1


def run_search_demo(home: Path | None, *, as_json: bool) -> int:
    """Search the settings of a shipped template in a new workspace; return 0 if it went as expected.

    Expected is that a finalist was judged, or that none was faster beyond the machine's noise.
    """
    from forge.app.demo.demo import make_workspace
    from forge.app.demo.search_demo import POLICY, open_search
    from forge.app.user.user_paths import resolved
    from forge.cli.agent_work import work_session

    folder = resolved(home) if home else Path(tempfile.mkdtemp(prefix="forge-demo-"))
    with make_workspace(folder, POLICY) as workspace:
        session_id, author = open_search(workspace)
        found = work_session(workspace, session_id, author, as_json=as_json)
    for command in ("agent cost last", "agent replay last", "run list"):
        suggest("next", f"forge {command} --home {folder}")
    return 0 if found["used"]["candidates"] or str(found["detail"]).startswith("no_gain") else 1


def went_well(told: "DemoResult") -> bool:
    """Return True if the cheat was refused and the honest kernel was promoted, or undecided only because of noise."""
    promoted = told.promoted is not None and told.promoted["kernel_id"] is not None
    return told.refused["verdict"] == "rejected" and (promoted or _too_noisy(told))


def _too_noisy(told: "DemoResult") -> bool:
    timed: Reported = told.benchmark
    return told.promoted is None and (timed.get("reason") or {}).get("code") == "NOISE_TOO_HIGH"


def _within(report: Report, phase: str) -> Report:
    return lambda step: report(f"{phase}: {step}")


def tell(told: "DemoResult") -> None:
    """Print what happened, and what to do next."""
    from rich.console import Console

    console = Console(highlight=False, width=terminal_width() if sys.stdout.isatty() else 100)
    _tell_promotion(told, console.print)
    _tell_refusal(told, console.print)
    found = told.lookup
    console.print("\n[bold]The lookup[/bold]")
    kernel = found["kernel_id"] or "since nothing was promoted"
    console.print(f"  {told.slot}: {found['match']}, {kernel}", soft_wrap=True)
    console.print("\n[bold]The evidence[/bold]")
    console.print(f"  ledger     {told.home}/kernel_registry.db", soft_wrap=True)
    console.print(f"  run        {told.home}/forge_runs/{told.honest_run}/", soft_wrap=True)
    console.print(f"  registry   {told.home}/kernel_registry/verified_kernels.json", soft_wrap=True)
    console.print("\n[bold]Next[/bold]")
    again = [f"bench {told.honest_run}"] if _too_noisy(told) else []
    for command in (*again, "ledger verify", f"run show {told.cheat_run}", "ledger log", "kernel list"):
        console.print(f"  forge {command} --home {told.home}", soft_wrap=True)


def _tell_promotion(told: "DemoResult", show: Callable[..., None]) -> None:
    show(f"\n[bold]An honest kernel[/bold]: {told.title}")
    timed: Reported = told.benchmark
    for workload in timed.get("workloads", []):
        _tell_time(workload, show)
        for kind, baseline in workload["baselines"].items():
            low, high = baseline["ci95"]
            show(
                f"  [green]{baseline['speedup']:.2f}x[/green] over {kind} ({baseline['median_ns'] / 1000:.1f} us), "
                f"95 % interval {low:.2f} to {high:.2f}x"
            )
        low, high = workload["control"]
        show(f"  control: eager against itself reads {low:.3f} to {high:.3f}x")
        _tell_confirmation(workload, timed["baseline_used"], show)
    comparable = [claim for claim in told.claims if claim["verdict"] != "not_comparable"]
    for claim in comparable[-1:]:  # each attempt's bench.py claims something
        show(f"  claim of its own bench.py: {claim['verdict']} (Forge measured {claim['measured_value']:.2f}x)")
    if told.promoted and told.promoted["kernel_id"]:
        show(f"  [green]promoted[/green] as {told.promoted['kernel_id']}")
    else:
        unmet: Reported = told.promoted or timed
        reason: Reported = unmet.get("reason") or {}
        show(f"  [yellow]not promoted[/yellow]: {reason.get('code')}: {reason.get('message')}")
    if _too_noisy(told):
        show(
            "  this is no refusal: the machine is too noisy now for a verdict, and Forge says so instead of guessing"
        )


def _tell_time(workload: Reported, show: Callable[..., None]) -> None:
    whole_us, path_us = workload["candidate_ns"] / 1000, workload["harness_ns"] / 1000
    if workload["method"] == "launch_plan":
        show(f"  {whole_us:.1f} us per launch, {workload['floor_fraction']:.0%} of what this GPU's memory allows;")
        show("  launched by Forge from its device code, without a line of the author's Python")
    else:
        show(f"  {whole_us:.1f} us per call, including the sum of the outputs, as for the baselines;")
        show(f"  the path to the guest and back took {path_us:.1f} us, which isn't included")


def _tell_confirmation(workload: Reported, used: str, show: Callable[..., None]) -> None:
    again = workload["confirmation"]
    if again:
        one = again["baselines"][used]
        low, high = one["ci95"]
        show(f"  confirmed on fresh data: {one['speedup']:.2f}x over {used}, {low:.2f} to {high:.2f}x")


def _tell_refusal(told: "DemoResult", show: Callable[..., None]) -> None:
    refused: Reported = told.refused
    failed = [gate for gate in refused["gates"] if gate["verdict"] == "failed"]
    show("\n[bold]A cheat[/bold]: its first answer is right, then it returns a cached answer")
    if failed:
        show(f"  [red]refused[/red] by the gate [bold]{failed[0]['name']}[/bold]: {refused['reason']['code']}")
        show(f"  observed: {failed[0]['observed']}; allowed: {failed[0]['threshold']}")
    else:
        show(f"  verdict: {refused['verdict']}")
