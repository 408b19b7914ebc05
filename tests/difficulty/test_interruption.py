"""Ctrl-C, as the system sends it, to a study in a process of its own."""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import PredictionDepthScorer
from skcalib.difficulty._networks import train_recorded
from skcalib.utils._backends import raise_ctrl_c

REPOSITORY = Path(__file__).parents[2]
STUDY = """
import warnings
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.neural_network import MLPClassifier
from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer

warnings.simplefilter("ignore")
kind, n_repeats, folder, out = argv[1:]
X, y = make_blobs(160, n_features=6, centers=4, cluster_std=4.0, random_state=0)
X, y = X.astype(np.float32), y.astype(np.int64)
if kind == "mlp":
    net = MLPClassifier((40, 40), max_iter=4, tol=0.0, n_iter_no_change=4, batch_size=16)
else:
    import skorch, skorch.toy, torch

    net = skorch.NeuralNetClassifier(
        skorch.toy.MLPModule, module__input_units=6, module__output_units=4,
        module__output_nonlin=torch.nn.Identity(), criterion=torch.nn.CrossEntropyLoss,
        max_epochs=4, batch_size=16, train_split=None, verbose=0,
    )
scorer = PredictionDepthScorer(net, n_neighbors=5)
profiler = DifficultyProfiler(
    scorer, n_repeats=int(n_repeats), test_size=0.25, random_state=0, folder=folder or None
).fit(X, y)
np.savez(out, profiler.predictions_, profiler.depth_, profiler.iteration_learned_)
"""


@pytest.fixture
def start():
    """Start studies in processes of their own; none of them outlives the test."""
    children = []

    def start(kind, n_repeats, folder, out):
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"from sys import argv{STUDY}",
                kind,
                str(n_repeats),
                str(folder),
                str(out),
            ],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path]),
                "OMP_NUM_THREADS": "1",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def finish(child):
    _, errors = child.communicate(timeout=300)
    return child.returncode, errors


def result(path):
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def stored(folder):
    return list(folder.rglob("output.pkl"))


def wait_for_a_repeat(folder, child):
    deadline = time.monotonic() + 300
    while not stored(folder):
        assert child.poll() is None, finish(child)
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal of POSIX")
@pytest.mark.parametrize("kind", ["mlp", pytest.param("skorch", marks=pytest.mark.long)])
def test_ctrl_c_stops_the_study_and_nothing_of_the_repeat_is_kept(kind, tmp_path, start):
    if kind == "skorch":
        pytest.importorskip("skorch")
    folder = tmp_path / "study"
    # More repeats than can be done before the signal comes, however slow this process is.
    child = start(kind, 5000, folder, tmp_path / "never.npz")
    wait_for_a_repeat(folder, child)
    time.sleep(0.05)  # Into the training of the second network.
    child.send_signal(signal.SIGINT)
    code, errors = finish(child)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert code == -signal.SIGINT
    assert not (tmp_path / "never.npz").exists()
    assert 1 <= len(stored(folder)) < 5000
    n_repeats = max(4, len(stored(folder)) + 1)
    with warnings.catch_warnings():
        for at, name in ((str(folder), "resumed.npz"), ("", "whole.npz")):
            exec(STUDY, {"argv": ["", kind, str(n_repeats), at, str(tmp_path / name)]})
    for resumed, whole in zip(result(tmp_path / "resumed.npz"), result(tmp_path / "whole.npz")):
        np.testing.assert_array_equal(resumed, whole)


def swallow(interrupt):
    with suppress(KeyboardInterrupt):
        interrupt()


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def stop_training():
    raise KeyboardInterrupt  # As callbacks of skorch do to end a training.


def test_a_swallowed_ctrl_c_comes_back_at_the_end():
    former = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), raise_ctrl_c():
        swallow(press_ctrl_c)
    assert signal.getsignal(signal.SIGINT) is former
    with raise_ctrl_c():
        swallow(stop_training)
    with pytest.raises(ZeroDivisionError), raise_ctrl_c():
        1 / 0  # noqa: B018
    assert signal.getsignal(signal.SIGINT) is former


@pytest.fixture
def passes(monkeypatch):
    """Count passes through an MLPClassifier, and press Ctrl-C in the middle of the seventh."""
    n_passes = []

    def interrupted(net, *args):
        n_passes.append(1)
        if len(n_passes) == 7:
            press_ctrl_c()
        return backprop(net, *args)

    # Private, but nothing else of it runs in the middle of an epoch.
    backprop = MLPClassifier._backprop
    monkeypatch.setattr(MLPClassifier, "_backprop", interrupted)
    return n_passes


# The network swallows it, with a warning.
@pytest.mark.filterwarnings("ignore:Training interrupted by user")
def test_what_interrupts_the_default_network_interrupts_the_scorer(passes):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(KeyboardInterrupt):
        PredictionDepthScorer(n_neighbors=3).fit(X, np.arange(40) % 2)
    assert len(passes) == 7


@pytest.mark.filterwarnings("ignore:Training interrupted by user")
def test_ctrl_c_ends_a_recorded_training_after_its_epoch(passes):
    X = np.random.default_rng(0).normal(size=(40, 3))
    net = MLPClassifier((4,), max_iter=1000, batch_size=20)
    with pytest.raises(KeyboardInterrupt):
        train_recorded(net, X, np.arange(40) % 2, X, seed=0)
    assert len(passes) == 7


def test_whoever_handles_ctrl_c_otherwise_is_left_to_it():
    pressed = []
    former = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        with raise_ctrl_c():
            swallow(press_ctrl_c)
        assert pressed == [1]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with raise_ctrl_c():
            press_ctrl_c()
    finally:
        signal.signal(signal.SIGINT, former)
