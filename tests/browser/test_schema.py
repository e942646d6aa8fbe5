"""The whole API, asked with generated input by everyone: no answer that its OpenAPI document doesn't have."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.test_tokens import granted
from tests.cli.asking import copied, ledger_stands
from tests.web.serving import served

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
HOLDERS = ("no token", "author", "operator", "revoked", "expired")


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_answer_is_a_fault_or_undocumented(holder: str, filled_workspace: Path, tmp_path: Path) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    scope = holder if holder in ("author", "operator") else "author"
    token = granted(home, "ada", scope=scope)["token"]
    if holder in ("revoked", "expired"):  # an expired token's file is gone, or says so: both are looked up alike
        next((home / "tokens").iterdir()).unlink()
    with served(home, {}, "--work", "0") as server:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/api/v1/openapi.json"),
            *("--checks", CHECKS, "--max-examples", "6", "--exclude-path", "/api/v1/events", "--seed", "1"),
            *("--suppress-health-check", "all"),
            *(("-H", f"Authorization: Bearer {token}") if holder != "no token" else ()),
        ]
        told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert told.returncode == 0, told.stdout[-5000:] + told.stderr[-2000:]
    assert ledger_stands(home)
