"""Stored states: one that is broken is refused when it is read, in one sentence."""

import copy
import itertools
import json
import random
import warnings

import numpy as np
import pytest

from skcalib import __main__ as commands
from skcalib.__main__ import main
from skcalib.metrics import CalibrationAccumulator, CalibrationMonitor

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 60)
Y = np.array([RNG.choice(3, p=p) for p in P])
VALUES = (
    *(None, True, False, -1, 0, 1, 3, 1e308, -1e308, float("inf"), float("nan"), 2**70, 10**400),
    *("", "x", "NaN", "1", [], [[]], {}, [None], [1, "a"], {"a": 1}, -0.5, 0.5, "\ud800"),
)


def states():
    every = ["classwise_ece", "log_loss", "brier", "accuracy", "overconfidence", "e_value"]
    yield CalibrationAccumulator(3, metrics=every).update(Y, P)
    yield CalibrationAccumulator(3, metrics=["e_value"], labels=["no", "yes"])
    yield CalibrationAccumulator(4, norm="max").update(Y > 0, P[:, 1], sample_weight=P[:, 2])
    yield CalibrationMonitor().update(Y, P, by=Y % 2).update(Y[:50], P[:50], by=Y[:50] % 2)
    yield CalibrationMonitor(labels=[0, 1, 2]).update(Y, P.round(2)).update(Y, P)
    yield CalibrationMonitor(0.1, labels=["a", "b"])


STATES = list(states())


def paths(value, start=()):
    yield start
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from paths(value[key], (*start, key))


def mutations(state, rng):
    """Yield broken states without end: an entry is set, removed or repeated."""
    places = [path for path in paths(state) if path]
    short = [path for path in places if len(path) < 3]
    while True:
        broken = copy.deepcopy(state)
        *path, last = rng.choice(rng.choice([places, short]))
        parent = broken
        for key in path:
            parent = parent[key]
        how = rng.random()
        if how < 0.7:
            parent[last] = rng.choice(VALUES)
        elif how < 0.85:
            del parent[last]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent["more"] = parent[last]
        yield broken


def use(state):
    """Do with a state all that a user may do."""
    classes = [0, 1] if state.classes_ is None else state.classes_.tolist()
    kept = state._empty if isinstance(state, CalibrationMonitor) else state
    if state.classes_ is None and kept.labels is not None:
        classes = list(kept.labels)
    positive = state.classes_ is None and kept.labels is None
    proba = np.full((20, len(classes)), 1 / len(classes))
    if kept._columns == () or (kept._columns is None and positive):
        proba = np.full(20, 0.25)
    y = np.array(classes, dtype=object)[np.arange(20) % len(classes)].tolist()
    if isinstance(state, CalibrationMonitor):
        groups = None if len(state._streams) <= 1 else np.arange(20) % 2
        state.update(y, proba, by=groups)
        assert isinstance(state.caveats_, list)
    else:
        state.update(y, proba)
        assert state.result() <= state.result("mce") + 1e-9
        assert len(state.n_effective_) == len(state.edges_) - 1
        if "e_value" in state.metric_sums_ and kept._columns is not None:
            state.evidence()
        assert state.interval(n_resamples=2)[0] >= 0
    if isinstance(state, CalibrationMonitor):
        assert state.evidence().e_value >= 0
    assert repr(state)
    assert type(state).from_json(state.to_json()).to_json() == state.to_json()


def read(reader, text, start):
    """Return what a reader makes of a text; None if it is refused in one sentence."""
    try:
        return reader(text)
    except ValueError as error:
        message = str(error)
    assert start in message
    assert len(message) <= 500
    return None


def check_mutations(n, seed=0):
    """Return how many mutated states were refused; the others serve as any state does."""
    rng, refused = random.Random(seed), 0
    for state in STATES:
        broken_ones = mutations(json.loads(state.to_json()), rng)
        for broken in itertools.islice(broken_ones, n // len(STATES)):
            text = json.dumps(broken)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = read(type(state).from_json, text, "text must be what to_json of a")
                if found is None:
                    refused += 1
                else:
                    use(found)
    return refused


def test_what_is_written_is_read():
    for state in STATES:
        found = type(state).from_json(state.to_json())
        assert found.to_json() == state.to_json()
        use(found)


@pytest.mark.slow
def test_mutated_states_are_refused_or_serve():
    assert check_mutations(600) > 400


@pytest.mark.parametrize("kind", [CalibrationAccumulator, CalibrationMonitor])
@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "null", "1", '"x"', "{}", "\0", "NaN", None, b"{}", 3, "9" * 5000),
        *("[" * 100_000, '{"a":' * 50_000, '{"format": ' + "[" * 900 + "]" * 900 + "}"),
    ],
    ids=lambda text: str(text)[:8],
)
def test_text_of_another_kind(kind, text):
    with pytest.raises(ValueError, match=r"^text must be what to_json of a") as caught:
        kind.from_json(text)
    assert len(str(caught.value)) <= 500


@pytest.mark.slow
def test_mutated_states_of_the_command(tmp_path, capsys):
    lines = [f"{k % 2},{0.2 + 0.6 * (k % 3 == 0)}" for k in range(40)]
    (tmp_path / "p.csv").write_text("\n".join(["label,p_1", *lines]))
    path = tmp_path / "state.json"
    assert main(["monitor", str(tmp_path / "p.csv"), "--state", str(path)]) == 0
    state = json.loads(path.read_text())
    rng, refused = random.Random(0), 0
    for broken in itertools.islice(mutations(state, rng), 150):
        path.write_text(json.dumps(broken))
        start = "must be a state that this command has written: "
        found = read(lambda path: commands._read_state(path, None), path, start)
        if found is None:
            refused += 1
        else:
            assert found.classes == ["not 1", "1"]
    assert refused > 80
    path.unlink()
    path.mkdir()
    assert main(["monitor", str(tmp_path / "p.csv"), "--state", str(path)]) == 2
    assert "it is no file" in capsys.readouterr().err
