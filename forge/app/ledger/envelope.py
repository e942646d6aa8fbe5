"""Shows an event with its envelope: its place in the chain, its time and its writer."""

from forge.events import Event, Recorded

Data = dict[str, object]


def in_envelope(recorded: Recorded[Event], payload: object) -> Data:
    """Return what is shown of an event: its place, time and writer beside its payload."""
    return {
        "seq": recorded.seq,
        "type": recorded.event.TYPE,
        "stream": recorded.stream,
        "stream_version": recorded.stream_version,
        "recorded_at": recorded.recorded_at,
        "actor": recorded.actor,
        "run": recorded.correlation_id,
        "event_hash": recorded.event_hash,
        "payload": payload,
    }
