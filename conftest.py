"""One thread for torch: with two cores, checks of nets take seconds instead of minutes."""

from contextlib import suppress

import matplotlib

matplotlib.use("Agg")

with suppress(ImportError):
    import torch

    torch.set_num_threads(1)
