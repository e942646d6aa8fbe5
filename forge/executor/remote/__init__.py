"""Runs lab jobs on another machine: bytes and canonical JSON go there, and answers come back.

No class and no closure crosses: a call names one of the calls in `calls`, and the other machine's installed Forge
carries it out. The other machine has no ledger, no key, and no held-out shape but those of the job that it runs.

- `frames`: messages on a stream of bytes, with limits
- `calls`: what can be asked, and the form of every answer
- `answering`: carries calls out, on the machine that is asked
- `executor`: the executor that asks
- `ssh`: a connection to a machine over ssh

`forge.lab.sent_job` has the form of a job that is sent. `forge.executor.ray` has the connection to a node of a Ray
cluster.
"""
