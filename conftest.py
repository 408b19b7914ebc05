"""One thread for torch: with two cores, checks of nets take seconds instead of minutes."""

import signal
from contextlib import suppress

import matplotlib

matplotlib.use("Agg")

with suppress(ImportError):
    import torch

    torch.set_num_threads(1)

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them the
# processes that the tests of Ctrl-C start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
