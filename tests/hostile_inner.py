"""What meta-estimators make of the classes of the classifier inside: no wrong answer in silence.

Every meta-estimator is fitted around classifiers whose classes stand in another order, are more
or fewer than those of `y`, have labels of another dtype, return predictions as a column, or have
parameters that name labels. Where the answer is not as good as that of the classifier itself, and
nothing is said, it is *silent*; a refusal has to be one that could not be answered. Damaged files
of nets have to be refused by name, and to leave the net alone.
"""

import io
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from skcalib.difficulty import DifficultyAwareClassifier, LossScorer
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.posthoc import PostHocCalibratedClassifier, TemperatureScaling, VectorScaling
from skcalib.selection import MaxEntropySelector, SelectiveClassifier, SubsetClassifier

N = 600
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, N)
X = RNG.normal(size=(N, 4)) + 2.5 * np.eye(3, 4)[CODES]


class Reordered(ClassifierMixin, BaseEstimator):
    """Logistic regression whose `classes_` are in the order asked for, or more than those of y."""

    def __init__(
        self,
        classes: Any = None,
        *,
        scores: bool = True,
        column: bool = False,
        class_weight: Any = None,
    ) -> None:
        self.classes = classes
        self.scores = scores
        self.column = column
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Reordered":
        self.model_ = LogisticRegression(class_weight=self.class_weight)
        self.model_.fit(X, y, sample_weight=sample_weight)
        named = self.model_.classes_ if self.classes is None else np.asarray(self.classes)
        self.classes_ = named
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        proba = np.zeros((len(X), len(self.classes_)))
        of_model = self.model_.predict_proba(X)
        for i, label in enumerate(self.model_.classes_):
            proba[:, self.classes_ == label] = of_model[:, [i]]
        return proba

    @property
    def decision_function(self) -> Callable[[Any], np.ndarray]:
        if not self.scores:
            raise AttributeError("scores=False")
        return self._decision_function

    def _decision_function(self, X: Any) -> np.ndarray:
        logits = np.log(np.maximum(self.predict_proba(X), 1e-9))
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> np.ndarray:
        labels = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels[:, None] if self.column else labels


class Case(NamedTuple):
    """Labels, the samples that are given to `fit`, and the classifier inside."""

    name: str
    labels: np.ndarray
    rows: np.ndarray
    inner: Any


NAMES: dict[str, Any] = {
    "int": np.array([0, 1, 2]),
    "gaps": np.array([-5, 3, 40]),
    "uint8": np.array([0, 128, 255], dtype="u1"),
    "int8 at its ends": np.array([-128, 0, 127], dtype="i1"),
    "uint64": np.array([0, 2**60, 2**60 + 1], dtype="u8"),
    "float": np.array([0.0, 1.0, 2.0]),
    "text": np.array(["a", "bb", "reject-ed"]),
    "objects": np.array(["a", "bb", "c"], dtype=object),
}


def cases() -> Iterator[Case]:
    everything, two = np.arange(N), np.flatnonzero(CODES < 2)
    for name, names in NAMES.items():
        y = names[CODES]
        yield Case(f"{name}", y, everything, Reordered())
        yield Case(f"{name}, other order", y, everything, Reordered(names[[2, 0, 1]]))
        frozen = FrozenEstimator(Reordered(names[[2, 0, 1]], scores=False).fit(X, y))
        yield Case(f"{name}, frozen, other order", y, everything, frozen)
        yield Case(f"{name}, frozen, one class more than y", y, two, frozen)
        more = Reordered(names[[2, 0, 1]])
        yield Case(f"{name}, one class more than y", y, two, more)
        weights = dict(zip(names.tolist(), [1.0, 1.0, 1.5]))
        yield Case(f"{name}, class_weight", y, everything, Reordered(class_weight=weights))
    flags = CODES > 0
    yield Case("bool", flags, everything, Reordered())
    yield Case("bool, other order", flags, everything, Reordered([True, False]))
    words = np.array(["n", "p"])[flags.astype(int)]
    yield Case("two words, other order", words, everything, Reordered(["p", "n"]))
    yield Case("column predictions", CODES, everything, Reordered(column=True))
    frozen = FrozenEstimator(LogisticRegression().fit(X, CODES))
    yield Case("frozen integers, y of text", CODES.astype(str), everything, frozen)


METAS: dict[str, Callable[[Any], Any]] = {
    "PostHoc, temperature": lambda c: PostHocCalibratedClassifier(c, TemperatureScaling()),
    "PostHoc, vector": lambda c: PostHocCalibratedClassifier(c, VectorScaling()),
    "PostHoc, auto": lambda c: PostHocCalibratedClassifier(c, "auto"),
    "Selective": lambda c: SelectiveClassifier(c, risk=0.2),
    "Selective, declines all": lambda c: SelectiveClassifier(c, risk=1e-4),
    "Subset": lambda c: SubsetClassifier(c, MaxEntropySelector(clone(c), fraction=0.5)),
    "Cleaning, soft": lambda c: LabelCleaningClassifier(c),
    "Cleaning, drop": lambda c: LabelCleaningClassifier(c, action="drop"),
    "Cleaning, by the classifier": lambda c: LabelCleaningClassifier(
        clone(c), LabelIssueFinder(c, n_refits=0), action="relabel"
    ),
    "Aware": lambda c: DifficultyAwareClassifier(c, fit_param="sample_weight"),
    "Aware, by its loss": lambda c: DifficultyAwareClassifier(
        clone(c), LossScorer(c, cv=3), fit_param="sample_weight"
    ),
}


def accuracies(fitted: Any, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the accuracy by `predict` and by the largest probability, each 1 - .03 at best."""
    answer = np.asarray(fitted.predict(X))
    if answer.shape != y.shape:
        return [0.0]
    answered = np.ones(len(y), dtype=bool)
    if hasattr(fitted, "reject_label_"):
        if fitted.reject_label_ in fitted.classes_.tolist():
            return [0.0]
        declined = answer == fitted.reject_label_
        # What is declined can be told, and nothing else is.
        if not np.array_equal(~declined, fitted.accept(X)):
            return [0.0]
        answered = ~declined
    right = float((answer == y)[answered].mean()) if answered.any() else 1.0
    proba = np.asarray(fitted.predict_proba(X))
    if proba.shape[1] != len(fitted.classes_) or not np.allclose(proba.sum(axis=1), 1):
        return [0.0]
    return [right, float((fitted.classes_[proba.argmax(axis=1)] == y).mean())]


def outcome(meta: str, case: Case) -> str:
    """Return "right", "silent", or what was refused."""
    samples, y = X[case.rows], case.labels[case.rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = METAS[meta](clone(case.inner)).fit(samples, y)
        except (ValueError, TypeError) as error:
            return f"refused: {error}"
        found = accuracies(fitted, samples, y)
    return "right" if min(found) > 0.9 else f"silent: accuracy {min(found):.2f}"


# What cannot be answered: labels that the frozen classifier does not know.
UNANSWERABLE = {"frozen integers, y of text"}


def expected(case: Case) -> str:
    """Return "right" or "refused"."""
    return "refused" if case.name in UNANSWERABLE else "right"


def file_outcomes() -> Iterator[tuple[str, str]]:
    """Yield what was done to the file of a net, and "refused" or what is silent."""
    net = CalibratedNetClassifier(MLP, max_epochs=1, random_state=0, device="cpu")
    net.fit(X.astype("f4"), CODES)
    before, other = net.predict_proba(X.astype("f4")), io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        net.save(Path(folder, "whole.pt"))
        whole = Path(folder, "whole.pt").read_bytes()
    torch.save(net.module_.state_dict(), other)
    spoiled = {
        "empty": b"",
        "not of torch": RNG.bytes(500),
        "cut in half": whole[: len(whole) // 2],
        "another record": other.getvalue(),
        "a table": b"label,a,b\n0,.5,.5\n",
    }
    for name, content in spoiled.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "spoiled.pt")
            path.write_bytes(content)
            try:
                net.load(path)
                yield name, "silent"
            except ValueError as error:
                left_alone = np.array_equal(net.predict_proba(X.astype("f4")), before)
                named = "spoiled.pt" in str(error)
                yield name, "refused" if left_alone and named else f"silent: {error}"
