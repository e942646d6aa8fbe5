"""Checks the ledger in a process of its own: `forge ledger verify`, as a person would."""

import asyncio
import os
import sys
from asyncio import create_subprocess_exec as start_process

import orjson

from forge.app.desk.desk import Desk
from forge.errors import EnvironmentUnfit

NICENESS = 10
"""Niceness of the check: answers go first. Chosen: the middle of the positive values, which `nice` takes without a
number."""


async def check(desk: Desk) -> None:
    """Check the ledger, and let the desk take up what was found; raise EnvironmentUnfit if no report came."""
    command = (sys.executable, "-m", "forge", "ledger", "verify", "--json", "--home", str(desk.home))
    child = await start_process(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=_step_back,
    )
    try:
        told, _ = await child.communicate()
    except asyncio.CancelledError:
        child.kill()
        await child.wait()
        raise
    try:
        report = orjson.loads(told)
        desk.take_report({name: report[name] for name in ("ok", "events", "root", "signed", "problems")})
    except (orjson.JSONDecodeError, KeyError) as error:
        raise EnvironmentUnfit(
            "the check's process ended without a report: run the check at the terminal", hint="forge ledger verify"
        ) from error


def _step_back() -> None:
    os.nice(NICENESS)
