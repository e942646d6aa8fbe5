"""The table of processors: exact names, figures that can be, and how far evidence reaches."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.policy import Policy
from forge.domain.target import gpu_slug
from forge.errors import UnknownName, UsageError
from forge.pipeline.create import TaskRequest, create
from forge.platforms import PROCESSORS, evidence_reach, find_processor, find_target
from forge.platforms.gpus import slug_of

processors = st.sampled_from(sorted(PROCESSORS.values(), key=lambda one: one.slug))
GPUS = [one for one in PROCESSORS.values() if one.platform != "cpu"]
WANTED = """cpu rtx4070 rtx4090 rtx5090 l4 l40s a10 a100 a10040gb h100 h100pcie h100nvl h200 b200 gh200 mi250x mi300x
mi325x mi355x m2 m4"""


def test_every_processor_of_the_design_is_there() -> None:
    assert set(WANTED.split()) <= set(PROCESSORS)


def test_a_name_means_one_processor_and_is_a_slug() -> None:
    names = [name for one in PROCESSORS.values() for name in (one.slug, *one.aliases)]
    assert len(names) == len(set(names))
    assert [name for name in names if gpu_slug(name) != name] == []


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("H100 PCIe", "h100pcie"),
        ("NVIDIA H100 NVL", "h100nvl"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("A100-SXM4-40GB", "a10040gb"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Apple M4 Max", "m4max"),
    ],
)
def test_what_drivers_and_people_call_a_gpu_finds_exactly_it(name: str, slug: str) -> None:
    assert find_processor(name).slug == slug
    assert find_target(name).gpu == slug


@pytest.mark.parametrize(
    ("name", "nearest"), [("RTX 4080", "rtx4090"), ("RTX 4070 Ti", "rtx4070"), ("h20", "h200"), ("MI300", "mi300x")]
)
def test_an_unknown_name_is_refused_with_the_nearest_ones(name: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match=f"nearest: .*{nearest}"):
        find_processor(name)


def test_what_a_driver_reports_is_the_tables_slug_where_the_table_has_it() -> None:
    assert slug_of("NVIDIA H100 80GB HBM3") == "h100"
    assert slug_of("NVIDIA GeForce RTX 4070") == "rtx4070"
    assert slug_of("NVIDIA GeForce RTX 4070 Ti") == "rtx4070ti"


@given(st.text(max_size=12))
def test_any_text_is_exactly_one_processors_name_or_refused(text: str) -> None:
    try:
        found = find_processor(text)
    except UnknownName:
        return
    assert gpu_slug(text).removeprefix("nvidia") in (found.slug, *found.aliases)


@given(processors)
def test_a_figure_is_positive_or_absent_and_has_a_source(processor) -> None:
    figures = (
        processor.peak_bandwidth_gb_s,
        processor.memory_gb,
        processor.multiprocessors,
        processor.shared_kb_per_multiprocessor,
        processor.l2_mb,
        processor.interconnect_gb_s,
        *processor.peak_tflop_s.values(),
    )
    assert all(figure is None or figure > 0 for figure in figures)
    assert len(processor.source) > 10


@pytest.mark.parametrize("processor", GPUS, ids=lambda one: one.slug)
def test_a_gpu_has_memory_and_bandwidth_and_narrower_types_are_no_slower(processor) -> None:
    assert processor.memory_gb
    assert processor.peak_bandwidth_gb_s
    ordered = [
        processor.peak_tflop_s[t] for t in ("fp32", "tf32", "bf16", "fp8", "fp4") if t in processor.peak_tflop_s
    ]
    assert ordered == sorted(ordered)


def test_what_a_gpu_has_no_units_for_has_no_rate() -> None:
    assert "fp8" not in PROCESSORS["a100"].peak_tflop_s
    assert "fp4" not in PROCESSORS["h200"].peak_tflop_s
    assert "tf32" not in PROCESSORS["mi355x"].peak_tflop_s
    assert not PROCESSORS["m4"].peak_tflop_s


def test_a_task_for_a_platform_that_forge_cannot_run_is_refused() -> None:
    request = TaskRequest(op="rmsnorm", language="triton", gpu="MI300X", dtype="fp16", shape="batch=1,hidden_size=64")
    with pytest.raises(UsageError, match=r"Forge runs nothing on 'mi300x' \(rocm\)"):
        create(request, policy=Policy(), rng=random.Random(0))


@given(processors, processors)
def test_evidence_reaches_its_own_model_and_no_other(measured, claimed) -> None:
    assert (evidence_reach(measured, claimed) is None) == (measured.slug == claimed.slug)


def test_the_reason_names_both_and_a_consumer_card_is_called_one() -> None:
    for measured, claimed in itertools.permutations(GPUS, 2):
        reason = evidence_reach(measured, claimed)
        assert reason is not None
        assert measured.name in reason
        assert claimed.name in reason
    consumer = evidence_reach(PROCESSORS["rtx4090"], PROCESSORS["h100"])
    assert consumer is not None
    assert "consumer card" in consumer
