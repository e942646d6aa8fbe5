"""Code in the pages runs: `python` blocks in a folder with a workspace called my-kernels; the rest is parsed.

Blocks tagged `py` are fragments: they are held to the syntax only.
"""

import ast
import json
import tomllib
from datetime import UTC, datetime, timedelta

import pytest

from forge.authors.search.space import parse_space
from forge.domain.candidate import Metadata
from forge.domain.policy import Policy
from forge.ledger.store import Ledger
from forge.projections.files import put
from tests.docs.markdown import blocks
from tests.projections.histories import LEDGER_ID, benchmarked, opened, rebuild
from tests.projections.values import task

SHAPE = {"batch": 16, "hidden_size": 4096}
EXPECTED = {
    "README.md": "exact cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1",
    "docs/measurement.md": "promoted at exactly 1.10x: 33% by calls, 2.5% by process pairs",
    "docs/numerics.md": "fp32, n = 4096: 8.6e-06 of S, 144 roundings",
    "docs/ledger.md": "head ",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a real ledger that promoted one kernel, and what was published from it."""
    home = tmp_path_factory.mktemp("docs") / "my-kernels"
    home.mkdir()
    history = opened()
    wanted = task(op="fused_add_rmsnorm", gpu="cpu", dtype="fp32", shape=SHAPE, language="cpp")
    run = benchmarked(history, wanted=wanted, shapes=({"batch": 1, "hidden_size": 4096},))
    kernel_id = run.promote()
    moments = iter(datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=number) for number in range(1000))
    numbers = iter(range(1, 1000))
    with Ledger.create(
        home / "kernel_registry.db",
        ledger_id=LEDGER_ID,
        origin="documentation",
        forge_version="0.1.0",
        now=lambda: next(moments),
        new_id=lambda: f"0190aaaa-0000-7000-8000-{next(numbers):012x}",
    ) as ledger:
        ledger.append([one.event for one in history.events[1:]], actor="ci:test", correlation_id="run")
        files = rebuild(list(ledger.read()), ledger.head, ledger.ledger_id)
    # the candidates of these histories are named by the digest of this text
    source = {f"kernels/{kernel_id}/kernel.py": str(("a", "kernel.py")).encode()}
    put(home / "kernel_registry", source | files)
    return home.parent


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_a_python_block_runs(block, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    exec(compile(block.text, str(block), "exec"), {"__name__": "documentation"})  # it is our own page
    assert EXPECTED.get(block.page, "") in capsys.readouterr().out


def test_the_blocks_that_must_run_are_there():
    found = {block.page for block in blocks("python")}
    assert set(EXPECTED) | {"docs/how-to/read-the-registry.md"} <= found


@pytest.mark.parametrize("block", blocks("py"), ids=str)
def test_a_fragment_is_python(block):
    ast.parse(block.text)


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_a_policy_that_is_shown_is_accepted(block):
    Policy.model_validate(tomllib.loads(block.text))


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_a_metadata_json_or_space_json_that_is_shown_is_accepted(block):
    shown = json.loads(block.text)
    if "parameters" in shown:
        own = {one["name"]: next(reversed(one["values"])) for one in shown["parameters"]}
        parse_space(block.text.encode(), own)
    else:
        Metadata.model_validate(shown)


def test_every_block_says_what_it_is():
    assert [str(block) for block in blocks("")] == []
