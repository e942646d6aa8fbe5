"""Evidence whose parts contradict each other is found, whatever its digests say: shipped evidence, altered here."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from forge.app.ledger.recorded_policies import policy_problems
from forge.domain.digest import canonical, sha256
from forge.ledger.audit.measured_sides import side_differences
from forge.ledger.audit.reports import report_differences
from forge.ledger.audit.rule import claim_verdicts, unmet_rules
from forge.ledger.audit.verifications import GateLists, plan_differences
from forge.ledger.audit.whole_measurements import part_differences, repeated_pairs

ROOT = Path(__file__).parents[2]
VERIFIED, BENCHMARK, REPLICATION = 3952, 3995, 4004
CONTENDER = "contender:torch.max_autotune@2.11.0"
Json = dict[str, Any]


@cache
def recorded(seq: int) -> Json:
    with closing(sqlite3.connect(f"file:{ROOT / 'kernel_registry.db'}?mode=ro", uri=True)) as connection:
        (payload,) = connection.execute("SELECT payload FROM event WHERE seq = ?", (seq,)).fetchone()
    document: Json = json.loads(payload)
    return document


def blob(digest: str) -> Json:
    document: Json = json.loads((ROOT / "forge_runs" / "cas" / digest[:2] / digest).read_bytes())
    return document


def event(seq: int) -> Json:
    return deepcopy(recorded(seq))


def task() -> Json:
    with closing(sqlite3.connect(f"file:{ROOT / 'kernel_registry.db'}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT payload FROM event WHERE type = 'TaskCreated'").fetchall()
    created = map(json.loads, (payload for (payload,) in rows))
    found: Json = next(one["task"] for one in created if one["task_id"] == recorded(BENCHMARK)["task_id"])
    return found


def samples(seq: int = BENCHMARK) -> Json:
    return blob(recorded(seq)["workloads"][0]["samples_sha256"])


def policy() -> Json:
    return blob(recorded(BENCHMARK)["policy_sha256"])


def first_attempt(change: Callable[[Json], object]) -> Json:
    altered = samples()
    change(altered["attempts"][0])
    return altered


def few_rounds(attempt: Json) -> None:
    attempt["pairs"] = [pair[:2] for pair in attempt["pairs"]]


ALTERED: dict[str, tuple[Callable[[Json], object], str]] = {
    "twice as many calls of the candidate": (lambda one: one["calls"].update(candidate=1024), "calls.candidate"),
    "more resident calls": (lambda one: one["resident"]["calls"].update(eager=7), "resident.calls.eager"),
    "the best rounds alone": (few_rounds, "attempts[0].pairs"),
    "more blocks left out than allowed": (lambda one: one.update(dropped=5), "dropped"),
    "fewer blocks than the policy asks for": (lambda one: one.update(blocks=10), "blocks"),
    "a pair whose clocks weren't compared": (lambda one: one["host_ratio"].pop(), "host_ratio"),
    "no resident times": (lambda one: one.update(resident=None), "attempts[0].resident"),
    "one pair five times": (lambda one: one.update(pairs=[one["pairs"][0]] * 5), "samples.pairs"),
}


@pytest.mark.parametrize("seq", [348, 755, BENCHMARK, REPLICATION])
def test_recorded_samples_contradict_nothing(seq: int) -> None:
    one = recorded(seq)
    assert list(part_differences(samples(seq), blob(one["policy_sha256"]))) == []


@pytest.mark.parametrize("case", ALTERED)
def test_samples_that_contradict_themselves_are_found(case: str) -> None:
    change, where = ALTERED[case]
    found = [path for path, _, _ in part_differences(first_attempt(change), policy())]
    assert any(path.endswith(where) for path in found), found


def test_rounds_of_blocks_that_were_left_out_may_be_missing() -> None:
    def lose_a_block(attempt: Json) -> None:
        attempt["dropped"] = 1
        attempt["pairs"][0] = attempt["pairs"][0][:18]

    assert list(part_differences(first_attempt(lose_a_block), policy())) == []


def test_an_earlier_attempt_was_made_under_its_own_policy() -> None:
    other = policy() | {"replay_rounds": 48}
    altered = samples()
    altered["attempts"] = [samples(REPLICATION)["attempts"][0], altered["attempts"][0]]
    assert all("attempts[0]" not in path for path, _, _ in part_differences(altered, other))


def test_a_confirmation_and_a_replication_have_times_of_their_own() -> None:
    again = samples()
    again["confirmation"] = deepcopy(again["attempts"])
    assert [path for path, _, _ in part_differences(again, policy())] == ["samples.pairs"] * 2
    assert list(repeated_pairs((*samples()["attempts"], *samples(REPLICATION)["attempts"]), "both")) == []
    assert list(repeated_pairs(samples()["attempts"] * 2, "both")) != []


def sides(change: Callable[[Json], object], *, chosen_anew: bool = True, **changed: object) -> list[str]:
    altered = event(BENCHMARK)
    change(altered)
    found = side_differences(altered, task(), altered["workloads"][0], policy() | changed, chosen_anew=chosen_anew)
    return [path for path, _, _ in found]


def without(baseline: str) -> Callable[[Json], None]:
    def change(altered: Json) -> None:
        (timed,) = altered["workloads"]
        timed["speedups"] = [one for one in timed["speedups"] if one["baseline"] != baseline]

    return change


def slower(altered: Json) -> None:
    without(CONTENDER)(altered)
    altered["contenders"][0]["standing"] = {"outcome": "slower", "least_ns": 100.0}


def beside(least_ns: float) -> Callable[[Json], None]:
    def change(altered: Json) -> None:
        standing = {"outcome": "slower", "least_ns": least_ns}
        altered["contenders"].append({"contender": "liger.softmax", "version": "1", "standing": standing})

    return change


def absent(altered: Json) -> None:
    standing = {"outcome": "absent", "cause": "not_installed", "detail": ""}
    altered["contenders"].append({"contender": "liger.softmax", "version": None, "standing": standing})


def test_a_side_that_was_left_out_is_found() -> None:
    assert sides(lambda _: None) == []
    assert sides(without("compile")) == ["workloads[0].speedups"]
    assert sides(without(CONTENDER)) == ["contenders"]
    assert sides(slower) == ["contenders"]
    assert sides(slower, chosen_anew=False) == []
    assert sides(beside(5_000.0)) == ["contenders"], "the one in full took 5,139 ns"
    assert sides(beside(5_200.0)) == []
    assert sides(absent) == []
    assert sides(absent, required_contenders=["liger"]) == ["contenders.liger.softmax"]


def judged(*events: Json) -> list[str]:
    lists = GateLists()
    return [path for seq, one in enumerate(events) for path, _, _ in lists.differences(seq, one, task())]


def test_gates_that_a_judge_did_not_ask_are_found() -> None:
    honest = event(VERIFIED)
    no_layouts, one_gate, wrong = event(VERIFIED), event(VERIFIED), event(VERIFIED)
    no_layouts["gates"] = [gate for gate in no_layouts["gates"] if gate["name"] != "layouts"]
    one_gate["gates"] = one_gate["gates"][:1]
    wrong["workloads"][0]["bound_used"] = 57.0
    assert judged(honest, honest) == []
    assert judged(honest, no_layouts) == ["gates"]
    assert judged(honest, no_layouts | {"gates_sha256": "ab" * 32}) == [], "another judge may ask others"
    assert judged(one_gate) == ["gates"]
    assert judged(wrong) == ["workloads[0].bound_used"]


def test_only_a_plan_that_was_verified_may_be_timed() -> None:
    timed, listing = recorded(BENCHMARK)["workloads"][0], blob(recorded(VERIFIED)["artifact_sha256"])
    assert list(plan_differences(timed, listing)) == []
    assert list(plan_differences({"replay": None}, None)) == []
    assert [path for path, _, _ in plan_differences(timed, None)] == ["replay.plan_sha256"]
    other = timed | {"replay": timed["replay"] | {"plan_sha256": "ab" * 32}}
    assert [path for path, _, _ in plan_differences(other, listing)] == ["replay.plan_sha256"]


def test_the_report_of_an_accepted_candidate_has_its_files_and_no_counterexample() -> None:
    honest = event(VERIFIED)
    report = blob(honest["report_sha256"])

    def found(one: Json, said: Json) -> list[str]:
        runs = ROOT / "forge_runs"
        return [path.partition("[")[0] for path, _, _ in report_differences("CandidateVerified", one, said, runs)]

    assert found(honest, report) == []
    assert found(honest, report | {"counterexample": {"output": "y"}}) == ["report.counterexample"]
    assert found(honest | {"artifact_sha256": None}, report) == ["artifact_sha256"]


@pytest.mark.parametrize(
    ("claimed", "verdicts"),
    [
        (0.9, ("understated", "confirmed")),
        (1.5, ("confirmed",)),
        (2.2, ("confirmed",)),
        (2.3, ("overstated",)),
    ],
)
def test_a_claims_verdict_follows_from_the_interval(claimed: float, verdicts: tuple[str, ...]) -> None:
    assert claim_verdicts(claimed, {"low": 2.0, "high": 2.2}) == verdicts
    assert claim_verdicts(claimed, {"low": 0.8, "high": 0.9}) == ("refuted",)


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"minimum_speedup": 0.01}, "minimum_speedup"), ({"nonsense": True}, "nonsense"), ({}, None)],
)
def test_a_policy_that_no_workspace_could_have_is_found(changed: Json, said: str | None, tmp_path: Path) -> None:
    content = canonical(policy() | changed)
    digest = sha256(content)
    stored = tmp_path / "cas" / digest[:2] / digest
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    ledger = tmp_path / "ledger.db"
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("CREATE TABLE event (seq INTEGER, payload TEXT)")
        payload = canonical({"policy_sha256": digest}).decode()
        connection.executemany("INSERT INTO event VALUES (?, ?)", [(1, "{}"), (2, payload), (3, payload)])
        connection.commit()
    found = list(policy_problems(ledger, tmp_path))
    assert [(one.seq, one.what) for one in found] == ([(2, "policy_sha256")] if said else [])
    assert said is None or said in found[0].found


def test_a_promotion_stands_on_its_tasks_own_policy() -> None:
    evidence = event(BENCHMARK), event(VERIFIED)
    assert list(unmet_rules(task(), policy(), *evidence)) == []
    for place in (0, 1):
        weaker = [one | {"policy_sha256": "ab" * 32} if at == place else one for at, one in enumerate(evidence)]
        assert [path for path, _, _ in unmet_rules(task(), policy(), *weaker)] == ["promotion rule 'same policy'"]
