"""The same values give the same picture, byte for byte, and nothing in a name is read as markup."""

import builtins
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from forge.errors import EnvironmentUnfit, UsageError
from forge.pictures import speedups
from forge.pictures.roofline import draw_roofline
from forge.pictures.speedups import draw_speedups
from forge.pictures.terminal import roofline_text, speedups_text, timeline_text
from forge.pictures.timeline import draw_timeline
from forge.pictures.values import LONGEST_NAME, Bar, Moment, Placed, Roofs, legible, machine_changes

BARS = (
    Bar(name="a_v1", ratio=2.0, low=1.9, high=2.1, over="eager"),
    Bar(name="b_v1", ratio=0.8, low=0.7, high=0.9, over="vendor"),
)
ROOFS = Roofs(name="h200", bytes_per_s={"memory": 4e12, "cache": 7e12}, flop_per_s={"fp32": 5e13, "bf16": 7e14})
POINTS = (
    Placed(series="softmax", flop_per_byte=1.2, flop_per_s=3e12, promoted=True),
    Placed(series="rmsnorm", flop_per_byte=1.0, flop_per_s=1e11, promoted=False),
)


def moment(place: int, *, driver: str = "580.1", series: str = "a", standing="counted") -> Moment:
    return Moment(
        recorded_at=f"2026-01-02T03:04:{place:02}.000000Z",
        series=series,
        time_us=10.0 + place,
        ratio=1.5 - place / 100,
        low=1.4,
        high=1.6,
        standing=standing,
        machine={"gpu": "h200", "driver": driver},
        machine_key=driver,
    )


MOMENTS = (
    moment(0),
    moment(1, standing="refused"),
    moment(2, driver="590.2"),
    moment(3, driver="590.2", series="$b$"),
)


def draw_all(folder: Path, suffix: str) -> dict[str, bytes]:
    draw_speedups(BARS, folder / f"speedups{suffix}", title="speedups")
    draw_timeline(MOMENTS, folder / f"timeline{suffix}", title="history", over="eager")
    draw_roofline(POINTS, ROOFS, folder / f"roofline{suffix}", title="roofline")
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"*{suffix}"))}


@pytest.mark.slow
def test_each_picture_is_the_same_whenever_it_is_drawn(tmp_path):
    (tmp_path / "again").mkdir()
    for suffix, beginning in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        drawn = draw_all(tmp_path, suffix)
        assert len(drawn) == 3
        assert draw_all(tmp_path / "again", suffix) == drawn
        assert all(content.startswith(beginning) for content in drawn.values())
        assert all(b"<dc:date>" not in content for content in drawn.values())


def test_a_picture_of_nothing_can_be_drawn(tmp_path):
    draw_speedups((), tmp_path / "a.svg", title="none")
    draw_timeline((), tmp_path / "b.svg", title="none", over="eager")
    draw_roofline((), ROOFS, tmp_path / "c.svg", title="none")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", ["picture.pdf", "picture", "gone/picture.svg"])
def test_a_picture_that_cannot_be_written_is_bad_input(name, tmp_path):
    with pytest.raises(UsageError, match="expected"):
        draw_speedups(BARS, tmp_path / name, title="speedups")
    assert list(tmp_path.iterdir()) == []


def test_of_many_bars_the_first_are_drawn_and_the_title_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(speedups, "MOST_BARS", 2)
    bars = [Bar(name=f"bar {place}", ratio=2.0, low=1.9, high=2.1, over="none") for place in range(3)]
    draw_speedups(bars, tmp_path / "many.svg", title="kernels")
    text = (tmp_path / "many.svg").read_text()
    assert "<!-- kernels (the first 2 of 3) -->" in text
    assert "<!-- bar 1 -->" in text
    assert "<!-- bar 2 -->" not in text


def test_every_bar_is_drawn_whatever_it_was_measured_over(tmp_path):
    for over in ("eager", "compile", "vendor", "promoted", "flashinfer"):
        draw_speedups([replace(BARS[0], over=over)], tmp_path / "one.svg", title="kernels")
        text = (tmp_path / "one.svg").read_text()
        assert "<!-- 2.00x  (1.90 to 2.10) -->" in text, over
        assert f"<!-- over {over} -->" in text


@pytest.mark.parametrize("length", [3, 40, LONGEST_NAME])
def test_no_text_of_a_picture_is_cut_at_its_edge(length, tmp_path):
    name = ("triton_kv_cache_append_h200_bf16_" * 2)[:length]
    bars = [Bar(name=name, ratio=ratio, low=ratio, high=ratio, over="eager") for ratio in (1.0, 13.36, 999.99)]
    title = "a kernel of some name, from the first to the last measurement " * 3
    draw_speedups(bars, tmp_path / "speedups.png", title=title)
    draw_timeline(MOMENTS, tmp_path / "timeline.png", title=title, over="the baseline that had to be beaten")
    for path in tmp_path.glob("*.png"):
        assert margins_are_white(path), path.name


def margins_are_white(path: Path) -> bool:
    from matplotlib.image import imread

    drawn = imread(path)[:, :, :3]
    return all((edge == 1).all() for edge in (drawn[0], drawn[-1], drawn[:, 0], drawn[:, -1]))


def test_long_names_that_differ_at_their_end_stay_apart_in_both_pictures():
    names = [f"triton_kv_cache_append_h200_bf16_headdim128_kvheads8_slots4096_tokens{place}_v1" for place in (16, 32)]
    assert len({legible(name) for name in names}) == 2
    lines = speedups_text([replace(BARS[0], name=name) for name in names], title="speedups").splitlines()
    assert [line.split()[0][-12:] for line in lines[2:4]] == ["_tokens16_v1", "_tokens32_v1"]


def test_a_name_is_neither_markup_nor_a_command(tmp_path):
    evil = legible("</svg><script>--> $x^2$ \x1b[2J\x00\u202e\ud800" + "a" * 9000)
    assert len(evil) == LONGEST_NAME
    assert evil.isprintable()
    draw_speedups([replace(BARS[0], name=evil)], tmp_path / "a.svg", title=evil)
    ElementTree.parse(tmp_path / "a.svg")
    assert "<script" not in (tmp_path / "a.svg").read_text()


def test_a_change_of_machine_names_what_differs():
    assert machine_changes(MOMENTS) == [(2, "driver 580.1 → 590.2")]


def test_the_terminal_shows_every_bar_on_one_line_with_its_interval():
    lines = speedups_text(BARS, title="speedups").splitlines()
    first, second = (next(line for line in lines if line.startswith(bar.name)) for bar in BARS)
    assert re.search(r"\|  +-+o-+ +2\.00x over eager$", first)
    assert re.search(r"-+o-+ +\| +0\.80x over vendor$", second)


def test_the_terminal_names_series_and_changes_and_uses_no_escape_sequence():
    drawn = timeline_text(MOMENTS, title="history", over="eager", width=80)
    assert "before measurement 3: driver 580.1 → 590.2" in drawn
    assert {"o: $b$", "x: a"} <= set(drawn.splitlines())
    roof = roofline_text(POINTS, ROOFS, title="roofline", width=80)
    assert "memory 4 TB/s" in roof
    assert all(f"{label}┤" in roof for label in ("100 G", "1 T", "100 T"))
    assert roof.splitlines()[-4].split() == ["1", "10", "100"], "the axis of operations per byte"
    assert "\x1b" not in drawn + roof


@pytest.mark.parametrize(
    ("missing", "draw"),
    [
        ("matplotlib", lambda folder: draw_speedups(BARS, folder / "a.svg", title="t")),
        ("plotext", lambda _: timeline_text(MOMENTS, title="t", over="eager", width=80)),
    ],
)
def test_without_the_extra_it_says_which_one_is_missing(missing, draw, tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **options):
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(EnvironmentUnfit, match=rf"{missing} isn't installed.*tensorpath-forge\[audit\]"):
        draw(tmp_path)


def test_importing_the_pictures_imports_no_drawing_library():
    code = "import sys, forge.pictures.roofline, forge.pictures.timeline, forge.pictures.terminal\n"
    code += "sys.exit(bool({'matplotlib', 'plotext', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_legend_stands_below_the_bars_and_the_axis_says_what_dot_and_line_are(tmp_path):
    draw_speedups(BARS, tmp_path / "bars.svg", title="speedups")
    drawn = (tmp_path / "bars.svg").read_text()
    at = r'<!-- (.+?) -->\s*<g[^>]*transform="translate\([0-9.]+ ([0-9.]+)\)'
    heights = {words: float(height) for words, height in re.findall(at, drawn)}
    assert max(heights["a_v1"], heights["b_v1"]) + 8 < min(heights["over eager"], heights["over vendor"])
    assert "dot: ratio; line: its 95 % interval; ordered by the lower end" in heights
