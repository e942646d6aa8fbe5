"""Runs the program that kills, and reads its report."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SEED = 20261121


def killed(mode: str, base: Path, into: Path, kills: int) -> dict[str, Any]:
    into.mkdir()
    command = [sys.executable, "-m", "tests.ledger.suites.killing", mode, base, into, kills, SEED]
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=ROOT, timeout=3000)
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    if "skipped" in report:
        pytest.skip(report["skipped"])
    reopen_ms = report["reopen_ms"]
    print(
        f"{mode}: {report['kills']} kills, {report['acknowledged']} batches said, {len(report['lost'])} lost, "
        f"{len(report['torn'])} torn; reopened in {statistics.median(reopen_ms):.1f} ms, at most {max(reopen_ms):.1f}"
    )
    assert (report["lost"], report["torn"], report["problems"]) == ([], [], [])
    return report
