"""Measures a model with and without adopted kernels, and records the result whatever it says."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from forge import __version__
from forge.app.machine.chosen_device import chosen_device
from forge.app.models.predicted_gain import FunctionShare, predicted_speedup
from forge.app.workspace import Workspace
from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.environment import Environment
from forge.domain.evidence import Isolation
from forge.domain.model_measurement import (
    GREEDY_STEPS,
    AdoptedUse,
    ModelComparison,
    ModelMode,
    ModelWorkload,
)
from forge.domain.parsed_source import parse_source
from forge.domain.policy import Policy
from forge.domain.task import Name
from forge.errors import UsageError
from forge.events import ModelMeasured
from forge.lab.model_windows import ModelQuestion, ModelSamples, WindowPlan, measure_model
from forge.lab.packages import require_lab
from forge.lab.timing.paired_interval import interval, pair_ratios, within_band
from forge.lookup import Evidence, Registry
from forge.pipeline.promotion_rule import control_band
from forge.platforms.capture import capture_environment
from forge.sandbox.isolation_here import isolation

Data = dict[str, object]
FILE_BYTES = 1 << 20
"""Largest model file, in bytes: it builds a model from a configuration, and holds no weights."""
MOST_SEED = 1 << 31
"""Number above every seed. A seed has 31 bits, which every generator of random numbers takes."""
CPU = "cpu"


class GuestFacts(BaseModel):
    """What the model's process says; a claim."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")
    config: dict[str, Any]  # the file's own configuration
    own_error: float = Field(ge=0)
    adopted_error: float = Field(ge=0)
    equal_tokens: int = Field(ge=0, le=GREEDY_STEPS)
    generation: str
    lines: list[dict[str, Any]] = Field(max_length=4096)  # lines of an adoption's report
    shares: list[FunctionShare] = Field(max_length=4096)


def measure(
    workspace: Workspace,
    path: Path,
    *,
    workload: ModelWorkload,
    modes: Sequence[ModelMode],
    seed: int,
    window_s: float,
    process_pairs: int | None = None,
    rounds: int | None = None,
    device: str | None = None,
) -> list[Data]:
    """Measure the model in a file and record each mode; raise UsageError for a file that isn't one."""
    require_lab()
    name, source = _read(path)
    if not 0 <= seed < MOST_SEED:
        raise UsageError(f"bad seed {seed}: expected 0 to {MOST_SEED - 1}")
    registry = _published(workspace)
    policy, chosen = workspace.policy, chosen_device(device)
    plan = WindowPlan(
        process_pairs=process_pairs or policy.process_pairs,
        rounds=rounds or policy.rounds,
        window_s=window_s,
        threads=1,
    )
    question = ModelQuestion(
        name=name,
        source=source,
        workload=workload,
        modes=tuple(dict.fromkeys(modes)),
        seed=seed,
        gpu=chosen,
        registry=workspace.registry_root,
    )
    walls = isolation()
    measured, facts = _samples(workspace, question, plan, walls, registry)
    environment = capture_environment(forge_version=__version__, forge_commit=None, device=chosen)
    events = _events(workspace, question, plan, measured, facts, registry, environment, walls)
    return [_recorded(workspace, event, environment) for event in events]


def _events(
    workspace: Workspace,
    question: ModelQuestion,
    plan: WindowPlan,
    measured: Mapping[ModelMode, ModelSamples],
    facts: GuestFacts,
    registry: Registry,
    environment: Environment,
    walls: Isolation,
) -> list[ModelMeasured]:
    """Return an event for each mode; its samples and the model's file are stored."""
    evidence = _evidence(facts, registry)
    uses = _uses(facts, evidence)
    return [
        ModelMeasured(
            model=question.name,
            model_sha256=workspace.blobs.put(question.source),
            config_sha256=sha256(canonical(facts.config)),
            workload=question.workload,
            mode=mode,
            gpu=environment.gpu.slug if environment.gpu else CPU,
            env_sha256=environment.env_sha256,
            generation=facts.generation,
            uses=uses,
            comparison=compare(samples, facts, uses, mode=mode, evidence=evidence),
            conclusive=conclusive(samples, workspace.policy),
            process_pairs=plan.process_pairs,
            rounds=plan.rounds,
            samples_sha256=workspace.blobs.put(
                canonical({"times_ns": samples.times_ns, "facts": samples.untrusted_facts})
            ),
            isolation=walls,
            policy_sha256=digest_of(workspace.policy),
        )
        for mode, samples in measured.items()
    ]


def _recorded(workspace: Workspace, event: ModelMeasured, environment: Environment) -> Data:
    stream = event.stream()
    workspace.keep_policy()
    workspace.record_environment(environment, run_id=stream)
    appended = workspace.append_at(event, workspace.ledger.stream_version(stream))
    workspace.sign_decisions()
    workspace.catch_up()
    return {"seq": appended.first_seq, **event.model_dump(mode="json")}


def _samples(
    workspace: Workspace, question: ModelQuestion, plan: WindowPlan, walls: Isolation, registry: Registry
) -> tuple[dict[ModelMode, ModelSamples], GuestFacts]:
    samples = measure_model(question, plan, policy=workspace.policy, isolation=walls, rng=workspace.rng)
    facts = _facts(question.name, next(iter(samples.values())))
    if facts.generation != registry.generation:
        raise UsageError("the registry was published anew while the model ran: measure it again")
    return samples, facts


def _published(workspace: Workspace) -> Registry:
    """Return the registry; raise UsageError if it describes no operation."""
    workspace.catch_up()
    registry = Registry.open(workspace.registry_root)
    if not registry.operations:
        registry.read_operation("")  # says that nothing is described
    return registry


def compare(
    samples: ModelSamples,
    facts: GuestFacts,
    uses: tuple[AdoptedUse, ...],
    *,
    mode: ModelMode,
    evidence: Mapping[str, Evidence],
) -> ModelComparison:
    """Return how both sides compare, by the statistics of the promotion rule."""
    times = samples.times_ns
    replaced = {use.kernel_id: use.share for use in uses if use.backend != "fallback"}
    own_ns = _median(times["own"])
    return ModelComparison(
        speedup=interval(pair_ratios(times["own"], times["adopted"])),
        control=interval(pair_ratios(times["own"], times["control"])),
        own_median_ns=own_ns,
        adopted_median_ns=_median(times["adopted"]),
        own_error=facts.own_error,
        adopted_error=facts.adopted_error,
        equal_tokens=facts.equal_tokens,
        greedy_steps=GREEDY_STEPS,
        replaced_share=min(1.0, sum(replaced.values())),
        predicted=predicted_speedup(mode, own_ns, facts.shares, evidence),
    )


def conclusive(samples: ModelSamples, policy: Policy) -> bool:
    """Return whether the own side agrees with itself."""
    control = interval(pair_ratios(samples.times_ns["own"], samples.times_ns["control"]))
    return within_band(control, control_band(policy, "host_slope"))


def _evidence(facts: GuestFacts, registry: Registry) -> dict[str, Evidence]:
    """Return the evidence of each kernel that the adopted side took, from the registry."""
    found = {}
    for line in facts.lines:
        if line["kernel_id"] is None:
            continue
        slot = {"op": line["op"], "gpu": line["device"], "dtype": line["dtype"], "shape": line["shape"]}
        answer = registry.lookup(**slot)
        if answer.kernel is None or answer.kernel.kernel_id != line["kernel_id"] or answer.evidence is None:
            raise UsageError(
                f"the model's process says that {line['kernel_id']!r:.100} ran: expected the kernel that the "
                f"registry answers for {slot!r:.300}; measure again",
                hint="forge model measure --help",
            )
        found[answer.kernel.kernel_id] = answer.evidence
    return found


def _uses(facts: GuestFacts, evidence: Mapping[str, Evidence]) -> tuple[AdoptedUse, ...]:
    """Return what the adopted side took, with the share of the functions that each kernel replaces."""
    shares = {(one.op, one.kernel_id): one.share for one in facts.shares}
    found = []
    for line in facts.lines:
        kernel = line["kernel_id"]
        speedup = None if kernel is None else evidence[kernel].speedup
        fields = {name: line[name] for name in ("op", "backend", "kernel_id", "sha256", "reason", "hits")}
        share = shares.get((line["op"], kernel), 0.0)
        found.append(AdoptedUse.model_validate({**fields, "share": share, "speedup": speedup}))
    if not found:
        raise UsageError(
            "the model called no adopted operation: expected it to call the functions that op(name, own) returns"
        )
    return tuple(found)


def _facts(name: str, samples: ModelSamples) -> GuestFacts:
    try:
        facts = GuestFacts.model_validate(samples.untrusted_facts)
        canonical(facts.config)
    except (ValidationError, ValueError, TypeError) as error:
        raise UsageError(
            f"the answer of the model {name!r} can't be read ({str(error)[:200]}): expected facts that fit into JSON"
        ) from error
    if not (math.isfinite(facts.own_error) and math.isfinite(facts.adopted_error)):
        raise UsageError(f"the model {name!r} has logits that aren't finite: expected numbers")
    return facts


def _median(times_ns: Sequence[Sequence[float]]) -> float:
    return statistics.median(value for rounds in times_ns for value in rounds)


def _read(path: Path) -> tuple[str, bytes]:
    """Return the model's name and its file."""
    try:
        if not path.is_file() or path.stat().st_size > FILE_BYTES:
            raise UsageError(f"bad model {str(path)!r}: expected a Python file of at most {FILE_BYTES} bytes")
        content = path.read_bytes()
        name = TypeAdapter(Name).validate_python(path.stem.lower().replace("-", "_"))
        parse_source(content, filename=str(path))
    except ValidationError as error:
        raise UsageError(f"bad model {path.name!r}: expected a name of letters, digits and _") from error
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"the model {str(path)!r} isn't Python ({error}): expected a file that Python can parse"
        ) from error
    except OSError as error:
        raise UsageError(
            f"the model {str(path)!r} can't be read: {error}; expected a file that you may read"
        ) from error
    return name, content
