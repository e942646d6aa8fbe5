"""A lookup's answer as plain data."""

from forge.lookup import Registry, Result


def lookup_document(registry: Registry, found: Result, *, arch: str, ran_on_gpu: bool | None) -> dict[str, object]:
    """Return the kernel, its evidence and the reasons against others; `ran_on_gpu` is None for a processor."""
    kernel, evidence = found.kernel, found.evidence
    return {
        "match": found.match,
        "gpu_arch": arch,
        "ran_on_gpu": ran_on_gpu,
        "generation": found.generation,
        "ledger_seq": registry.health().ledger_seq,
        "kernel_id": kernel.kernel_id if kernel else None,
        "entry_point": kernel.entry_point if kernel else None,
        "source": kernel.source_path if kernel else None,
        "sha256": kernel.sha256 if kernel else None,
        "domain": kernel.domain.document() if kernel and kernel.domain else None,
        "evidence": evidence.document() if evidence else None,
        **_between(found),
        "rejected": [list(item) for item in found.rejected],
    }


def _between(found: Result) -> dict[str, object]:
    """Return why a kernel answers between two proven shapes, and the evidence at both; nothing for another answer."""
    if found.match != "between":
        return {}
    return {"reason": found.reason, "neighbours": [one.document() for one in found.neighbours]}
