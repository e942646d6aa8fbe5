"""The measurement of a model from the command line: recorded as an event, gain or not."""

from pathlib import Path

from tests.cli.asking import ask, copied
from tests.cli.test_decisions import two_kernels

__all__ = ["two_kernels"]

SOURCE = (Path(__file__).parents[1] / "models" / "small_transformer.py").read_bytes()


def test_a_measurement_is_an_event_of_its_own_level_and_no_gain_is_recorded_too(two_kernels, tmp_path):
    home = tmp_path / "home"
    copied(two_kernels, home)
    (tmp_path / "small.py").write_bytes(SOURCE)
    said = ask(
        *("model", "measure", tmp_path / "small.py", "--workload", "decode:b=4,context=8", "--window-ms", "1"),
        *("--pairs", "2", "--rounds", "2", "--home", home, "--json", "--mode", "eager", "--mode", "eager"),
    )
    assert said.status == 0, said.err
    (document,) = said.document["measurements"]
    assert (document["evidence_level"], document["gpu"], document["model"]) == ("end_to_end", "cpu", "small")
    assert {one["reason"] for one in document["uses"]} == {"no_kernel"}
    assert document["comparison"]["predicted"] == 1.0
    assert document["comparison"]["equal_tokens"] == 64
    log = ask("ledger", "log", "--type", "ModelMeasured", "--home", home, "--json")
    assert f'"seq":{document["seq"]}' in log.out.replace(" ", "")
    assert ask("ledger", "verify", "--full", "--home", home).status == 0


def test_a_file_that_is_no_model_is_refused_before_anything_runs(two_kernels, tmp_path):
    for name, content in (("a.py", b"def ("), ("b.py", b"\0"), ("c" * 80 + ".py", b"pass")):
        (tmp_path / name).write_bytes(content)
        said = ask("model", "measure", tmp_path / name, "--workload", "decode:b=4,context=8", "--home", two_kernels)
        assert said.status == 2
    missing = ask(
        "model", "measure", tmp_path / "none.py", "--workload", "decode:b=4,context=8", "--home", two_kernels
    )
    assert missing.status == 2
