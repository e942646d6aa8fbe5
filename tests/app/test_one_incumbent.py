"""The incumbent has one definition: a benchmark runs beside the kernel that the registry calls active."""

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.app.incumbent import incumbent_kernel
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from tests.app.prepared import benchmarked_run
from tests.app.test_audit_answers import workspace_of
from tests.cli.asking import ask
from tests.projections.histories import History, asked, grown_by, opened

ACTS = st.tuples(st.sampled_from(["promote", "deprecate", "revoke", "invalidate"]), st.integers(0, 4))
NEWEST = "SELECT kernel_id FROM kernels WHERE family = '{}' AND status = 'active' ORDER BY version DESC LIMIT 1"


@settings(max_examples=8, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=5))
@pytest.mark.slow
def test_what_is_on_offer_is_what_the_registry_calls_active_at_every_prefix(acts: list[tuple[str, int]]) -> None:
    history, names = opened(), []
    for act, choice in acts:
        names.append(f"{choice}-{len(history.events)}")
        grown_by(history, act, choice)
    told = {"KernelPromoted", "KernelDeprecated", "KernelRevoked", "BenchmarkInvalidated"}
    families = {one.event.family for one in history.events if one.event.TYPE == "KernelPromoted"}
    with TemporaryDirectory() as folder, workspace_of(history, Path(folder) / "home") as workspace:
        for name, path in product(names, REQUIRED_FILES):
            workspace.blobs.put(str((name, path)).encode())
        for recorded in history.events:
            if recorded.event.TYPE in told:
                prefix = History(history.events[: recorded.seq])
                for family in families:
                    found = incumbent_kernel(workspace, family, before_seq=recorded.seq + 1)
                    active = asked(prefix, NEWEST.format(family))
                    assert (found and found.kernel_id) == (active[0][0] if active else None)


@pytest.mark.parametrize("words", [("benchmark", "invalidate"), ("kernel", "revoke"), ("kernel", "deprecate")])
def test_a_kernel_that_was_taken_back_is_neither_looked_up_nor_a_baseline(words: tuple[str, ...], home: Path) -> None:
    run_id = benchmarked_run(home)
    kernel_id = ask("promote", run_id, "--home", home, "--json").document["kernel_id"]
    (entry,) = ask("kernel", "list", "--home", home, "--json").document
    family = entry["family"]
    with Workspace.open(home) as workspace:
        assert incumbent_kernel(workspace, family) is not None
    named = str(entry["benchmark_seq"]) if words[0] == "benchmark" else kernel_id
    said = ask(*words, named, "--reason", "a wrong clock", "--home", home)
    assert said.status == 0, said.err
    with Workspace.open(home) as workspace:
        assert incumbent_kernel(workspace, family) is None
    (shown,) = ask("kernel", "list", "--home", home, "--json").document
    assert shown["status"] != "active"
