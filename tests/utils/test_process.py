"""One handler of Ctrl-C and one generator of torch, left as they were."""

import os
import signal
import threading
from contextlib import suppress

import pytest

from skcalib.utils._backends import raise_ctrl_c, seed_torch

torch = pytest.importorskip("torch")


def test_a_seed_holds_within_its_block_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seed_torch(1):
        first = torch.rand(3)
    with seed_torch(1, "cpu"), seed_torch(2):
        torch.rand(3)
    with seed_torch(1):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.rand(3), expected)


def test_threads_take_turns():
    inside, order = threading.Event(), []

    def other():
        inside.wait()
        with seed_torch(0):
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with seed_torch(0):
        inside.set()
        thread.join(0.2)
        order.append("first")
    thread.join(10)
    assert order == ["first", "other"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_threads_of_its_parent():
    inside, done = threading.Event(), threading.Event()

    def hold():
        with seed_torch(0):
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends a child that waits
        with seed_torch(0):
            os._exit(0)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_ctrl_c_comes_back_where_it_was_swallowed():
    former = signal.getsignal(signal.SIGINT)
    if not callable(former):
        pytest.skip("Ctrl-C is ignored here")
    with pytest.raises(KeyboardInterrupt), raise_ctrl_c(), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with raise_ctrl_c(), suppress(KeyboardInterrupt):
        raise KeyboardInterrupt  # as callbacks do that end a training
    assert signal.getsignal(signal.SIGINT) is former
