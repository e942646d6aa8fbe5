"""Examples in the OpenAPI document: a value for each parameter, and an answer for each form."""

from typing import Any

from forge.web import schemas

Document = dict[str, Any]  # Any: a JSON document
RUN, TASK = "20261123T002722_rmsnorm_h200_3459a6", "triton_rmsnorm_h200_bf16_t4096_h4096_0a1b2c3d"
KERNEL, CANDIDATE = "triton_rmsnorm_h200_bf16_t4096_h4096_v1", "5fc8ca79deec" + "0" * 52
HASH = "734d6cb70c5a" + "0" * 52
SHAPE = {"tokens": 4096, "hidden_size": 4096}
PARAMETERS: Document = {
    "after": "MDFhMjE0YmEtYTgwMC03OGI5LWI3OTgtZDVmODJhZWVmOGJmOjI1", "author": "agent:ada", "baseline": "eager",
    "by": "code", "candidate": CANDIDATE, "days": "90", "deprecated": False, "dtype": "bf16", "ended": "improved",
    "gpu": "h200", "Idempotency-Key": "my first try", "kernel": KERNEL, "kernel_id": KERNEL, "language": "triton",
    "limit": 50, "max_gpus": 8, "max_price_per_hour": 20.0, "max_ttft_ms": 500.0, "model": ["llama3.1-8b"],
    "name": "kernel.py", "nearest": False, "old_size": 3, "op": "rmsnorm", "price": ["h200=4"],
    "priority": "latency", "run_id": RUN, "seq": 5, "session_id": "last", "shape": "tokens=4096,hidden_size=4096",
    "size": 10, "state": "promoted", "status": "active", "task": TASK, "task_id": TASK, "text": "cache",
    "type": ["KernelPromoted"], "workload": "chat",
}  # fmt: skip
"""Name of a parameter -> an example of its value."""
OTHERWISE: dict[tuple[str, str], object] = {
    ("/api/v1/audits/{name}", "name"): "rejections",
    ("/api/v1/events", "after"): 25,
}
"""(Address, parameter) -> an example, where the name means something else than in `PARAMETERS`."""
PHASES: Document = {"submit": {"verdict": "accepted"}, "verify": None}
ANSWERS: dict[str, Document] = {
    model.__name__: example
    for model, example in (
        (schemas.Page, {"items": [], "next": None, "seq": 25}),
        (schemas.HealthForm, {"ok": True, "writable": True, "damage": None, "seq": 25, "forge_version": "0.1.0"}),
        (
            schemas.StateForm,
            {
                "ledger_id": "01a214ba",
                "seq": 25,
                "event_hash": HASH,
                "tasks": 4,
                "runs": 4,
                "kernels": 1,
                "runs_by_state": {"promoted": 1, "rejected": 3},
            },
        ),
        (
            schemas.TaskForm,
            {"task_id": TASK, "op": "rmsnorm", "language": "triton", "dtype": "bf16", "shape": SHAPE},
        ),
        (schemas.Brief, {"task_id": TASK, "run_id": RUN, "brief": "# Write a kernel: rmsnorm in Triton"}),
        (
            schemas.Run,
            {
                "run_id": RUN,
                "task_id": TASK,
                "state": "candidate_ready",
                "shown": True,
                "phases": PHASES,
                "next": f"forge verify {RUN}",
            },
        ),
        (
            schemas.CounterexampleForm,
            {
                "run_id": RUN,
                "candidate": CANDIDATE,
                "counterexample": None,
                "reason": {"code": "INCORRECT_NUMERICAL", "message": "3.2 x the bound"},
            },
        ),
        (
            schemas.CandidateDocument,
            {"candidate": CANDIDATE, "run_id": RUN, "author": "agent:ada", "files": [], "gates": []},
        ),
        (schemas.KernelForm, {"kernel_id": KERNEL, "op": "rmsnorm", "status": "active"}),
        (schemas.Lookup, {"match": "exact", "kernel_id": KERNEL}),
        (schemas.Rows, {"rows": [], "notes": ["of all that came to an end: 1 improved"]}),
        (
            schemas.EventDocument,
            {
                "seq": 5,
                "type": "KernelPromoted",
                "actor": "system:gate",
                "event_hash": HASH,
                "payload": {"kernel_id": KERNEL},
                "withheld": False,
            },
        ),
        (schemas.CheckpointForm, {"size": 10, "root": HASH, "note": "forge/01a214ba\n10\n...", "key": None}),
        (schemas.Inclusion, {"seq": 5, "size": 10, "root": HASH, "event_hash": HASH, "proof": [HASH]}),
        (schemas.Consistency, {"old_size": 3, "size": 10, "old_root": HASH, "root": HASH, "proof": [HASH]}),
        (
            schemas.HandedIn,
            {
                "run_id": RUN,
                "task_id": TASK,
                "candidate": CANDIDATE,
                "verdict": "accepted",
                "state": "candidate_ready",
            },
        ),
        (schemas.WorkAnswer, {"run_id": RUN, "until": "promote", "seq": 25}),
        (schemas.WithdrawnForm, {"run_id": RUN, "withdrawn": True}),
        (
            schemas.ProblemForm,
            {
                "type": "urn:forge:error:run_not_found",
                "title": "Not found",
                "status": 404,
                "detail": "no run starts with 'x'",
                "code": "RUN_NOT_FOUND",
                "hint": "forge run list",
            },
        ),
    )
}
"""Form of an answer -> an example. An answer has more fields than its form names."""


def exemplify(document: Document) -> None:
    """Put an example to each parameter and each form of an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method in methods.values():
            for parameter in method.get("parameters", ()):
                name = parameter["name"]
                parameter["example"] = OTHERWISE.get((path, name), PARAMETERS[name])
    for name, example in ANSWERS.items():
        document["components"]["schemas"][name]["examples"] = [example]
