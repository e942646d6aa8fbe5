"""Figures of the README come from the ledger that ships, by the command that it names."""

import shutil
from pathlib import Path

from tests.cli.asking import ask
from tests.docs.markdown import ROOT, read
from tests.shipped import copy_shipped_ledger

KERNEL = "triton_quantize_fp8_per_tensor_h100_bf16_b4096_h4096_v1"


def test_the_readme_quotes_what_its_command_prints(tmp_path: Path) -> None:
    copy_shipped_ledger(tmp_path)
    shutil.copytree(ROOT / "kernel_registry", tmp_path / "kernel_registry", ignore=shutil.ignore_patterns("*.lock"))
    assert f"`forge kernel claims {KERNEL}`" in read("README.md")
    standing = ask("kernel", "show", KERNEL, "--home", tmp_path, "--json").document
    assert (standing["status"], standing["replication"]["outcome"]) == ("active", "held"), (
        "what is quoted is on offer"
    )
    said = ask("kernel", "claims", KERNEL, "--home", tmp_path, "--json").document
    sentences = {one["text"] for one in said["sentences"]}
    quoted = [line.removeprefix("> ") for line in read("README.md").splitlines() if line.startswith("> ")]
    assert quoted
    assert set(quoted) <= sentences
    assert ask("claims", "check", ROOT / "README.md", "--home", tmp_path).status == 0


def test_the_demo_s_block_has_no_figures_of_its_own() -> None:
    block = read("README.md").partition("An honest kernel:")[2].partition("A cheat:")[0]
    assert "... us per call" in block
    assert not [word for word in block.split() if word.endswith("x") and word[0].isdigit() and word != "x"]
