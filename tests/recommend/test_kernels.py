"""What the registry contributes: verified kernels for exactly this GPU and type, read anew for each request."""

import pytest

from forge.operations import OPERATIONS
from forge.recommend import MODELS, Constraints, Recommender, Request
from forge.recommend.kernels import slots_of
from tests.lookup.asking import publish
from tests.projections.histories import History, opened, promoted, revoke
from tests.projections.values import EDGES, SHAPE


def asked(gpu: str = "h200", quantization: str = "bf16", model: str = "llama3.1-8b") -> Request:
    limits = Constraints(gpus=(gpu,), max_gpus=1, quantizations=(quantization,))
    return Request(model=model, constraints=limits)


@pytest.fixture
def history() -> History:
    return opened()


def test_a_kernel_for_the_plans_gpu_and_type_is_attached_with_its_evidence(history, tmp_path) -> None:
    kernel_id = promoted(history)
    publish(history, tmp_path)
    plan = Recommender(registry_path=tmp_path).recommend(asked()).recommended
    (found,) = plan.kernel_optimizations
    assert (found.kernel_id, found.op, found.gpu, found.dtype) == (kernel_id, "rmsnorm", "h200", "bf16")
    assert (found.available, found.applied) == (True, False)
    assert (found.evidence_level, found.benchmark_scope) == ("op_level", "microbenchmark")
    assert found.speedup_low < found.speedup < found.speedup_high
    assert (found.shape, found.match) == (SHAPE, "exact")
    assert history.events[found.promoted_seq - 1].event.kernel_id == kernel_id


@pytest.mark.parametrize("changes", [{"gpu": "h100"}, {"gpu": "gh200"}, {"gpu": "l40s"}, {"quantization": "fp16"}])
def test_a_kernel_for_another_gpu_or_type_is_not(history, tmp_path, changes) -> None:
    promoted(history)
    publish(history, tmp_path)
    plan = Recommender(registry_path=tmp_path).recommend(asked(**changes)).recommended
    assert (plan.kernel_optimizations, plan.notes) == ((), ())


def test_a_kernel_for_another_width_than_the_models_is_not(history, tmp_path) -> None:
    promoted(history, shapes=(SHAPE,))
    publish(history, tmp_path)
    plan = Recommender(registry_path=tmp_path).recommend(asked(model="qwen2.5-7b")).recommended
    assert plan.kernel_optimizations == ()


def test_a_model_whose_shape_lies_inside_the_verified_ones_gets_it_with_the_distance(history, tmp_path) -> None:
    kernel_id = promoted(history, shapes=EDGES)
    publish(history, tmp_path)
    (found,) = Recommender(registry_path=tmp_path).recommend(asked(model="phi-4")).recommended.kernel_optimizations
    assert (found.kernel_id, found.match) == (kernel_id, "nearest")
    assert (found.shape, found.model_shape) == (SHAPE, {"batch": 16, "hidden_size": 5120})
    assert 0.3 < found.octaves < 0.4


def test_a_promotion_shows_and_a_revoked_kernel_goes_without_a_restart(history, tmp_path) -> None:
    recommender = Recommender(registry_path=tmp_path)
    before = recommender.recommend(asked())
    assert "no published registry" in before.recommended.notes[0]
    publish(history, tmp_path)
    assert recommender.recommend(asked()).recommended.kernel_optimizations == ()
    kernel_id = promoted(history)
    publish(history, tmp_path)
    after = recommender.recommend(asked())
    assert [one.kernel_id for one in after.recommended.kernel_optimizations] == [kernel_id]
    revoke(history, kernel_id)
    publish(history, tmp_path)
    assert recommender.recommend(asked()).recommended.kernel_optimizations == ()
    figures = {"rank", "scores", "ttft_ms", "tpot_ms", "latency_ms", "throughput_tok_s", "memory_gb", "explanation"}
    assert before.recommended.model_dump(include=figures) == after.recommended.model_dump(include=figures)


def test_a_damaged_publication_leaves_the_last_good_one_in_use_and_is_told(history, tmp_path) -> None:
    promoted(history)
    publish(history, tmp_path)
    recommender = Recommender(registry_path=tmp_path)
    recommender.recommend(asked())
    (tmp_path / "kernel_registry" / "current.json").write_bytes(b"{")
    plan = recommender.recommend(asked()).recommended
    assert len(plan.kernel_optimizations) == 1
    assert "last good one" in plan.notes[0]


def test_without_a_registry_that_is_said_and_nothing_else_changes() -> None:
    plan = Recommender().recommend(asked()).recommended
    assert plan.notes == ("kernel_registry: no kernel registry is here to look into",)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda one: one.name)
def test_a_slot_is_an_operation_of_the_catalogue_with_all_of_its_axes(model) -> None:
    workload = "embedding" if model.purpose == "embed" else "chat"
    request = Request(model=model.name, workload=workload, constraints=Constraints(gpus=("mi355x",)))
    slots = slots_of(model, Recommender(optimization_passes=()).recommend(request).recommended)
    assert slots
    for op, shape in slots:
        assert set(shape) == set(OPERATIONS[op].axes), op
        assert all(size > 0 for size in shape.values())
