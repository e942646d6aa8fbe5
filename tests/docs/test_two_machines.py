"""The commands over ssh of the page on two machines run as they stand: an sshd of this machine is the other one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.asking import QUICK_POLICY, history, ledger_stands
from tests.docs.markdown import blocks
from tests.executor.sshd import SSHD, served, ssh_with

PAGE = "docs/how-to/two-machines-in-ten-minutes.md"
AT_ONCE = Path(__file__).parents[1] / "executor" / "at_once.py"


@pytest.mark.skipif(SSHD is None, reason="there is no sshd here")
def test_the_commands_over_ssh_take_a_kernel_to_a_decision(tmp_path: Path) -> None:
    commands = [block.text for block in blocks("sh") if block.page == PAGE and "ray" not in block.text]
    assert len(commands) == 2
    with served(tmp_path, sys.executable, AT_ONCE) as there:
        with there.settings.open("a") as settings:
            settings.write(f"Host gpu-box\nHostName 127.0.0.1\nPort {there.port}\n")
        environment = ssh_with(there.settings, tmp_path / "bin")
        here = tmp_path / "bin" / "forge"
        here.write_text(f'#!/bin/sh\nexec {sys.executable} -m forge "$@"\n')
        here.chmod(0o755)
        (tmp_path / "my-kernels").mkdir()
        (tmp_path / "my-kernels" / "policy.toml").write_text(QUICK_POLICY)
        environment |= {"PYTHONPATH": str(Path(__file__).parents[2])}
        shell = ["bash", "-euxc", "\n".join(commands)]
        ran = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    home = tmp_path / "my-kernels"
    (captured,) = [one for one in history(home) if one["type"] == "EnvironmentCaptured"]
    assert captured["payload"]["environment"]["node"] is not None, "it was judged on the other machine"
    assert [one["type"] for one in history(home)].count("KernelPromoted") == 1
    assert ledger_stands(home)
