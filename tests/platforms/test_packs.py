"""Platform packs: each says what it judges, and its readers take the exports of its profilers and nothing else."""

import json

import pytest

from forge.app.sessions.platform_pack import judging
from forge.errors import UnknownName, UsageError
from forge.platforms import PLATFORMS
from forge.platforms.packs import PACKS, find_pack, read_export

PERF = """
 Performance counter stats for './a.out':

          1,234.50 msec task-clock                #    3.9 CPUs utilized
     4,000,000,000      cycles                    #    3.2 GHz
     2,000,000,000      instructions              #    0.50  insn per cycle
        10,000,000      cache-references
         2,500,000      cache-misses              #   25.0 %
   <not supported>      LLC-load-misses
"""
NCU = (
    '==PROF== Connected\n"ID","Kernel Name","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",'
    '"sm__throughput.avg.pct_of_peak_sustained_elapsed"\n"","","%","%"\n"0","k","80.0","20.5"\n"1","k","60.0","n/a"\n'
)
ROCPROF = "Index,KernelName,MemUnitBusy,VALUBusy,FetchSize\n0,k,71.5,12,1024\n1,k,70.5,14,1024\n"
ROCPROF3 = "Kernel_Name,Counter_Name,Counter_Value\nk,VALUBusy,10\nk,VALUBusy,20\nk,Unknown,1\n"
XCODE = "\ufeffEncoder,ALU Limiter (%),Buffer Read Limiter (%),GPU Time\nfirst,12.5 %,91 %,31.2 us\n"
TRACE = json.dumps(
    {
        "traceEvents": [
            {"cat": "kernel", "dur": 5},
            {"cat": "kernel", "dur": 7.5},
            {"cat": "cpu_op", "dur": 100},
            {"x": 1},
        ]
    }
)


@pytest.mark.parametrize(
    ("name", "tool", "text", "expected"),
    [
        ("cpu", "perf", PERF, {"perf.ipc": 0.5, "perf.cache_miss_share": 0.25, "perf.task_ms": 1234.5}),
        ("cuda", "ncu", NCU, {"ncu.dram_percent": 70.0, "ncu.compute_percent": 20.5}),
        ("cuda", "torch", TRACE, {"torch.kernel_us": 12.5, "torch.operator_us": 100.0}),
        ("rocm", "rocprof", ROCPROF, {"rocprof.memory_busy_percent": 71.0, "rocprof.fetched_kb": 1024.0}),
        ("rocm", "rocprof", ROCPROF3, {"rocprof.valu_busy_percent": 15.0}),
        ("metal", "xcode", XCODE, {"xcode.read_limiter_percent": 91.0, "xcode.gpu_us": 31.2}),
    ],
)
def test_an_export_gives_the_numbers_that_the_pack_explains(
    name: str, tool: str, text: str, expected: dict[str, float]
) -> None:
    found = {one.id: one.value for one in read_export(find_pack(name), tool, text.encode())}
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize("pack", PACKS.values(), ids=list(PACKS))
def test_another_file_is_refused_by_every_reader(pack: object) -> None:
    found = next(one for one in PACKS.values() if one is pack)
    for tool in found.readers:
        for content in (
            b"",
            b"\xff\xfe\x00",
            b"a,b\n1,2\n",
            b"{}",
            b"[" * 50_000,
            b'{"traceEvents": 1}',
            b"\0" * 100,
        ):
            with pytest.raises(UsageError, match="the export"):
                read_export(found, tool, content)
    with pytest.raises(UnknownName, match="profiler"):
        read_export(found, "gdb", b"x")


def test_each_pack_explains_its_counters_and_says_in_one_sentence_what_forge_judges() -> None:
    assert set(PLATFORMS) <= set(PACKS)
    for pack in PACKS.values():
        text = pack.text()
        assert pack.example.strip() in text
        assert all(f"`{one.id}`" in text for one in pack.metrics)
        assert judging(pack).count(".") == 1
    assert (
        judging(find_pack("rocm"))
        == "Forge judges no kernel for AMD Instinct GPUs: it runs kernels on cpu and cuda alone."
    )
    assert judging(find_pack("metal")).startswith("Forge judges no kernel for Apple GPUs")
    with pytest.raises(UnknownName):
        find_pack("vulkan")
