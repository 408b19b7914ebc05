"""What every public callable does with hostile input: no wrong answer without a word.

Every array argument of every public function, and of the methods of every public estimator, is
replaced by each of the kinds of input below. A kind is either *hostile* (NaN, masks, text, wrong
shapes, ...), and then an error has to name the argument, or *another form* of the same values
(lists, DataFrames, other memory layouts, tensors that require gradients, ...), and then the result
has to be the same, or the refusal to name the argument. What varies inside an estimator (order,
number, dtype of its classes) is in `hostile_inner`.
"""

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.special import softmax
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skcalib import datasets, difficulty, labels, metrics, posthoc, selection
from skcalib.losses import DifficultyAwareLoss, functional
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.report._data import read_data

RNG = np.random.default_rng(0)
N, K, D = 60, 3, 4
LABELS = np.tile(np.arange(K), N // K)
LOGITS = RNG.normal(size=(N, K)) + 2 * np.eye(K)[LABELS]
PROBA = softmax(LOGITS, axis=1)
FEATURES = RNG.normal(size=(N, D)) + LABELS[:, None]
WEIGHT = RNG.integers(1, 4, N).astype(float)
SCORES = RNG.normal(size=N)


class Argument(NamedTuple):
    """The role of an argument decides which kinds of input are hostile to it."""

    role: str  # "labels", "history", "proba", "logits", "features", "weight", "scores", "unit"
    value: np.ndarray


class Call(NamedTuple):
    """A public callable with valid arguments."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Argument]
    fixed: dict[str, Any] = {}


class Kind(NamedTuple):
    """A way to spoil or to rewrite an array."""

    name: str
    make: Callable[[np.ndarray], Any]
    hostile: bool
    roles: frozenset[str]


# --- the kinds -----------------------------------------------------------------------------------

NUMBERS = frozenset({"proba", "logits", "features", "weight", "scores", "unit"})
CLASSES = frozenset({"labels", "history"})
MATRICES = frozenset({"proba", "logits", "features", "history"})
VECTORS = frozenset({"labels", "weight", "scores", "unit"})
EVERYTHING = NUMBERS | CLASSES


def with_entry(value: Any, dtype: Any = float) -> Callable[[np.ndarray], np.ndarray]:
    def make(array: np.ndarray) -> np.ndarray:
        spoiled = array.astype(dtype)
        spoiled.flat[7] = value
        return spoiled

    return make


as_object_with = partial(with_entry, dtype=object)


def masked(array: np.ndarray) -> Any:
    mask = np.zeros(array.shape, dtype=bool)
    mask.flat[3] = True
    return np.ma.array(array, mask=mask)


def read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def frame_or_series(array: np.ndarray) -> Any:
    index = np.arange(len(array))[::-1] + 100
    return pd.Series(array, index=index) if array.ndim == 1 else pd.DataFrame(array, index=index)


class ArrayLike:
    """An object that numpy can read, and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.array, dtype=dtype)

    def __len__(self) -> int:
        return len(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


KINDS = [
    # values
    Kind("NaN", with_entry(np.nan), True, EVERYTHING),
    Kind("inf", with_entry(np.inf), True, EVERYTHING - {"scores"}),
    Kind("-inf", with_entry(-np.inf), True, EVERYTHING - {"scores"}),
    Kind("all NaN", lambda a: np.full(a.shape, np.nan), True, EVERYTHING),
    Kind("None inside", as_object_with(None), True, EVERYTHING),
    Kind("text inside", as_object_with("a"), True, EVERYTHING),
    Kind("an object inside", as_object_with(object()), True, EVERYTHING),
    Kind("a list inside", as_object_with([1, 2]), True, EVERYTHING),
    Kind("pandas NA", lambda a: pd.array(as_object_with(pd.NA)(a.ravel()), dtype=object).reshape(
        a.shape), True, EVERYTHING),
    Kind("mixed list", lambda a: [*a.tolist()[:-1], "a"], True, VECTORS),
    Kind("fractions", lambda a: a + 0.5, True, frozenset(CLASSES)),
    Kind("beyond 64 bits", lambda a: (a + 1) * 1e19, True, frozenset(CLASSES)),
    Kind("negative", lambda a: -1 - np.abs(a), True, frozenset({"proba", "weight", "unit"})),
    Kind("above one", lambda a: a + 1.5, True, frozenset({"proba", "unit"})),
    Kind("rows that do not sum to one", lambda a: a * 0.9, True, frozenset({"proba"})),
    Kind("rows that are zero", lambda a: a * 0, True, frozenset({"proba"})),
    Kind("zero everywhere", lambda a: a * 0, True, frozenset({"weight"})),
    # types
    Kind("complex", lambda a: a + 1j, True, EVERYTHING),
    Kind("text", lambda a: np.full(a.shape, "a"), True, NUMBERS),
    Kind("bytes", lambda a: np.full(a.shape, b"a"), True, EVERYTHING),
    Kind("dates", lambda a: np.asarray(a * 0).astype("int64").astype("M8[s]"), True, EVERYTHING),
    Kind("spans of time", lambda a: a.astype("int64").astype("m8[s]"), True, EVERYTHING),
    Kind("records", lambda a: np.zeros(a.shape, dtype=[("a", float)]), True, EVERYTHING),
    Kind("masked array", masked, True, EVERYTHING),
    Kind("None", lambda a: None, True, frozenset({"proba", "logits", "features"})),
    Kind("a number", lambda a: 3, True, EVERYTHING),
    Kind("a word", lambda a: "word", True, NUMBERS - {"scores"}),
    Kind("a dict", lambda a: {"a": a}, True, EVERYTHING - {"scores"}),
    Kind("a set", lambda a: set(a.ravel().tolist()), True, EVERYTHING),
    Kind("a generator", lambda a: (row for row in a), True, EVERYTHING),
    Kind("a function", lambda a: len, True, EVERYTHING - {"scores"}),
    # shapes
    Kind("empty", lambda a: a[:0], True, EVERYTHING),
    Kind("one sample less", lambda a: a[:-1] if a.shape[0] == N else a[:, :-1], True, EVERYTHING),
    Kind("one sample more", lambda a: np.concatenate([a, a[:1]])
         if a.shape[0] == N else np.hstack([a, a[:, :1]]), True, EVERYTHING),
    Kind("three axes", lambda a: np.stack([np.atleast_2d(a)] * 2), True, EVERYTHING),
    Kind("transposed", lambda a: a.T, True, MATRICES),
    Kind("two columns of it", lambda a: np.column_stack([a, a]), True, VECTORS),
    Kind("ragged", lambda a: [[1.0], *np.atleast_2d(a).tolist()], True, EVERYTHING),
    # the same values in another form
    Kind("list", lambda a: a.tolist(), False, EVERYTHING),
    Kind("tuple", lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a), False, EVERYTHING),
    Kind("Fortran order", np.asfortranarray, False, EVERYTHING),
    Kind("strided view", lambda a: np.repeat(a, 2, axis=0)[::2], False, EVERYTHING),
    Kind("read-only", read_only, False, EVERYTHING),
    Kind("big-endian", lambda a: a.astype(a.dtype.newbyteorder(">")), False, EVERYTHING),
    Kind("object", lambda a: a.astype(object), False, EVERYTHING),
    Kind("array-like", ArrayLike, False, EVERYTHING),
    Kind("pandas, other index", frame_or_series, False, EVERYTHING),
    Kind("pandas nullable", lambda a: frame_or_series(a).convert_dtypes(), False, EVERYTHING),
    Kind("pandas category", lambda a: pd.Series(a, dtype="category"), False,
         frozenset({"labels"})),
    Kind("named columns in order", lambda a: pd.DataFrame(a, columns=range(a.shape[1])), False,
         frozenset({"proba", "logits"})),
    Kind("float32", lambda a: a.astype(np.float32), False, NUMBERS),
    Kind("integers as floats", lambda a: a.astype(float), False, CLASSES),
    Kind("8 bits", lambda a: a.astype(np.int8), False, CLASSES),
    Kind("unsigned", lambda a: a.astype(np.uint64), False, CLASSES),
    Kind("tensor", lambda a: torch.tensor(a), False, EVERYTHING),
    Kind("tensor with gradient", lambda a: torch.tensor(a, requires_grad=True), False, NUMBERS),
    Kind("weights of 1e300", lambda a: a * 1e300, False, frozenset({"weight"})),
    Kind("weights of 1e-300", lambda a: a * 1e-300, False, frozenset({"weight"})),
]  # fmt: skip


# --- the callables -------------------------------------------------------------------------------

ROLES = {
    "y_true": Argument("labels", LABELS),
    "y": Argument("labels", LABELS),
    "y_pred": Argument("labels", LABELS[::-1].copy()),
    "y_proxy": Argument("labels", LABELS[::-1].copy()),
    "final": Argument("labels", LABELS),
    "final_predictions": Argument("labels", LABELS),
    "groups": Argument("labels", LABELS),
    "by": Argument("labels", LABELS),
    "y_proba": Argument("proba", PROBA),
    "logits": Argument("logits", LOGITS),
    "X": Argument("features", FEATURES),
    "sample_weight": Argument("weight", WEIGHT),
    "y_score": Argument("scores", SCORES),
    "scores": Argument("scores", SCORES),
    "difficulty": Argument("scores", SCORES),
    "depth_held_out": Argument("scores", np.abs(SCORES)),
    "depth_trained": Argument("scores", np.abs(SCORES)[::-1].copy()),
    "predictions": Argument("history", np.stack([LABELS, LABELS[::-1], LABELS])),
    "probe_predictions": Argument("history", np.column_stack([LABELS[::-1], LABELS])),
}
BINARY = {"fpr_at_tpr", "ood_report"}
# Probabilities of two classes alone.
TWO_CLASSES = {"net_benefit", "decision_curve", "samples_for_validation"}
# They take no arrays, or arrays that other entries cover; images have tests of their own.
LEFT_OUT = {
    "get_scorer", "get_scorer_names", "make_predictions", "score_difficulty",
    "area_under_margin", "confidence_variability",
    "cross_val_difficulty",
}  # fmt: skip

RESAMPLES = {"n_resamples": 5, "random_state": 0}
OPTIONS = {
    "flip_labels": {"fraction": 0.5, "random_state": 0},
    "isotonic_reliability_curve": {"n_resamples": 19, "random_state": 0},
    "smooth_reliability_curve": {"n_resamples": 19, "random_state": 0},
    "calibration_error_interval": RESAMPLES,
    "calibration_test": RESAMPLES,
    "validation_summary": RESAMPLES,
    "cost_summary": {"random_state": 0},
    "net_benefit": {"threshold": 0.3},
    "decision_curve": {**RESAMPLES, "thresholds": [0.2, 0.4]},
    "samples_for_validation": {
        "width": {"o_e_ratio": 0.5},
        "n_simulations": 20,
        "random_state": 0,
    },
    "groupwise_calibration_error": {**RESAMPLES, "min_samples": 1},
    # All are checked, but the draw might have left some out: so there is an interval.
    "prediction_powered_interval": {"checked": np.arange(N), "inclusion_proba": np.full(N, 0.5)},
    "compare_calibration": {**RESAMPLES, "y_probas": {"model": PROBA}},
}


def function_calls() -> Iterator[Call]:
    for package in (metrics, difficulty, datasets):
        for name in package.__all__:
            function = getattr(package, name)
            if isinstance(function, type) or name in LEFT_OUT:
                continue
            function = getattr(function, "__wrapped__", function)
            arguments = {n: ROLES[n] for n in parameters(function) if n in ROLES}
            if name in BINARY:
                arguments["y_true"] = Argument("labels", LABELS % 2)
            if name in TWO_CLASSES:
                arguments["y_proba"] = Argument("proba", softmax(LOGITS[:, :2], axis=1))
                if "y_true" in arguments:
                    arguments["y_true"] = Argument("labels", LABELS % 2)
            if name == "multilabel_calibration_error":
                # Probabilities of labels need not sum to 1.
                arguments["y_true"] = Argument(
                    "history", np.eye(PROBA.shape[1], dtype=int)[LABELS]
                )
                arguments["y_proba"] = Argument("unit", PROBA)
            fixed = OPTIONS.get(name, {})
            yield Call(f"{package.__name__}.{name}", getattr(package, name), arguments, fixed)
    for function, name, history in (
        (
            difficulty.training_dynamics.area_under_margin,
            "logits",
            np.stack([LOGITS, LOGITS[::-1]]),
        ),
        (
            difficulty.training_dynamics.confidence_variability,
            "y_proba",
            np.stack([PROBA, PROBA[::-1]]),
        ),
    ):
        name_of_call = f"skcalib.difficulty.{function.__name__}"
        yield Call(name_of_call, function, {"y": ROLES["y"]}, {name: history})


def parameters(function: Callable) -> list[str]:
    return list(inspect.signature(function).parameters)


def fit_call(estimator: Any, X: Argument, method: str, *, weighted: bool) -> Iterator[Call]:
    name = f"{type(estimator).__module__.split('._')[0]}.{type(estimator).__name__}"
    arguments = {"X": X, "y": ROLES["y"]}
    if weighted:
        arguments["sample_weight"] = ROLES["sample_weight"]

    def fit(X: Any, y: Any, **given: Any) -> Any:
        return getattr(clone(estimator).fit(X, y, **given), method)(
            PREDICT_ON[arguments["X"].role]
        )

    fitted = clone(estimator).fit(X.value, LABELS)
    yield Call(f"{name}.fit", fit, arguments)
    yield Call(f"{name}.{method}", lambda X: getattr(fitted, method)(X), {"X": X})


PREDICT_ON = {"features": FEATURES, "logits": LOGITS, "proba": PROBA}


def estimators() -> Iterator[tuple[Any, str, bool]]:
    """Yield estimators of features, the method that is asked, and whether `fit` takes weights."""
    nb, rmd = GaussianNB(), difficulty.RMDScorer()
    model = LogisticRegression().fit(FEATURES, LABELS)
    subset = selection.SubsetClassifier
    net = CalibratedNetClassifier(MLP, max_epochs=2, random_state=0, device="cpu")
    yield posthoc.PostHocCalibratedClassifier(model, cv=2), "predict_proba", True
    yield rmd, "difficulty", True
    yield difficulty.KMeansPrototypeScorer(random_state=0), "difficulty", True
    yield difficulty.LossScorer(nb), "difficulty", False
    yield difficulty.PredictionDepthScorer(small_network(), n_neighbors=3), "difficulty", False
    aware = difficulty.DifficultyAwareClassifier(nb, fit_param="sample_weight")
    yield aware, "predict_proba", False
    yield subset(nb, selection.MaxEntropySelector(nb)), "predict_proba", False
    yield subset(nb, selection.DifficultySelector(rmd)), "predict_proba", False
    yield difficulty.NoveltyDetector(rmd), "predict", True
    yield selection.SelectiveClassifier(nb, risk=0.9, confidence_level=0.1), "predict_proba", False
    finder = labels.LabelIssueFinder(rmd, noise="random")  # the default takes a second a fit
    yield labels.LabelCleaningClassifier(nb, finder), "predict_proba", True
    yield net, "predict_proba", True


def estimator_calls() -> Iterator[Call]:
    for name in posthoc.__all__:
        if name not in ("PostHocCalibrator", "PostHocCalibratedClassifier"):
            for kind, argument in (("logits", ROLES["logits"]), ("proba", ROLES["y_proba"])):
                estimator = getattr(posthoc, name)(input=kind)
                if name == "PriorShift":  # it needs to know what the model was trained on
                    estimator.set_params(training_priors="uniform")
                yield from fit_call(estimator, argument, "predict_proba", weighted=True)
    for estimator, method, weighted in estimators():
        yield from fit_call(estimator, ROLES["X"], method, weighted=weighted)
    knn = difficulty.KNNScorer().fit(FEATURES)
    finder = labels.LabelIssueFinder(difficulty.RMDScorer(), noise="random")
    accumulate = metrics.CalibrationAccumulator
    net = CalibratedNetClassifier(MLP, max_epochs=2, random_state=0, device="cpu")
    by_difficulty = clone(net).set_params(criterion=DifficultyAwareLoss)

    def fitted(net: Any) -> Callable[..., Any]:
        return lambda **given: clone(net).fit(FEATURES, LABELS, **given).predict_proba(FEATURES)

    name = "skcalib.nets.CalibratedNetClassifier.fit"
    unit = {"difficulty_weight": Argument("unit", RNG.random(N))}
    yield Call(f"{name}(difficulty_weight)", fitted(by_difficulty), unit)
    yield Call(f"{name}(target_proba)", fitted(net), {"target_proba": Argument("proba", PROBA)})
    yield Call("skcalib.difficulty.KNNScorer.difficulty", knn.difficulty, {"X": ROLES["X"]})
    yield Call(
        "skcalib.selection.MaxEntropySelector.fit",
        lambda X: selection.MaxEntropySelector().fit(X).get_support(),
        {"X": ROLES["y_proba"]},
    )
    yield Call(
        "skcalib.labels.LabelIssueFinder.fit",
        lambda X, y, **given: clone(finder).fit(X, y, **given).label_proba_,
        {name: ROLES[name] for name in ("X", "y", "sample_weight")},
    )
    yield Call(
        "skcalib.metrics.CalibrationAccumulator.update",
        lambda **given: accumulate().update(**given).result(),
        {name: ROLES[name] for name in ("y_true", "y_proba", "sample_weight")},
    )


def report_calls() -> Iterator[Call]:
    """Yield what a report checks before it computes; the numbers behind it cost seconds."""

    def read(**given: Any) -> tuple[Any, ...]:
        data = read_data(labels=None, **given)
        return data.codes, data.proba, data.weight, *data.by.values()

    arguments = {name: ROLES[name] for name in ("y_true", "y_proba", "sample_weight", "by")}
    yield Call("skcalib.report.CalibrationReport.from_predictions", read, arguments)


def small_network() -> Any:
    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MLPClassifier((5,), max_iter=30, random_state=0).fit(FEATURES, LABELS)
    return FrozenEstimator(network)


# --- losses: tensors, and what stands where a tensor should --------------------------------------

LOSS_KINDS = {
    "target": {
        "-100": lambda t: t.masked_fill(t == 0, -100),
        "K": lambda t: t + 1,
        "floats": lambda t: t + 0.5,
        "numpy": lambda t: t.numpy(),
        "list": lambda t: t.tolist(),
        "text": lambda t: "target",
        "None": lambda t: None,
        "one sample less": lambda t: t[:-1],
        "three axes": lambda t: torch.nn.functional.one_hot(t, K).float()[None],
        "soft that sums to 2": lambda t: 2 * torch.nn.functional.one_hot(t, K).float(),
        "boolean": lambda t: t > 0,
    },
    "logits": {
        "numpy": lambda z: z.numpy(),
        "list": lambda z: z.tolist(),
        "None": lambda z: None,
        "integers": lambda z: z.long(),
        "no axis": lambda z: z.sum(),
        "no samples": lambda z: z[:0],
        "complex": lambda z: z + 0j,
    },
    "sample_weight": {
        "negative": lambda w: -w,
        "one sample less": lambda w: w[:-1],
        "a column": lambda w: w[:, None],
        "numpy": lambda w: w.numpy(),
        "text": lambda w: "weights",
    },
    "difficulty_weight": {
        "above one": lambda w: w + 2,
        "negative": lambda w: w - 2,
        "one sample less": lambda w: w[:-1],
    },
    "weight": {"a list": lambda _: [1.0] * K, "NaN": lambda _: np.nan, "text": lambda _: "2"},
    "ignore_index": {"a fraction": lambda _: 0.5, "text": lambda _: "0", "a flag": lambda _: True},
    "reduction": {"a word": lambda _: "average", "None": lambda _: None},
    "detach_weight": {"a word": lambda _: "False", "None": lambda _: None},
    "weighted": {"a word": lambda _: "False", "a number": lambda _: 3},
    "gamma": {"negative": lambda _: -1.0, "NaN": lambda _: np.nan, "text": lambda _: "2"},
    "alpha": {"inf": lambda _: np.inf, "NaN": lambda _: np.nan, "text": lambda _: "2"},
    "order": {"zero": lambda _: 0, "NaN": lambda _: np.nan},
    "p": {"zero": lambda _: 0, "NaN": lambda _: np.nan, "text": lambda _: "1"},
}


def loss_outcomes() -> Iterator[tuple[str, str, str, str]]:
    tensors = {
        "logits": torch.tensor(LOGITS),
        "target": torch.tensor(LABELS),
        "sample_weight": torch.tensor(WEIGHT),
        "difficulty_weight": torch.rand(N, dtype=torch.float64),
        "history": torch.rand(N, dtype=torch.float64),
    }
    for name in functional.__all__:
        function = getattr(functional, name)
        known = parameters(function)
        valid = {n: t for n, t in tensors.items() if n in known}
        if name == "uncertainty_weighted_loss":
            valid.pop("difficulty_weight", None)
            valid["uncertainty"] = lambda logits, target: torch.ones(len(logits))
        for argument, kinds in LOSS_KINDS.items():
            if argument not in known or (argument in tensors and argument not in valid):
                continue
            for kind, make in kinds.items():
                given = {**valid, argument: make(valid.get(argument))}
                outcome = attempt(lambda given=given, f=function: f(**given), argument)
                yield f"skcalib.losses.{name}", argument, kind, outcome


# --- the outcomes --------------------------------------------------------------------------------


def flat(result: Any) -> np.ndarray:
    """Return all numbers of a result in a row."""
    if isinstance(result, dict):
        return np.concatenate([flat(value) for value in result.values()])
    if isinstance(result, tuple):
        return np.concatenate([flat(value) for value in result])
    array = np.asarray(result)
    if array.dtype.names:
        return np.concatenate([flat(array[name]) for name in array.dtype.names])
    if array.dtype.kind in "OU":
        return np.unique(array.astype(str), return_inverse=True)[1].ravel().astype(float)
    return array.ravel().astype(float)


def attempt(call: Callable[[], Any], *arguments: str) -> str:
    """Return the outcome of a call that should be refused."""
    try:
        call()
    except (ValueError, TypeError) as error:
        named = any(names(error, argument) for argument in arguments)
        return "named error" if named else f"unnamed error: {error!r:.150}"
    except Exception as error:
        return f"crash: {error!r:.150}"
    return "WRONG: taken"


def names(error: Exception, argument: str) -> bool:
    return re.search(rf"\b{argument}\b", str(error)) is not None


def compare(call: Callable[[], Any], argument: str, expected: np.ndarray, exact: bool) -> str:
    """Return the outcome of a call with the same values in another form."""
    try:
        found = flat(call())
    except (ValueError, TypeError) as error:
        return "named refusal" if names(error, argument) else f"unnamed error: {error!r:.150}"
    except Exception as error:
        return f"crash: {error!r:.150}"
    tolerance = 1e-7 if exact else 2e-3
    same = found.shape == expected.shape and np.allclose(
        found, expected, rtol=tolerance, atol=tolerance, equal_nan=True
    )
    return "same result" if same else "WRONG: another result"


# Only beside another array of the same samples; alone, these are other valid arrays.
IN_COMPANY = {"one sample less", "one sample more", "transposed"}
# (callable, argument, kind), each a pattern, and why the kind is neither hostile nor the same.
EXCUSED = [
    # They count samples by their weights: priors, thresholds and the fits of classifiers do.
    (r"risk_coverage|debiased|reliability_curve|labels|Matrix|Dirichlet|CalibrationReport"
     r"|PostHocCalibratedClassifier|Groupwise|Beta|Ensemble|Stacked|Temperature|Vector"
     r"|NoveltyDetector",
     "sample_weight", "weights of"),
    # Names of any kind; a missing one is a group of its own, and there may be several columns.
    (r"[gG]roupwise|CalibrationReport|_interval|compare_|calibration_test|decision_curve|_summary",
     "by|groups",
     "NaN|inf|None inside|pandas NA|fractions|beyond|bytes|dates|spans|records|two col|a dict"),
    (r"Ensemble|Stacked|Temperature", "X", "-inf"),  # a class that is no option of the sample
    (r"flip_labels", "y", "one sample"),  # the only array
    (r"decision_curve", "y_proba", "a dict"),  # several models
    (r"HistogramBinning", "X", "float32"),  # a step function of the scores
    (r"el2n", "y_proba", "three axes"),  # several runs
    (r"difficulty_quadrant|corner_distances", "depth_", "NaN|None inside"),  # no depth
    (r"CalibratedNetClassifier", "target_proba", "None$"),  # the labels themselves
    (r"CalibratedNetClassifier", "X", "tuple|a dict"),  # for skorch, several inputs of a module
]  # fmt: skip


# X reaches the estimator inside as it is, and that is the one to complain.
INNER = re.compile(r"PostHocCalibrated|SubsetC|SelectiveC|LossScorer|DifficultyAwareC|labels")


def is_excused(call: Call, argument: str, kind: str) -> bool:
    if kind in IN_COMPANY and len(call.arguments) == 1 and not call.fixed:
        return True
    return any(
        re.search(name, call.name) and re.search(which, argument) and re.search(what, kind)
        for name, which, what in EXCUSED
    )


def calls() -> list[Call]:
    return [*function_calls(), *estimator_calls(), *report_calls()]


def outcomes(call: Call, kinds: list[Kind]) -> Iterator[tuple[str, str, str]]:
    """Yield argument, kind and outcome of a callable."""
    values = {name: argument.value for name, argument in call.arguments.items()}
    expected = flat(call.function(**values, **call.fixed))
    for name, argument in call.arguments.items():
        for kind in kinds:
            if argument.role not in kind.roles or is_excused(call, name, kind.name):
                continue
            given = {**values, name: kind.make(argument.value), **call.fixed}
            run = lambda given=given: call.function(**given)
            if kind.hostile:
                # Of two arrays of different lengths, either may be named.
                blamed = list(call.arguments) if kind.name in IN_COMPANY else [name]
                outcome = attempt(run, *blamed)
                if name == "X" and INNER.search(call.name):
                    outcome = outcome.replace("unnamed error", "inner error")
                yield name, kind.name, outcome
            else:
                exact = kind.name != "float32"
                yield name, kind.name, compare(run, name, expected, exact)
