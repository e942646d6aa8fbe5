"""Briefs as they were read and found good, one for a few operations, languages and processors.

To render them anew after a change that was meant: `python -m tests.pipeline.golden`, then read the difference.
"""

from pathlib import Path

from forge.domain.policy import Policy
from forge.pipeline.plan import accepted, plan
from forge.pipeline.prompt import render
from tests.pipeline.making import made
from tests.pipeline.test_plan import BEST, FAILED

FOLDER = Path(__file__).parent / "golden"
POLICY = Policy()
BRIEFS: dict[str, dict[str, str]] = {
    "rmsnorm.cuda.h200.bf16": {"shape": "batch=2048,hidden_size=4096"},
    "fused_add_rmsnorm.cpp.cpu.fp32": {"shape": "batch=16,hidden_size=4096"},
    "attention_prefill.triton.h100.bf16": {"shape": "tokens=2048,kv_len=2048,kv_heads=8,group=4,head_dim=128"},
    "kv_cache_append.triton.l40s.fp16": {"shape": "tokens=64,slots=4096,kv_heads=8,head_dim=128"},
    "sampling.cuda.a100.fp32": {"shape": "batch=32,vocab_size=128256"},
    "matmul.torch.cpu.fp32": {"shape": "m=1,n=4096,k=4096"},
}
"""`<op>.<language>.<processor>.<type>` and what else is asked; the first has a history."""


def brief(name: str) -> str:
    """One of them, with a history where its operation is rmsnorm."""
    op, language, gpu, dtype = name.split(".")
    task = made(policy=POLICY, op=op, language=language, gpu=gpu, dtype=dtype, **BRIEFS[name])
    known = op == "rmsnorm"
    tried = FAILED.model_copy(update={"hypothesis": "Two rows share a warp."})
    skills, outcome = plan(
        task, run_id="r", earlier_experiments=0, earlier=(tried,) if known else (), best=BEST if known else None
    )
    rendered = render(task, run_id="r", skills=skills, policy=POLICY, triage=accepted(outcome).triage)
    return rendered.files["agent_prompt.md"].decode()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for kept in FOLDER.glob("*.md"):
        kept.unlink()
    for name in BRIEFS:
        (FOLDER / f"{name}.md").write_text(brief(name))
