"""A second reader of a ledger, written from docs/ledger.md and docs/reading-the-ledger.md, with none of Forge.

`python -I -S tests/second_verifier HOME` prints what it checked and each fault; exit status 1 if there is one.
"""

import base64
import hashlib
import json
import sqlite3
import sys
from pathlib import Path

import models_again
import numbers_again
import promotions_again
import signatures
from canonical import canonical

COLUMNS = (
    *("seq", "event_id", "stream", "stream_version", "type", "schema_version", "recorded_at", "actor"),
    *("correlation_id", "causation_id", "idempotency_key", "payload", "payload_sha256", "prev_hash", "event_hash"),
)
BLOBS = {
    "TaskCreated": ("task.held_out_sha256",),
    "RunStarted": ("policy_sha256",),
    "PromptRendered": ("rendered_sha256",),
    "OperationDescribed": ("description_sha256", "reference_sha256"),
    "KernelDoubted": ("report_sha256",),
    "ModelMeasured": ("model_sha256", "samples_sha256", "policy_sha256"),
    "CandidateSubmitted": ("files.files[].sha256",),
    "CandidateRejected": ("counterexample_sha256", "report_sha256"),
    "CandidateVerified": ("report_sha256", "artifact_sha256"),
    "TrialsScreened": ("samples_sha256",),
    "ModelRequested": ("prompt_sha256",),
    "ModelResponded": ("response_sha256",),
    "ModuleRouted": ("parts[].reference_sha256",),
    "SessionOpened": ("policy_sha256",),
    "StepAnswered": ("entry_sha256",),
    "StepProposed": ("step_sha256",),
    "ShapeTimed": ("samples_sha256",),
    "BenchmarkRecorded": ("report_sha256", "workloads[].samples_sha256"),
    "BenchmarkFailed": ("report_sha256", "workloads[].samples_sha256", "stopped.samples_sha256"),
    "KernelPromoted": ("files[].sha256",),
    "RunSealed": ("manifest_sha256",),
    "LessonAccepted": ("after_sha256",),
    "ReplicationRecorded": ("report_sha256", "workloads[].samples_sha256"),
    "ProfileCaptured": ("raw_sha256",),
    "PromotionDenied": ("policy_sha256",),
}


def main(home):
    faults, counts = [], {}
    events, leaves = chain(home, faults)
    counts["events"] = len(events)
    counts["notes"] = notes(home, events, leaves, faults)
    counts["blobs"] = blobs(home, events, faults)
    counts["runs"], counts["files"] = runs(home, events, faults)
    counts["digests"] = digests(events, faults)
    counts["decisions"] = promotions_again.check(events, faults, digest_of)
    counts["benchmarks"], counts["promotions"] = numbers_again.check(home, events, faults)
    counts["models"] = models_again.check(home, events, faults)
    return {"counts": counts, "faults": faults, "head": leaves[-1].hex(), "modules": sorted(sys.modules)}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def digest_of(value):
    return sha256(canonical(value))


def chain(home, faults):
    """Every row follows from the one before; the events, and their hashes as leaves."""
    database = sqlite3.connect(f"file:{home}/kernel_registry.db?mode=ro&immutable=1", uri=True)
    ledger_id, origin = database.execute("SELECT ledger_id, origin FROM ledger_meta").fetchone()
    head = hashlib.sha256(b"forge.ledger.v1\n" + ledger_id.encode()).digest()
    events, leaves, streams, time = [], [], {}, ""
    for values in database.execute(f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY seq"):
        row = dict(zip(COLUMNS, values, strict=True))
        payload, found = row.pop("payload"), row.pop("event_hash")
        streams[row["stream"]] = streams.get(row["stream"], 0) + 1
        sound = (
            row["seq"] == len(events) + 1
            and row["stream_version"] == streams[row["stream"]]
            and hashlib.sha256(payload.encode()).digest() == row["payload_sha256"]
            and row["prev_hash"] == head
            and row["recorded_at"] >= time
        )
        time = row["recorded_at"]
        for name in ("payload_sha256", "prev_hash"):
            row[name] = row[name].hex()
        head = hashlib.sha256(b"\x00" + canonical(row)).digest()
        if not sound or head != found:
            faults.append([row["seq"], "chain", "", ""])
        document = json.loads(payload)
        if canonical(document) != payload.encode():
            faults.append([row["seq"], "canonical payload", canonical(document).decode()[:200], payload[:200]])
        events.append((row["seq"], row["type"], document))
        leaves.append(head)
    for level, place, node in database.execute("SELECT level, place, hash FROM tree_node"):
        if root(leaves[place << level : (place + 1) << level]) != node:
            faults.append([None, f"tree_node {level} {place}", "", ""])
    opened = (1, "LedgerOpened", ledger_id, origin)
    if (*events[0][:2], events[0][2]["ledger_id"], events[0][2]["origin"]) != opened:
        faults.append([1, "LedgerOpened", str(opened), ""])
    return events, leaves


def root(leaves):
    """RFC 6962's, of leaves that are hashed already; level by level, an odd last one moves up."""
    if not leaves:
        return hashlib.sha256().digest()
    while len(leaves) > 1:
        pairs = [hashlib.sha256(b"\x01" + a + b).digest() for a, b in zip(leaves[::2], leaves[1::2], strict=False)]
        leaves = pairs + leaves[len(leaves) & ~1 :]
    return leaves[0]


def notes(home, events, leaves, faults):
    """Each recorded checkpoint is signed by the key in force, over the root at its size; so is the published one."""
    opened = events[0][2]
    name = "".join("-" if one.isspace() or one == "+" else one for one in f"{opened['origin']}/{opened['ledger_id']}")
    key, earlier, count = None, set(), 0
    for seq, kind, event in events:
        if kind in ("LedgerOpened", "LedgerKeyAdopted", "LedgerKeyRotated") and event.get("public_key"):
            key = base64.b64decode(event["public_key"])
            if key in earlier:
                faults.append([seq, "public_key", "a key that wasn't in force before", event["public_key"]])
            earlier.add(key)
        elif kind == "CheckpointPublished":
            count += 1
            size = event["size"]
            wanted = f"{name}\n{size}\n{base64.b64encode(root(leaves[:size])).decode()}\n"
            if size >= seq or not signatures.signed(event["note"], wanted, name, key):
                faults.append([seq, "checkpoint", wanted, event["note"]])
    published = home / "kernel_registry" / "checkpoint"
    if published.exists():
        size = int(published.read_text().split("\n")[1])
        wanted = f"{name}\n{size}\n{base64.b64encode(root(leaves[:size])).decode()}\n"
        if not signatures.signed(published.read_text(), wanted, name, key):
            faults.append([None, "published checkpoint", wanted, published.read_text()])
    return count


def blobs(home, events, faults):
    """The bytes that events name are there and are what the name says."""
    seen = {}
    for seq, kind, event in events:
        for field in BLOBS.get(kind, ()):
            for digest in _values([event], field.split(".")):
                if digest is None or seen.get(digest):
                    continue
                path = home / "forge_runs" / "cas" / digest[:2] / digest
                seen[digest] = path.exists() and sha256(path.read_bytes()) == digest
                if not seen[digest]:
                    faults.append([seq, f"blob {field}", digest, ""])
    return len(seen)


def _values(nodes, path):
    for part in path:
        name, each, _ = part.partition("[]")
        nodes = [node.get(name) if node else None for node in nodes]
        nodes = [item for node in nodes for item in node] if each else nodes
    return nodes


def runs(home, events, faults):
    """Each sealed run's folder holds what its manifest lists, and nothing else."""
    count = files = 0
    for seq, kind, event in events:
        if kind != "RunSealed":
            continue
        folder = home / "forge_runs" / event["run_id"]
        manifest = (folder / "manifest.json").read_bytes()
        listed = {one["path"]: one["sha256"] for one in json.loads(manifest)["files"]}
        present = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        found = {name: sha256(path.read_bytes()) for name, path in present.items() if name != "manifest.json"}
        count, files = count + 1, files + len(found)
        if sha256(manifest) != event["manifest_sha256"] or listed != found:
            faults.append([seq, f"run {event['run_id']}", "", ""])
    return count, files


def digests(events, faults):
    """Candidates, tasks and environments are named by their content."""
    count = 0
    for seq, kind, event in events:
        said = {}
        if kind == "CandidateSubmitted":
            said["candidate"] = sha256(canonical(event["files"])), event["candidate"]
        elif kind == "TaskCreated":
            task = event["task"]
            family = f"{task['language']}_{task['op']}_{task['target']['gpu']}_{task['dtype']}_"
            said["task_id"] = sha256(canonical(task))[:8], event["task_id"][-8:]
            said["family"] = family, event["task_id"][: len(family)]
        elif kind == "EnvironmentCaptured":
            environment = event["environment"]
            names = ("compiler", "cpu_cores", "cpu_model", "cuda", "driver", "machine", "torch", "triton")
            key = {name: environment[name] for name in names}
            key["gpu"] = environment["gpu"] and environment["gpu"]["slug"]
            said["env_sha256"] = sha256(canonical(environment)), event["env_sha256"]
            said["perf_key"] = sha256(canonical(key)), event["perf_key"]
        count += bool(said)
        faults.extend([seq, field, *pair] for field, pair in said.items() if pair[0] != pair[1])
    return count


if __name__ == "__main__":
    report = main(Path(sys.argv[1]))
    print(json.dumps(report))
    sys.exit(bool(report["faults"]))
