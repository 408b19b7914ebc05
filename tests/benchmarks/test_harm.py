import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from benchmarks import harm
from skcalib.difficulty import DifficultyAwareClassifier
from skcalib.selection import MaxEntropySelector

RESULTS = Path(harm.__file__).with_name("harm_results.json")


def accuracy(method):
    rows = [row for row in json.loads(RESULTS.read_text()) if row["method"] == method]
    return np.array([row["accuracy"] for row in rows])


def test_docstrings_say_what_was_measured():
    up = accuracy("DifficultyAwareClassifier, up")
    down = accuracy("DifficultyAwareClassifier, down")
    doc = " ".join(DifficultyAwareClassifier.__doc__.split())
    assert f"on {len(up)} small tasks" in doc
    assert (
        f"cost {-up.mean():.3f} accuracy on average and {-up.min():.2f}".replace("0.", ".") in doc
    )
    assert abs(down.mean()) < 0.001
    assert f"changed nothing on average and cost {-down.min():.2f}".replace("0.", ".") in doc
    doc = " ".join(MaxEntropySelector.__doc__.split())
    for method in ("MaxEntropySelector, .3", "random, .3", "MaxEntropySelector, .7", "random, .7"):
        assert f"{-accuracy(method).mean():.3f}".removeprefix("0") in doc
    assert f"on {len(accuracy('random, .3'))} small tasks" in doc


def test_a_method_is_judged_on_samples_apart_and_the_plain_one_changes_nothing():
    X, y = load_iris(return_X_y=True)
    parts = harm.split("iris", X, y, seed=0)
    assert sum(len(labels) for _, labels in parts) == len(y)
    plain = LogisticRegression(max_iter=500)
    once, again = (
        harm.measure_method(lambda model, seed: model, plain, 0, parts) for _ in range(2)
    )
    model = plain.fit(*parts[0])
    assert once["accuracy"] == np.mean(model.predict(parts[2][0]) == parts[2][1])
    assert all(once[name] == again[name] for name in once if name != "seconds")


def test_wrong_labels_are_those_to_train_on_alone():
    X, y = load_iris(return_X_y=True)
    clean, flipped = (harm.split(name, X, y, seed=0) for name in ("iris", "iris, 20 % wrong"))
    assert (clean[0][1] != flipped[0][1]).mean() == 0.2
    assert all((a[1] == b[1]).all() for a, b in zip(clean[1:], flipped[1:]))
