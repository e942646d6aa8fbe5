"""Lists what a person should look at in a candidate's sources, read without running them.

It uses syntax trees and import resolution for Python, and tokens for C++ text; never text patterns. It explains and
saves time. It is not the wall: a name that is built at run time isn't seen here, and is left to the sandbox and the
gates.

To add a kind of finding, add its name to `forge.domain.source_finding` and its sentence to `collector`. Its rule goes
to `rules`, `cpp_rules`, or a separate function in `examine`.
"""

from forge.lab.triage.examine import TriageResult, triage

__all__ = ["TriageResult", "triage"]
