"""The nouns that the histories are made of."""

from forge.domain.candidate import Candidate, CandidateFile
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import sha256
from forge.domain.environment import Environment, GpuFacts
from forge.domain.evidence import Confirmation, GateResult, Interval, Isolation, Speedup, Timing
from forge.domain.evidence import WorkloadTiming as Workload
from forge.domain.protocol import REPLAY
from forge.domain.target import Target
from forge.domain.task import Task
from forge.domain.tensors import Shape
from forge.events.environment import EnvironmentCaptured

ARCHITECTURES = {"h100": "sm_90", "h200": "sm_90", "rtx4070": "sm_89"}
SHAPE: Shape = {"batch": 16, "hidden_size": 4096}
EDGES: tuple[Shape, ...] = (
    {"batch": 1, "hidden_size": 4096},
    {"batch": 16, "hidden_size": 1023},
    {"batch": 64, "hidden_size": 8192},
)
GATES = (GateResult(name="correct", verdict="passed", observed="0.4 of the bound", threshold="1"),)
WALL = Isolation(level="namespaces", parts=("user", "pid", "net"), missing=())


def digest(text: object) -> str:
    return sha256(str(text).encode())


def environment(gpu: str = "h200", *, driver: str = "580.1") -> Environment:
    facts = GpuFacts(
        name=gpu.upper(),
        slug=gpu,
        arch=ARCHITECTURES.get(gpu, "sm_80"),
        count=1,
        memory_bytes=2**37,
        power_limit_w=700.0,
        ecc=True,
        mig=False,
        uuid=None,
    )
    return Environment(
        cpu_model="a processor",
        cpu_cores=8,
        cpu_features=("avx2",),
        system="Linux",
        machine="x86_64",
        kernel="6.8",
        glibc="2.39",
        python="3.11.7",
        torch="2.9.0",
        triton="3.5.0",
        compiler="g++ 13",
        gpu=None if gpu == "cpu" else facts,
        driver=driver,
        cuda="13.0",
        clock_policy="locked",
        forge_version="0.1.0",
        forge_commit=None,
        host_sha256=digest("host"),
    )


def captured(gpu: str = "h200", *, driver: str = "580.1") -> EnvironmentCaptured:
    found = environment(gpu, driver=driver)
    return EnvironmentCaptured(
        environment=found, env_sha256=found.env_sha256, perf_key=found.perf_key, abi_key=found.abi_key
    )


def task(
    *,
    op: str = "rmsnorm",
    gpu: str = "h200",
    dtype: str = "bf16",
    shape: Shape = SHAPE,
    language: str = "triton",
) -> Task:
    return Task.model_validate(
        {
            "op": op,
            "language": language,
            "target": Target(platform="cpu" if gpu == "cpu" else "cuda", gpu=gpu),
            "dtype": dtype,
            "shape": shape,
            "minimum_speedup": 1.1,
            "baselines": ("eager",),
            **{f"{name}_sha256": digest(name) for name in ("reference", "inputs", "tolerance", "held_out", "policy")},
        }
    )


def candidate(name: str, *, language: str = "triton") -> Candidate:
    files = tuple(CandidateFile(path=path, sha256=digest((name, path)), size_bytes=10) for path in REQUIRED_FILES)
    return Candidate.model_validate({"files": files, "language": language, "entry_point": "rmsnorm"})


def confirmation(*, median_ns: float, ratio: float) -> Confirmation:
    again = workload({"rows": 1}, median_ns=median_ns, ratio=ratio)
    return Confirmation(
        candidate=again.candidate, speedups=again.speedups, control=again.control, process_pairs=again.process_pairs
    )


def workload(shape: Shape, *, median_ns: float, ratio: float, confirmed: float | None = None) -> Workload:
    """`confirmed` is the ratio of a confirmation, in which the candidate takes 3 % longer."""
    return Workload(
        confirmation=None if confirmed is None else confirmation(median_ns=median_ns * 1.03, ratio=confirmed),
        shape=shape,
        candidate=Timing(
            n=100,
            median_ns=median_ns,
            p10_ns=median_ns,
            p90_ns=median_ns,
            mad_ns=1.0,
            method="launch_plan",
        ),
        speedups=(
            Speedup(
                baseline="eager",
                baseline_median_ns=median_ns * ratio,
                interval=Interval(ratio=ratio, low=ratio * 0.98, high=ratio * 1.02),
                pairs_lost=0,
            ),
        ),
        control=Interval(ratio=1.0, low=0.99, high=1.01),
        harness_ns=0.0,
        floor_ns=median_ns / 2,
        floor_fraction=0.5,
        process_pairs=5,
        rounds=20,
        samples_sha256=digest(("samples", shape, median_ns)),
        protocol=REPLAY,
    )
