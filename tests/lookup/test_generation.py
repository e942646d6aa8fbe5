"""A publisher may write what he likes under a right digest: a reader refuses what makes no sense."""

import json

import orjson
import pytest

from forge.errors import BlobCorrupt, ForgeError
from forge.lookup import Policy, Registry
from tests.lookup.asking import ASK, publish_kernels, publish_snapshot, shown_kernel

BASE = shown_kernel()
POINT = BASE["points"][0]
HUGE = 2**63
LEDGER = {"ledger_id": "ours", "seq": 1, "event_hash": "0" * 64}


def asked(directory):
    return Registry.open(directory).lookup(**ASK, policy=Policy(shape="nearest", gpu="family", deprecated=True))


def test_the_kernel_that_the_lies_are_made_of_answers(tmp_path):
    publish_kernels(tmp_path, [BASE])
    assert asked(tmp_path).match == "exact"


LIES = [
    {"kernel_id": "../../etc"},
    {"kernel_id": "a/b"},
    {"kernel_id": "a\\b"},
    {"kernel_id": ".."},
    {"kernel_id": ""},
    {"kernel_id": "a\x00b"},
    {"kernel_id": "Upper"},
    {"kernel_id": "x" * 256},
    {"kernel_id": 3},
    {"kernel_id": None},
    {"sha256": "../kernel.py"},
    {"sha256": "A" * 64},
    {"sha256": None},
    {"artifact_sha256": "short"},
    {"abi_key": 1},
    {"entry_point": "os.system"},
    {"entry_point": "__class__"},
    {"entry_point": ""},
    {"entry_point": ["rmsnorm"]},
    {"status": 1},
    {"status_reason": ["x"]},
    {"superseded_by": {}},
    {"verified_seq": "1"},
    {"promoted_seq": True},
    {"verified_seq": 10**30},
    {"promoted_seq": -1},
    {"measured_at": None},
    {"measured_at": "\ud800"},
    {"status_reason": "\ud800"},
    {"points": [{**POINT, "median_ns": 10**400}]},
    {"points": [{**POINT, "speedup": 10**400}]},
    {"points": [{**POINT, "high": 2**63}]},
    {"points": [{**POINT, "baseline": "\ud800"}]},
    {"points": [{**POINT, "shape": {"\ud800": 1}}]},
    {"verified": [{}]},
    {"verified": [{"batch": []}]},
    {"verified": [{"batch": [1, 2], "hidden_size": [1]}]},
    {"verified": [{"batch": [True], "hidden_size": [1]}]},
    {"verified": [{"batch": [-1], "hidden_size": [1]}]},
    {"verified": [{"batch": [HUGE], "hidden_size": [1]}]},
    {"verified": [{"batch": [1.0], "hidden_size": [1]}]},
    {"verified": "everything"},
    {"verified": None},
    {"points": None},
    {"points": [{**POINT, "median_ns": 0}]},
    {"points": [{**POINT, "median_ns": -1.0}]},
    {"points": [{**POINT, "median_ns": True}]},
    {"points": [{**POINT, "median_ns": "1"}]},
    {"points": [{**POINT, "speedup": float("nan")}]},
    {"points": [{**POINT, "high": float("inf")}]},
    {"points": [{**POINT, "shape": {}}]},
    {"points": [{**POINT, "shape": [1, 2]}]},
    {"points": [{**POINT, "shape": {"batch": -1, "hidden_size": 4096}}]},
    {"points": [{**POINT, "shape": {"batch": True, "hidden_size": 4096}}]},
    {"points": [{**POINT, "baseline": None}]},
    {"points": [{**POINT, "samples_sha256": ""}]},
    {"points": [{**POINT, "method": None}]},
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_a_kernel_that_can_be_none_is_refused_when_its_slot_is_asked(tmp_path, lie):
    publish_kernels(tmp_path, [{**BASE, **lie, "kernel_id": lie.get("kernel_id", "kernel_v1")}])
    with pytest.raises(BlobCorrupt, match="can't be read"):
        asked(tmp_path)


def test_a_point_speaks_of_its_own_measurement_only(tmp_path):
    publish_kernels(tmp_path, [{**BASE, "points": [{**POINT, "benchmark_seq": 10**30, "env_sha256": ["x"]}]}])
    found = asked(tmp_path).evidence
    assert (found.benchmark_seq, found.env_sha256) == (BASE["benchmark_seq"], BASE["env_sha256"])


def head_and_rest(directory):
    """The parts of what was published: what its first line says, and the kernels."""
    (snapshot,) = directory.glob("lookup-*.json")
    first, _, rest = snapshot.read_bytes().partition(b"\n")
    return orjson.loads(first + b"]}"), rest


def put_together(head, rest):
    text = orjson.dumps({key: value for key, value in head.items() if key != "kernels"})
    return text.removesuffix(b"}") + b',"kernels":[\n' + rest


@pytest.fixture
def parts(tmp_path):
    publish_kernels(tmp_path / "true", [BASE])
    return head_and_rest(tmp_path / "true")


PLACES = [[1, 10], [1, 10**9], [1, -5], [0, 5], [True, 5], [1, None], [1], [], {}, "11", [2, 0], [1.0, 5]]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_an_index_that_points_elsewhere_is_refused_before_anything_is_asked(tmp_path, parts, place):
    head, rest = parts
    head["slots"]["rmsnorm"]["h200"]["bf16"] = place
    publish_snapshot(tmp_path, put_together(head, rest))
    with pytest.raises(BlobCorrupt, match="can't be read"):
        Registry.open(tmp_path)


def test_a_wrong_count_and_a_kernel_in_anothers_slot_are_refused(tmp_path, parts):
    head, rest = parts
    count, length = head["slots"]["rmsnorm"]["h200"]["bf16"]
    more = {**head, "slots": {"rmsnorm": {"h200": {"bf16": [count + 1, length]}}}}
    publish_snapshot(tmp_path / "count", put_together(more, rest))
    with pytest.raises(BlobCorrupt, match="has 1 kernels, expected 2"):
        asked(tmp_path / "count")
    moved = {**head, "slots": {"softmax": {"h200": {"bf16": [count, length]}}}}
    publish_snapshot(tmp_path / "moved", put_together(moved, rest))
    with pytest.raises(BlobCorrupt, match="isn't its own"):
        Registry.open(tmp_path / "moved").lookup(**{**ASK, "op": "softmax"})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\n",
        b"[" * 100_000 + b"\n",
        b'{"schema_version":3,"gpus":[],"slots":3,"kernels":[\n\n]}',
        b'{"schema_version":3,"gpus":{},"slots":{"rmsnorm":[]},"kernels":[\n\n]}',
        b'{"schema_version":"3","gpus":{},"slots":{},"kernels":[\n\n]}',
        b'{"schema_version":true,"gpus":{},"slots":{},"kernels":[\n\n]}',
        b'{"schema_version":3,"gpus":{},"slots":{},"kernels":[\n{}\n]}',
        b"\xff\xfe\n",
        b'{"schema_version":3,"gpus":{"h200":["x"]},"slots":{},"kernels":[\n\n]}',
        b'{"schema_version":3,"gpus":{"h200":"\\ud800"},"slots":{},"kernels":[\n\n]}',
        b'{"schema_version":3,"gpus":{},"slots":{"\\ud800":{"h200":{"bf16":[1,2]}}},"kernels":[\n{}\n]}',
    ],
    ids=range(13),
)
def test_bytes_that_are_no_snapshot_are_refused(tmp_path, content):
    publish_snapshot(tmp_path, content)
    with pytest.raises(ForgeError, match="can't be read"):
        Registry.open(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"sha256": "../../../etc/passwd"},
        {"sha256": "../" * 20, "snapshot": "lookup-../../../../.json"},
        {"snapshot": "../elsewhere.json"},
        {"snapshot": 3},
        {"ledger": None},
        {"ledger": {}},
        {"ledger": {**LEDGER, "seq": 10**30}},
        {"ledger": {**LEDGER, "seq": "xxxxxxxxxx"}},
        {"ledger": {**LEDGER, "seq": True}},
        {"ledger": {**LEDGER, "ledger_id": [1]}},
        {"ledger": {**LEDGER, "event_hash": "\ud800"}},
        {"schema_version": None},
    ],
    ids=str,
)
def test_a_pointer_that_leaves_its_folder_or_names_nothing_is_refused(tmp_path, changed):
    publish_kernels(tmp_path, [BASE])
    pointer = tmp_path / "current.json"
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), **changed}))
    with pytest.raises(BlobCorrupt, match="can't be read"):
        Registry.open(tmp_path)


def test_one_bad_slot_leaves_the_others_answering(tmp_path):
    publish_kernels(tmp_path, [BASE, {**BASE, "op": "softmax", "kernel_id": "../up"}])
    registry = Registry.open(tmp_path)
    with pytest.raises(BlobCorrupt):
        registry.lookup(**{**ASK, "op": "softmax"})
    assert registry.lookup(**ASK).match == "exact"


def test_a_snapshot_is_one_json_document_for_any_other_reader(tmp_path):
    publish_kernels(tmp_path, [BASE, {**BASE, "gpu": "h100", "kernel_id": "kernel_v2"}])
    (snapshot,) = tmp_path.glob("lookup-*.json")
    document = json.loads(snapshot.read_bytes())
    assert [kernel["gpu"] for kernel in document["kernels"]] == ["h100", "h200"]
    assert document["slots"]["rmsnorm"].keys() == {"h100", "h200"}
