"""A lookup's answer as tables."""

from forge.cli.output import emit_table, number_text, say, shape_text


def show_lookup(answer: dict[str, object]) -> None:
    """Print the kernel with its measurement, and the other kernels with the reasons against them."""
    evidence, rejected = answer["evidence"], answer["rejected"]
    assert isinstance(rejected, list)
    emit_table("Lookup", ("match", "kernel", "source"), [(answer["match"], answer["kernel_id"], answer["source"])])
    if "reason" in answer:
        say(f"note: {answer['reason']}")
    if isinstance(evidence, dict):
        interval = f"{evidence['speedup']:.3f} ({evidence['low']:.3f} to {evidence['high']:.3f})"
        shape = shape_text(evidence["shape"])
        header = (
            "measured at",
            "octaves away",
            "median us",
            "speedup, 95 % interval",
            "over",
            "timed by",
            "regime",
            "evidence",
            "benchmark event",
        )
        median_us = number_text(evidence["median_ns"] / 1000)
        told = (shape, number_text(evidence["distance"]), median_us, interval, evidence["baseline"])
        emit_table(
            "",
            header,
            [(*told, evidence["method"], evidence["regime"], evidence["state"], evidence["benchmark_seq"])],
        )
    if rejected:
        emit_table("", ("passed over", "why"), rejected)
