"""GPU models as data, one file per vendor and market; every file names the documents its figures are from.

To add a GPU: an entry in the file of its vendor and market. A figure that its vendor doesn't publish is left out.
"""

from forge.platforms.gpu_table.amd import AMD
from forge.platforms.gpu_table.apple import APPLE
from forge.platforms.gpu_table.nvidia_data_centre import NVIDIA_DATA_CENTRE
from forge.platforms.gpu_table.nvidia_rtx import NVIDIA_RTX

GPUS = (*NVIDIA_DATA_CENTRE, *NVIDIA_RTX, *AMD, *APPLE)

__all__ = ["GPUS"]
