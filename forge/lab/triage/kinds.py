"""Explains each kind of finding in one sentence: why a reader should look."""

from forge.domain.source_finding import FindingKind

WHY: dict[FindingKind, str] = {
    "dynamic_import": "a module is chosen at run time: what is loaded can't be read off the source",
    "foreign_code": "native code is loaded that Forge didn't build from this candidate",
    "patching": "an object of another module is changed: others' calls may then do something else",
    "threads": "work may go on beside the call or after it",
    "environment": "the answer may depend on where it runs: a variable, an argument or a global setting",
    "frames": "the program reaches for its caller: its frames, all objects there are, or the harness's own modules",
    "introspection": "the program looks at its callers, at the interpreter or at raw memory",
    "files": "files are read or written: an answer could be kept there or come from there",
    "network": "a kernel has nothing to ask of the network",
    "processes": "a kernel has no business with other processes",
    "clock": "the time is read: a call that is timed could be told from one that isn't",
    "randomness": "the answer may depend on chance",
    "foreign_kernel": "a library of ready-made kernels is used",
    "vendor_fallback": "the vendor's library or torch may do the computation, not this candidate's kernel",
    "fallback_on_error": "an error is caught and something else is done instead of the kernel",
    "decoy_kernel": "a kernel is defined that the entry point never launches",
    "state": "values outlive a call: an answer could be remembered",
    "eval_exec": "text is run as a program: what it does can't be read off the source",
    "serialized_payload": "data is unpacked that a reader can't see through",
}
"""Reason to look at a finding, by kind."""
