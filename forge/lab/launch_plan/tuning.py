"""Has a candidate's own tuner choose the configuration that is timed and shipped, once, at the task's shape.

The choice is the guest's word. A poor one is only the candidate's loss, since each configuration was judged.
"""

from forge.lab.calls.configurations import configuration_file
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.gates.configurations import MOST, in_the_call_that_tunes
from forge.sandbox.reply import ArtifactFile


def measured_configurations(kernel: LoadedKernel) -> tuple[ArtifactFile, ...] | Failed:
    """Let the tuner measure, and keep to its choice in this guest; return the file that names it, if it has one.

    The call in which it measures is judged too.
    """
    found = kernel.configurations()
    if isinstance(found, Failed):
        return found
    if not 1 < found.most <= MOST:
        return ()
    kernel.tuner.allow_for(found.most)
    kernel.tuner.choose(0, way="measure")
    checked = kernel.check([kernel.case(kernel.shape)])
    if isinstance(checked, Failed):
        return in_the_call_that_tunes(checked)
    kept = kernel.configurations()
    if isinstance(kept, Failed):
        return kept
    kernel.tuner.choose(0)
    checked = kernel.check([kernel.case(kernel.shape)])
    return checked if isinstance(checked, Failed) else (configuration_file(kept.configurations),)
