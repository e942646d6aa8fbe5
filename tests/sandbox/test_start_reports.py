"""A guest whose PID 1 the host doesn't know could be neither stopped nor read, so it never counts as started."""

import os
import socket

import pytest

from forge.errors import EnvironmentUnfit
from forge.sandbox.guest_entry.plan import INIT, send_descriptor, tell
from forge.sandbox.launch import _await_start
from forge.sandbox.reports import Reports


@pytest.mark.parametrize("known", [True, False])
def test_a_start_without_its_first_process_is_refused(known: bool) -> None:
    ours, theirs = socket.socketpair()
    log_end, log_input = os.pipe()
    reports = Reports(ours)
    try:
        if known:
            send_descriptor(theirs, os.pidfd_open(os.getpid()), INIT)
        tell(theirs, started=["pid_ns"])
        if known:
            _await_start(reports, log_end)
            assert reports.init_pid() == os.getpid()
        else:
            with pytest.raises(EnvironmentUnfit, match="PID 1 is unknown"):
                _await_start(reports, log_end)
    finally:
        reports.close()
        theirs.close()
        os.close(log_end)
        os.close(log_input)


def test_a_first_process_that_proc_hides_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A /proc that hides other users' processes shows none below PID 1, as if all had ended."""
    ours, theirs = socket.socketpair()
    log_end, log_input = os.pipe()
    reports = Reports(ours)
    try:
        send_descriptor(theirs, os.pidfd_open(os.getpid()), INIT)
        tell(theirs, started=["pid_ns"])
        monkeypatch.setattr(os.path, "exists", lambda _: False)
        with pytest.raises(EnvironmentUnfit, match="expected a /proc without hidepid"):
            _await_start(reports, log_end)
    finally:
        reports.close()
        theirs.close()
        os.close(log_end)
        os.close(log_input)
