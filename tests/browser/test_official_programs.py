"""The official inspector asks the tools, and the reference library of Agent Skills accepts the skill."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from skills_ref.validator import validate

from forge.mcp.client_tools import TOOLS
from tests.web.serving import ROOT, Served

INSPECTOR = Path(os.environ.get("FORGE_TEST_INSPECTOR", ""))


def test_the_reference_library_accepts_the_skill() -> None:
    assert validate(ROOT / "forge" / "mcp" / "skill" / "forge-kernels") == []


def inspected(*arguments: object) -> dict[str, Any]:
    """What the inspector's command line prints."""
    command = [str(INSPECTOR), "--cli", *map(str, arguments)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.skipif(not INSPECTOR.is_file(), reason="the inspector needs Node; make test-web installs it")
def test_the_official_inspector_lists_and_calls_the_tools(server: Served) -> None:
    own = (sys.executable, "-m", "forge", "mcp", "--home", server.home)
    listed = inspected("--method", "tools/list", "--", *own)["tools"]
    assert [one["name"] for one in listed] == [one.name for one in TOOLS]
    over_http = (f"{server.address}/mcp", "--transport", "http", "--method", "tools/call", "--tool-name")
    answer = inspected(*over_http, "task_list", "--tool-arg", "op=fused_add_rmsnorm")
    assert answer["isError"] is False
    assert answer["structuredContent"]["items"]
    refused = inspected(*over_http, "submit", "--tool-arg", "task=x", 'files={"kernel.py": "x"}')
    assert (refused["isError"], "TOKEN_REFUSED" in refused["content"][0]["text"]) == (True, True)
