"""A candidate's domain fits its task, or is refused with the reason; a task may demand a least domain."""

import json
import random
from pathlib import Path

import orjson
import pytest

from forge.domain.digest import canonical, digest_of
from forge.domain.domain_text import parse_domain
from forge.domain.kernel_domain import KernelDomain
from forge.domain.task import HeldOut, Task
from forge.errors import UsageError
from forge.events import CandidateRejected, CandidateSubmitted
from forge.operations import find_operation
from forge.pipeline.create import HELD_OUT_SHAPES, create
from forge.pipeline.domain import domain_fault
from forge.pipeline.submit import submit
from tests.candidates import EXAMPLES
from tests.pipeline.making import POLICY, made, request

SHAPE = "batch=4,hidden_size=64"


def fault(text: str, task: Task | None = None) -> str | None:
    task = task or made(op="softmax", shape=SHAPE)
    return domain_fault(parse_domain(text, ("batch", "hidden_size", "m")), task)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hidden_size <= 65536", None),
        ("hidden_size % 64 == 0, batch >= 1", None),
        ("elements <= 256", None),
        (
            "hidden_size <= 63",
            "it excludes the task's shape (batch = 4, hidden_size = 64), since it demands hidden_size <= 63",
        ),
        ("elements <= 255", "it excludes the task's shape"),
        ("hidden_size % batch == 0, batch <= 3", "it excludes the task's shape"),
        ("m <= 5", "unknown axis 'm': expected one of batch, hidden_size"),
        ("batch in 4, hidden_size in 16|32|64|128", "fewer than 5 shapes lie in it"),
        ("batch in 1|4, hidden_size in 64|128", "fewer than 5 shapes lie in it"),
    ],
)
def test_a_domain_fits_its_task_or_is_refused(text: str, said: str | None) -> None:
    found = fault(text)
    assert (found is None) == (said is None)
    assert said is None or (found is not None and said in found)


def test_a_narrow_domain_is_taken_if_the_task_asked_for_so_few() -> None:
    task = made(op="softmax", shape=SHAPE, domain="batch in 4, hidden_size in 64|128")
    assert fault("batch in 4, hidden_size in 64|128", task) is None
    assert fault("batch in 4, hidden_size in 64", task) is not None


def test_a_domain_must_hold_the_least_domain_of_its_task() -> None:
    task = made(op="softmax", shape=SHAPE, domain="hidden_size <= 4096, batch >= 1")
    assert fault("hidden_size <= 65536", task) is None
    assert "it demands hidden_size <= 4095" in str(fault("hidden_size <= 4095", task))
    assert "it demands alignment == 16" in str(fault("alignment == 16", task))
    assert "it demands batch % 2 == 0" in str(fault("batch % 2 == 0", task))


def test_a_least_domain_is_part_of_a_task_and_of_its_name() -> None:
    plain, demanding = made(op="softmax", shape=SHAPE), made(op="softmax", shape=SHAPE, domain="hidden_size<=4096")
    assert b"domain" not in canonical(plain)
    assert plain.task_id != demanding.task_id
    assert Task.model_validate(orjson.loads(canonical(demanding))) == demanding


def test_held_out_shapes_lie_in_the_least_domain() -> None:
    domain = parse_domain("hidden_size % 16 == 0, batch <= 40", ("batch", "hidden_size"))
    wanted = request(op="softmax", shape="batch=16,hidden_size=1024", domain=domain.text)
    _, outcome = create(wanted, policy=POLICY, rng=random.Random(3))
    shapes = HeldOut.model_validate(orjson.loads(outcome.blobs[0])).shapes
    assert len(shapes) == HELD_OUT_SHAPES
    assert all(map(domain.contains, shapes))


@pytest.mark.parametrize(
    "text", ["hidden_size<=63", "m<=5", "hidden_size", "hidden_size>=9, hidden_size<=8", "elements<=1", ""]
)
def test_a_least_domain_that_can_not_hold_the_task_is_bad_input(text: str) -> None:
    with pytest.raises(UsageError):
        made(op="softmax", shape=SHAPE, domain=text)


def submitted(tmp_path: Path, domain: object) -> CandidateSubmitted | CandidateRejected:
    task = made(op="fused_add_rmsnorm", language="cpp", shape=SHAPE)
    for file in (EXAMPLES / "honest_cpp").glob("*.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    metadata = json.loads((tmp_path / "metadata.json").read_text()) | {"domain": domain}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    outcome = submit(tmp_path, task=task, run_id="r", untrusted_author="a person", judged_before=lambda _: None)
    event = outcome.events[0]
    assert isinstance(event, CandidateSubmitted | CandidateRejected)
    return event


def test_a_candidate_with_another_domain_is_another_program(tmp_path: Path) -> None:
    events = [submitted(tmp_path, {"axes": {"hidden_size": {"most": most}}}) for most in (128, 256)]
    digests = {event.normalised_sha256 for event in events if isinstance(event, CandidateSubmitted)}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ({}, "metadata.json: domain: got {}, an empty domain"),
        ({"axes": {"hidden_size": {"least": 9, "most": 8}}}, "no size lies in it"),
        ({"axes": {"hidden_size": {"most": 63}}}, "metadata.json: domain: it excludes the task's shape"),
        ({"axes": {"width": {"most": 99}}}, "metadata.json: domain: unknown axis 'width'"),
        ({"axes": {"batch": {"values": [4]}, "hidden_size": {"values": [64]}}}, "fewer than 5 shapes"),
        ("hidden_size <= 5", "metadata.json: domain"),
    ],
)
def test_a_bad_domain_is_refused_at_submission(tmp_path: Path, domain: object, said: str) -> None:
    event = submitted(tmp_path, domain)
    assert isinstance(event, CandidateRejected)
    assert (event.stage, event.reason.code) == ("submit", "BAD_SUBMISSION")
    assert said in event.reason.message


def test_a_limit_on_elements_is_recorded_as_products() -> None:
    operation = find_operation("matmul")
    resolved = parse_domain("elements <= 4096", operation.axes).resolved((*operation.inputs, *operation.outputs))
    assert resolved == KernelDomain.model_validate(orjson.loads(canonical(resolved)))
    assert digest_of(resolved) == digest_of(resolved.resolved(operation.inputs))
