"""GPU models as data, one file per vendor and market; every file names the sources of its figures.

To add a GPU, add an entry to the file of its vendor and market. Leave out figures that the vendor doesn't publish.
"""

from forge.platforms.gpu_table.amd import AMD
from forge.platforms.gpu_table.apple import APPLE
from forge.platforms.gpu_table.nvidia_data_centre import NVIDIA_DATA_CENTRE
from forge.platforms.gpu_table.nvidia_rtx import NVIDIA_RTX

GPUS = (*NVIDIA_DATA_CENTRE, *NVIDIA_RTX, *AMD, *APPLE)

__all__ = ["GPUS"]
