"""Static triage: what a person should look at in a candidate's sources, read without running them.

By syntax tree and import resolution for Python, by tokens for C++ text; never by text pattern. It explains and saves
time. It is not the wall: whoever builds a name at run time isn't seen here, and is met by the sandbox and the gates.

To add a kind of finding: its name in `forge.domain.source_finding`, its sentence in `kinds`, its rule in `rules`,
`cpp_rules`, or a function of its own in `examine`.
"""

from forge.lab.triage.examine import Triage, triage

__all__ = ["Triage", "triage"]
