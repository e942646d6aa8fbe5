"""A scripted agent goes from a task to a promoted kernel by the tools alone, with a real worker and real gates."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from forge.domain.verdict import UNDECIDED
from tests.cli.asking import HONEST, ask, copied, ledger_stands
from tests.web.serving import ROOT, served
from tests.web.test_mcp import called

FILES = {path.name: path.read_text() for path in sorted(HONEST.iterdir()) if path.is_file()}
TRIES = 12
ATTEMPTS = 8
"""Number of times that the right candidate is handed in: a busy machine gives no verdict, or too wide an
interval for one."""
SHAPE = "batch=8,hidden_size=1024"
"""A small shape: eager spends most of its time between its kernels there, so the gain is large on any machine."""
POLICY = """
process_pairs = 5
rounds = 4
baselines = ["eager"]
regimes = ["cold"]
control_half_width = 0.5
minimum_speedup = 1.0
"""


def test_an_agent_gets_a_kernel_promoted_by_tools_alone(open_workspace: Path, tmp_path: Path) -> None:
    home = copied(open_workspace, tmp_path / "home")
    (home / "policy.toml").write_text(POLICY)
    named = ("--op", "fused_add_rmsnorm", "--language", "cpp", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)
    assert ask("task", "create", "--home", home, *named).status == 0

    async def session() -> dict[str, Any]:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "forge", "mcp", "--home", str(home)], cwd=str(ROOT)
        )
        async with Client(stdio_client(command)) as client:
            task = (await called(client, "task_list"))["items"][0]["task_id"]
            assert (await called(client, "task_brief", task=task))["text"]
            broken = FILES | {
                "kernel.py": FILES["kernel.py"].replace("1e-", "1e+", 1) + "\nraise RuntimeError('x')\n"
            }
            first = await called(client, "submit", task=task, files=broken, key="broken")
            waited = await called(client, "wait", run=first["run_id"])
            for _ in range(TRIES):
                if not waited["waiting"]:
                    break
                waited = await called(client, "wait", run=first["run_id"])
            assert (waited["state"], waited["following"]) == ("rejected", "counterexample")
            assert (await called(client, "counterexample", run=first["run_id"]))["reason"]
            for attempt in range(ATTEMPTS):
                made = await called(client, "submit", task=task, files=FILES, key=f"right {attempt}")
                for _ in range(TRIES):
                    if not (await called(client, "wait", run=made["run_id"]))["waiting"]:
                        break
                result = await called(client, "result", run=made["run_id"])
                if result["reason"] is None or result["reason"]["code"] not in {"TOO_SLOW", *UNDECIDED}:
                    break
            return result

    with served(home, {}, "--work", "1"):
        result = asyncio.run(session())
    assert result["state"] == "promoted", result["reason"]
    kernels = [one["kernel_id"] for one in ask("kernel", "list", "--home", home, "--json").document]
    assert kernels == [result["kernel_id"]]
    assert ledger_stands(home)
