"""The figures of the GPU's clock: how trials are counted, how parts are put together, and what is written of them.

Times are made up here: there is no GPU. What is recorded in docs is held against the page.
"""

import json
import random
import runpy
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return runpy.run_path(str(BENCHMARKS / "measurement_page.py"))


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch):
    """measurement.py, and a bench whose windows take made-up times: 1 % between processes, 0.5 % between windows."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    made = runpy.run_path(str(BENCHMARKS / "measurement.py"))

    class Bench(made["Bench"]):
        def window_ns(self, side, **_):
            taken = round(1e6 * side * self.rng.gauss(1, 0.005))
            self.device_ns += taken
            return taken

    rng = random.Random(1)
    one = Bench(None, [None] * 4, ExitStack(), rng)
    return made, one, lambda speed: [rng.gauss(speed, 0.01 * speed) for _ in range(8)]


def test_a_kernel_is_hardly_ever_faster_than_itself_and_a_faster_one_is(parts) -> None:
    made, one, sides = parts
    same = made["against_itself"](one, sides(1.0), sides(1.0), trials=40, limit_s=60)
    faster = made["against_itself"](one, sides(1.3), sides(1.0), trials=20, limit_s=60)
    assert len(same["trials"]) == 40
    assert sum(low >= 1.02 for _, low, _, _ in same["trials"]) <= 2
    assert all(low >= 1.10 and lost == 0 for _, low, _, lost in faster["trials"])
    windows = 40 * made["PAIRS"] * made["ROUNDS"] * 2
    assert same["gpu_s"] == pytest.approx(windows * 1e-3, rel=0.05)
    assert same["median_us"] == pytest.approx(1e3 / 4, rel=0.05)


def test_the_time_limit_ends_the_trials_after_the_one_that_runs(parts) -> None:
    made, one, sides = parts
    cut = made["against_itself"](one, sides(1.0), sides(1.0), trials=10**6, limit_s=0.2)
    assert 1 <= len(cut["trials"]) < 10**6


def test_more_rounds_take_more_of_the_gpu(parts) -> None:
    made, one, sides = parts
    rows = made["widths"](one, sides(1.0), sides(1.0))
    assert [row["rounds"] for row in rows] == list(made["WIDTH_ROUNDS"])
    for row in rows:
        assert row["gpu_s"] == pytest.approx(row["rounds"] * made["PAIRS"] * 2e-3, rel=0.1)
        assert row["half_width"] > 0


def result(shape: str, ratios: list[float], **changes: object) -> dict[str, object]:
    machine = {"gpu": "NVIDIA H200", "cuda": "13.0", "torch": "2.11.0", "triton": "3.6.0", "python": "3.12"}
    trials = [[1.0, 0.999, 1.001, 1], [1.15, 1.11, 1.19, 0], [1.15, 1.11, 1.19, 1]]
    widths = [{"rounds": n, "half_width": 0.02 / n, "half_widths": [], "gpu_s": 0.01 * n} for n in (1, 2, 4)]
    launcher = {"launcher_us": 2.03, "own_calls_us": 2.01, "ratio": 1.01, "low": 1.008, "high": 1.012}
    forge = {"trials": trials, "median_us": 2.03, "gpu_s": 1.0, "wall_s": 10.0}
    return {
        "machine": machine,
        "pairs": 5,
        "rounds": 8,
        "pool": 10,
        "field": [{"shape": shape, "method": "events", "ratios": ratios, "median_us": 26.0}],
        "shapes": [{"shape": shape, "forge": forge, "widths": widths, "launcher": launcher, "states": []}],
        **changes,
    }


def test_parts_are_put_together_and_counted(page) -> None:
    whole = page["merged"]([result("256x4096", [1.0, 1.2]), result("16x4096", [0.9]), result("256x4096", [1.1])])
    assert list(whole["shapes"]) == ["16x4096", "256x4096"]
    methods = whole["shapes"]["256x4096"]["methods"]
    assert page["claims"](methods["events"]["trials"], 1.10) == 2
    assert len(methods["events"]["trials"]) == 3
    assert page["claims"](methods["forge"]["trials"], 1.10) == 2
    assert len(methods["forge"]["trials"]) == 6
    shown = page["against_itself"](whole)
    assert "| 256x4096 | events, L2 flushed | 26.00 |" in shown
    assert "2 of 3" in shown
    assert "2 of 6" in shown


def test_other_models_of_gpu_are_not_put_together(page) -> None:
    other = result("16x4096", [1.0])
    other["machine"] = {**other["machine"], "gpu": "NVIDIA H100"}  # type: ignore[dict-item]  # made above
    with pytest.raises(SystemExit, match="one model"):
        page["merged"]([result("16x4096", [1.0]), other])


def test_the_section_is_replaced_and_the_rest_of_the_page_stays(page) -> None:
    phase = {"verify": 9.1, "bench": 8.2, "promote": 0.1}
    one = {"total_s": 17.5, "seconds": phase, "gpu_busy_s": 3.2, "decision": "KernelPromoted"}
    cost = {"example": "softmax", "shape": "4096x4096", "cold": one, "warm": one, "candidates_per_gpu_hour": 205.7}
    whole = page["merged"]([result("16x4096", [0.5, 2.5], cost=cost)])
    text = f"before\n{page['BEGIN']}\nstale\n{page['END']}\nafter\n"
    once = page["written"](text, whole)
    assert page["written"](once, whole) == once
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    assert "stale" not in once
    for said in ("NVIDIA H200", "206 candidates per GPU-hour", "| warm | 17.5 | 9.1 |", "1.0080 to 1.0120", "0.50%"):
        assert said in once
    with pytest.raises(SystemExit, match="no place"):
        page["written"]("a page without markers", whole)


def test_the_plot_is_one_svg_with_every_method_and_curve(page) -> None:
    from xml.etree import ElementTree

    drawn = page["plot"](page["merged"]([result("16x4096", [0.1, 9.0]), result("4096x4096", [1.0, 1.0])]))
    root = ElementTree.fromstring(drawn)
    named = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"16x4096", "4096x4096", "Forge's rule", "events, L2 flushed", "0.10 to 9.00"} <= named
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 2


def test_the_documented_figures_are_those_of_the_data_beside_them(page) -> None:
    text = (ROOT / "docs" / page["PAGE"]).read_text()
    data = ROOT / "docs" / page["DATA"]
    if data.exists():
        found = json.loads(data.read_text())
        assert page["section"](found) in text
        assert (ROOT / "docs" / page["PLOT"]).read_text() == page["plot"](found)
    else:
        assert text.count(page["BEGIN"]) == text.count(page["END"]) == 1


@pytest.mark.parametrize("command", [["measurement.py", "--json"], ["field_timing.py", "16x4096"]])
def test_without_a_gpu_it_says_so(command: list[str], tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(BENCHMARKS / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "CUDA_VISIBLE_DEVICES": "", "HOME": str(tmp_path)},
    )
    assert ended.returncode == 3
    assert "GPU" in ended.stderr
    assert "Traceback" not in ended.stderr
