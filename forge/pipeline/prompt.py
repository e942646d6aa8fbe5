"""Render the brief that an author works from, within a budget of tokens."""

from pathlib import Path

from forge.domain.axes import AXES, LAYER_NAMES
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import canonical, sha256
from forge.domain.own_operation import is_own
from forge.domain.policy import Policy
from forge.domain.task import Objective, Task
from forge.domain.tensors import TORCH_NAMES, DType, TensorSpec
from forge.events import PromptRendered
from forge.events.plan import Triage
from forge.lab.device.toolkit import gpu_code
from forge.languages import Language, find_language
from forge.operations import find_operation, reference_source
from forge.operations.operation import Operation
from forge.pipeline.asked_values import bounds_of, own_terms, values_of
from forge.pipeline.budget import DEFAULT_TOKENS, Told, fit, tokens_of
from forge.pipeline.fence import fenced
from forge.pipeline.metadata_schema import metadata_schema
from forge.pipeline.outcome import Outcome
from forge.pipeline.skills import Skill
from forge.pipeline.starter_kernel import starter_kernel
from forge.pipeline.task_facts import LAUNCH_US, Bottleneck, bottleneck, least_traffic
from forge.pipeline.templates import environment
from forge.platforms import PROCESSORS, Processor

TEMPLATE, TEMPLATE_VERSION = "brief.md.j2", 5
OBJECTIVES: dict[Objective, str] = {
    "latency": "Latency: the time of one call.",
    "throughput": "Throughput: rows for each second where calls follow each other.",
    "memory": "Memory: as little of it beside inputs and outputs as can be, without losing time.",
    "balanced": "Balanced: time first, and no more memory than it is worth.",
}
ADVICE: dict[Bottleneck, str] = {
    "memory": "bytes decide. Touch every byte once, in wide accesses, with enough of them in flight; "
    "arithmetic beside them costs nothing until the ridge.",
    "compute": "arithmetic decides. Keep the matrix units fed without gaps; bytes matter where they stall them.",
    "launch": "starting and finishing take longer than moving the bytes. One kernel, few steps that wait for each "
    "other, and work spread wide enough are what can be gained.",
}
_PACKAGE = Path(__file__).parent.parent


def render(
    task: Task,
    *,
    run_id: str,
    skills: tuple[Skill, ...],
    policy: Policy,
    triage: Triage | None = None,
    budget_tokens: int = DEFAULT_TOKENS,
    machine: tuple[tuple[str, str], ...] = (),
) -> Outcome:
    """Render the brief; the same task, skills, policy, budget and machine give the same text.

    `machine` are names and values of the processor that candidates run on, if the task's target is one.
    """
    language = find_language(task.language)
    fixed = _variables(task, language, policy, triage, budget_tokens) | {"machine": list(map(list, machine))}
    template = environment().get_template(TEMPLATE)
    everything = Told(skills=skills, earlier=triage.earlier if triage else ())
    told, text = fit(everything, lambda one: template.render(fixed | _told(one)), budget_tokens=budget_tokens)
    rendered = text.encode()
    source = (_PACKAGE / "prompts" / TEMPLATE).read_bytes() + language.guide_file.read_bytes()
    event = PromptRendered(
        task_id=task.task_id,
        run_id=run_id,
        template=TEMPLATE,
        template_version=TEMPLATE_VERSION,
        template_sha256=sha256(source),
        variables_sha256=sha256(canonical(fixed | _told(told))),
        rendered_sha256=sha256(rendered),
        budget_tokens=budget_tokens,
        tokens=tokens_of(text),
        left_out=told.left_out,
    )
    return Outcome(events=(event,), files={"agent_prompt.md": rendered}, blobs=(rendered,))


def _variables(
    task: Task, language: Language, policy: Policy, triage: Triage | None, budget_tokens: int
) -> dict[str, object]:
    """Return the template's variables, except those that the budget decides."""
    operation = find_operation(task.op)
    prior = bottleneck(triage) if triage else None
    return {
        "task": {**task.model_dump(mode="json"), "domain": list(task.domain.conditions) if task.domain else []},
        "operation": _operation_variables(task, operation, policy),
        "task_id": task.task_id,
        "further": list(task.further_shapes),
        "hardware": described_processor(PROCESSORS[task.target.gpu], task.dtype),
        "reference": fenced(reference_source(operation), "python"),
        "objective": OBJECTIVES[task.objective],
        "files": list(REQUIRED_FILES),
        "layers": [[layer, LAYER_NAMES[layer], list(axes)] for layer, axes in AXES.items()],
        "metadata_schema": fenced(metadata_schema(task), "json"),
        "multiples": [policy.tolerance_baseline_multiple, policy.tolerance_accumulate_multiple],
        "verify_limit_s": policy.verify_limit_s,
        "pairs": policy.process_pairs,
        "language": {
            "name": language.name,
            "title": language.title,
            "summary": language.summary,
            "guide": f"{language.name}/guide.md.j2",
        },
        "triage": triage.model_dump(mode="json", exclude={"earlier"}) if triage else None,
        "bottleneck": prior,
        "advice": ADVICE[prior] if prior else None,
        "launch_us": LAUNCH_US,
        "starter": fenced(starter_kernel(operation, language), "python"),
        "budget_tokens": budget_tokens,
    }


def _operation_variables(task: Task, operation: Operation, policy: Policy) -> dict[str, object]:
    """Return what the template shows of the operation at the task's shape."""
    return {
        "name": operation.name,
        "summary": operation.summary,
        "signature": operation.signature,
        "numerics": operation.numerics,
        "specials": operation.specials,
        "masks": operation.masks,
        "layouts": list(operation.layouts),
        "bytes_moved": least_traffic(task),
        "flops": operation.flops(task.shape),
        "operands": [_operand(spec, task) | {"values": values_of(operation, spec)} for spec in operation.inputs],
        "results": [_operand(spec, task) for spec in operation.outputs],
        "updates": list(operation.updates),
        "returned": [spec.name for spec in operation.returned],
        "own": is_own(operation.name),
        "terms": own_terms(task, operation),
        "wide": operation.own is None or operation.own.contract.wide,
        "bounds": bounds_of(task, operation, policy),
        "axes": list(operation.axes),
    }


def _told(told: Told) -> dict[str, object]:
    return {
        "skills": [{"id": skill.id, "text": skill.text.strip()} for skill in told.skills],
        "earlier": [one.model_dump(mode="json") for one in told.earlier],
        "left_out": list(told.left_out),
    }


def _operand(spec: TensorSpec, task: Task) -> dict[str, object]:
    return {
        "name": spec.name,
        "axes": list(spec.axes),
        "sizes": list(spec.sizes(task.shape)),
        "element": f"torch.{TORCH_NAMES[spec.element_type(task.dtype)]}",
    }


def described_processor(processor: Processor, dtype: DType) -> dict[str, object]:
    """Return names and values for a table. Figures that the vendor doesn't publish are left out."""
    rates = {name: processor.peak_tflop_s.get(name) for name in dict.fromkeys((dtype, "fp32"))}
    peaks = ", ".join(f"{name} {rate:g} TFLOP/s" for name, rate in rates.items() if rate is not None)
    lines: tuple[tuple[str, str | None], ...] = (
        ("memory", _with_unit(processor.memory_gb, "GB")),
        ("memory bandwidth", _with_unit(processor.peak_bandwidth_gb_s, "GB/s")),
        ("peak rates, dense", peaks or None),
        ("multiprocessors", _with_unit(processor.multiprocessors, "")),
        ("shared memory of each", _with_unit(processor.shared_kb_per_multiprocessor, "KiB")),
        ("last cache they share", _with_unit(processor.l2_mb, "MiB")),
    )
    return {
        "name": processor.name,
        "arch": processor.arch,
        "code": gpu_code(processor.arch) if processor.platform == "cuda" else None,
        "on_gpu": processor.platform != "cpu",
        "figures": [[name, value] for name, value in lines if value is not None],
    }


def _with_unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}".strip()
