"""Converters to ONNX: importing this module registers them with skl2onnx.

The graph computes the formula of a calibrator, in double precision, after the graph that skl2onnx
makes of the classifier. A row of scores or probabilities that a calibrator refuses in Python gets
NaN; its label means nothing. Features are not checked: what a classifier refuses is undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from . import posthoc
from .difficulty import DifficultyAwareClassifier
from .labels import LabelCleaningClassifier
from .posthoc import PostHocCalibratedClassifier, PostHocCalibrator
from .selection import MinimumCostClassifier, SelectiveClassifier, SubsetClassifier
from .utils._estimators import get_last_step
from .utils._labels import find_positions
from .utils._output import import_optional
from .utils._proba import FLOAT32_ROUNDING, TOLERANCE

import_optional("skl2onnx", extra="onnx")

# ruff: noqa: E402  (a missing extra is named first)
from onnx import TensorProto
from skl2onnx import update_registered_converter
from skl2onnx._parse import _apply_zipmap, _parse_sklearn
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

__all__: list[str] = []

_OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}
_FLAT = np.array([-1])
_DELEGATING = (DifficultyAwareClassifier, LabelCleaningClassifier, SubsetClassifier)


# Score of a class that the classifier lacks.
_LEAST_SCORE = float(np.finfo(np.float32).min)


class _Graph:
    """Adds nodes to a graph; constants are double, except integers, booleans and strings."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def __call__(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; its inputs are names or constants. Return the names of its outputs."""
        names = [self.scope.get_unique_variable_name(op) for _ in range(outputs)]
        given = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        name = self.scope.get_unique_operator_name(op)
        self.container.add_node(op, given, names, name=name, **attributes)
        return names[0] if outputs == 1 else names

    def constant(self, value: ArrayLike) -> str:
        """Add a constant and return its name."""
        array = np.asarray(value)
        kind = {"i": TensorProto.INT64, "U": TensorProto.STRING, "b": TensorProto.BOOL}
        flat = array.ravel().tolist()
        name = self.scope.get_unique_variable_name("constant")
        self.container.add_initializer(
            name, kind.get(array.dtype.kind, TensorProto.DOUBLE), list(array.shape), flat
        )
        return str(name)

    def double(self, name: str) -> str:
        return str(self("Cast", name, to=TensorProto.DOUBLE))

    def columns(self, name: str, positions: ArrayLike) -> str:
        """Return these columns, (n, len(positions))."""
        return str(self("Gather", name, np.asarray(positions, dtype=np.int64), axis=1))

    def row_sum(self, name: str, n_columns: int) -> str:
        """Return the sum of every row, (n, 1)."""
        return str(self("MatMul", name, np.ones((n_columns, 1))))

    def largest(self, name: str, k: int = 1) -> str:
        """Return the k largest of every row, (n, k)."""
        return str(self("TopK", name, np.array([k]), outputs=2, axis=1)[0])

    def save(self, name: str, output: Any) -> None:
        """Make a computed value an output of the graph."""
        node = self.scope.get_unique_operator_name("Identity")
        self.container.add_node("Identity", [name], [output.full_name], name=node)


# Maps of calibrators


def _add_calibrator(g: _Graph, calibrator: PostHocCalibrator, scores: str) -> str:
    """Add the map of a calibrator to scores of double precision.

    A row that no calibrator reads, as where float32 overflows in the model, becomes NaN. Its
    numbers are replaced for the map, whose look-ups end the whole batch at a NaN.
    """
    k, single = len(calibrator.classes_), calibrator.n_features_in_ == 1
    row_is_faulty = _find_faulty_rows(g, calibrator, scores)
    scores = g("Where", row_is_faulty, 1 / k, scores)
    if calibrator.input != "proba":
        if calibrator.input == "scores":
            scores = g("Div", scores, calibrator.unit_)
        z = g("Concat", g("Mul", scores, 0.0), scores, axis=1) if single else scores
        p = g("Softmax", z, axis=1)
    else:
        p = g("Concat", g("Sub", 1.0, scores), scores, axis=1) if single else scores
        z = g("Log", g("Max", p, calibrator._zero))
    mapped = _add_map(g, calibrator._formula(), z, p, k)
    return str(g("Where", row_is_faulty, float("nan"), mapped))


def _find_faulty_rows(g: _Graph, calibrator: PostHocCalibrator, scores: str) -> str:
    """Return which rows `predict_proba` refuses, (n, 1).

    A sum of probabilities may miss 1 by all that the rounding of 16 bits explains.
    """
    width = calibrator.n_features_in_
    options = calibrator._takes_missing_options and calibrator.input != "proba" and width > 1
    infinite = g("IsInf", scores, detect_negative=int(not options))
    faulty = g("Or", g("IsNaN", scores), infinite)
    if calibrator.input == "proba":
        outside = g("Or", g("Less", scores, -TOLERANCE), g("Greater", scores, 1 + TOLERANCE))
        faulty = g("Or", faulty, outside)
    of_row = g("Greater", g.row_sum(g.double(faulty), width), 0.0)
    if options:
        missing = g.row_sum(g.double(g("IsInf", scores)), width)
        of_row = g("Or", of_row, g("Greater", missing, width - 0.5))
    elif calibrator.input == "proba" and width > 1:
        off = g("Abs", g("Sub", g.row_sum(scores, width), 1.0))
        of_row = g("Or", of_row, g("Greater", off, 2.0**-6))
    return str(of_row)


def _add_map(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Add the map of a formula to logits z and probabilities p, both (n, k)."""
    return _FORMULAS[formula["kind"]](g, formula, z, p, k)


def _add_identity(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    return p


def _make_uniform(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Return equal probabilities of the classes whose logit is finite."""
    missing = g.double(g("IsInf", z))
    exists = g("Sub", 1.0, missing)
    return str(g("Div", exists, g.row_sum(exists, k)))


def _add_mixture(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Return the weighted sum of maps, 0 for a class with a logit of -inf."""
    parts = [
        g("Mul", _add_map(g, part, z, p, k), weight)
        for weight, part in zip(formula["weights"], formula["parts"])
    ]
    mixed = g("Mul", g("Sum", *parts), g("Sub", 1.0, g.double(g("IsInf", z))))
    total = g("Max", g.row_sum(mixed, k), float(np.finfo(np.float64).tiny))
    return str(g("Div", mixed, total))


def _add_shift(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Return a map times exp(intercept), divided by the sums of rows."""
    scaled = g("Mul", _add_map(g, formula["part"], z, p, k), np.exp(formula["intercept"]))
    return str(g("Div", scaled, g.row_sum(scaled, k)))


def _add_linear(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Return softmax(W f + b) of f = z / T or, with a least value, of its clipped log-softmax."""
    f = g("Div", z, formula["temperature"])
    if formula["least"] is not None:
        # The runtime's LogSoftmax loses its small numbers beside large ones.
        f = g("LogSoftmax", g("Sub", f, g.largest(f)), axis=1)
        f = g("Max", f, formula["least"])
    coef = np.array(formula["coef"])
    f = g("MatMul", f, coef.T) if coef.ndim == 2 else g("Mul", f, coef)
    return str(g("Softmax", g("Add", f, formula["intercept"]), axis=1))


def _add_one_vs_rest(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Return a curve for every class, divided by their sum; with k = 2, for the second class."""
    columns = range(1, 2) if k == 2 else range(k)
    of_proba = formula["of"] == "proba"
    parts = [
        _CURVES[curve["kind"]](
            g, curve, g.columns(p, [column]) if of_proba else _log_odds(g, z, column, k), k
        )
        for curve, column in zip(formula["curves"], columns)
    ]
    if k == 2:
        return str(g("Concat", g("Sub", 1.0, parts[0]), parts[0], axis=1))
    joint = g("Concat", *parts, axis=1)
    total = g.row_sum(joint, k)
    some = g("Greater", total, 0.0)
    safe = g("Where", some, total, 1.0)
    return str(g("Where", some, g("Div", joint, safe), 1 / k))


def _log_odds(g: _Graph, z: str, column: int, k: int) -> str:
    """Return the logit of a class less the logarithm of the sum of exponentials of the others."""
    rest = g.columns(z, [other for other in range(k) if other != column])
    top = g.largest(rest)
    total = g.row_sum(g("Exp", g("Sub", rest, top)), k - 1)
    return str(g("Sub", g.columns(z, [column]), g("Add", top, g("Log", total))))


def _add_confidence(g: _Graph, formula: dict[str, Any], z: str, p: str, k: int) -> str:
    """Return probabilities with the largest (k = 2: the second) mapped by a curve of log-odds."""
    zero, q = formula["zero"], _add_map(g, formula["part"], z, p, k)
    largest = g.columns(q, [1]) if k == 2 else g.largest(q)
    sure = g("Min", g("Max", largest, zero), 1 - zero)
    odds = g("Sub", g("Log", sure), g("Log", g("Sub", 1.0, sure)))
    m = g("Sigmoid", _add_line(g, formula, odds, k))
    if k == 2:
        return str(g("Concat", g("Sub", 1.0, m), m, axis=1))
    top = g("Not", g("Less", q, g("Mul", largest, 1 - formula["equal"])))
    count = g.row_sum(g.double(top), k)
    rest_sum = g("Max", g("Sub", 1.0, g("Mul", count, largest)), zero)
    following = g("Mul", g.largest(g("Where", top, 0.0, q)), 1 + zero)
    least = g("Div", following, g("Add", rest_sum, g("Mul", count, following)))
    m = g("Min", g("Max", m, least), g("Div", 1 - zero, count))
    rest = g("Mul", q, g("Div", g("Sub", 1.0, g("Mul", count, m)), rest_sum))
    latest = g("Where", top, g("Mul", q, g("Div", m, largest)), rest)
    return str(g("Div", latest, g.row_sum(latest, k)))


def _add_beta(g: _Graph, curve: dict[str, Any], p: str, k: int) -> str:
    """Return (1 - w) sigmoid(a log q - b log(1 - q) + c) + w / k; q is p clipped, or of odds."""
    if curve["zero"] is None:
        # log q = min(v, 0) - log(1 + exp(-|v|)), and the same of -v for log(1 - q).
        least = g("Log", g("Add", 1.0, g("Exp", g("Neg", g("Abs", p)))))
        logs = [g("Sub", g("Min", g("Mul", p, sign), 0.0), least) for sign in (1.0, -1.0)]
    else:
        q = g("Min", g("Max", p, curve["zero"]), 1 - curve["zero"])
        logs = [g("Log", q), g("Log", g("Sub", 1.0, q))]
    a, b = g("Mul", logs[0], curve["a"]), g("Mul", logs[1], curve["b"])
    score = g("Add", g("Sub", a, b), curve["c"])
    mapped = g("Div", 1.0, g("Add", 1.0, g("Exp", g("Neg", score))))
    return str(g("Add", g("Mul", mapped, 1 - curve["w"]), curve["w"] / k))


def _add_steps(g: _Graph, curve: dict[str, Any], p: str, k: int) -> str:
    """Return y[j] where j of the edges x are below p."""
    # The edges are values of samples, which the graph rounds.
    edges = np.array(curve["x"])
    edges = edges + FLOAT32_ROUNDING * np.abs(edges)
    return str(g("Gather", np.array(curve["y"]), _number_below(g, p, edges)))


def _add_line(g: _Graph, curve: dict[str, Any], p: str, k: int) -> str:
    """Return the linear interpolation of the points (x, y) at p, constant outside of them."""
    x, y = np.array(curve["x"]), np.array(curve["y"])
    if len(x) == 1:
        return str(g("Add", g("Mul", p, 0.0), float(y[0])))
    q = g("Min", g("Max", p, float(x[0])), float(x[-1]))
    # Of the points at or below q, the last that has another one after it.
    piece = _number_below(g, q, x[1:-1])
    slope = np.diff(y) / np.diff(x)
    along = g("Mul", g("Sub", q, g("Gather", x, piece)), g("Gather", slope, piece))
    return str(g("Add", g("Gather", y, piece), along))


def _number_below(g: _Graph, values: str, ordered: NDArray[np.float64]) -> str:
    """Return how many of the ordered numbers are below every value, by bisection."""
    count = g("Cast", g("Mul", values, 0.0), to=TensorProto.INT64)
    # Infinity is never below: bisection may look beyond the last number.
    step = 1 << max(0, len(ordered).bit_length() - 1)
    padded = np.concatenate([ordered, np.full(2 * step, np.inf)])
    while step and len(ordered):
        further = g("Add", count, np.array(step))
        limit = g("Gather", padded, g("Sub", further, np.array(1)))
        count = g("Where", g("Less", limit, values), further, count)
        step //= 2
    return str(count)


_FORMULAS: dict[str, Callable[..., str]] = {
    "identity": _add_identity,
    "uniform": _make_uniform,
    "mixture": _add_mixture,
    "shifted": _add_shift,
    "linear": _add_linear,
    "one_vs_rest": _add_one_vs_rest,
    "confidence": _add_confidence,
}
_CURVES: dict[str, Callable[..., str]] = {
    "beta": _add_beta,
    "steps": _add_steps,
    "line": _add_line,
}


# The classifier inside


def _unwrap(estimator: Any) -> Any:
    """Return a copy of the estimator that predicts, without frozen ones, searches and wrappers."""
    if isinstance(estimator, FrozenEstimator):
        return _unwrap(estimator.estimator)
    if isinstance(estimator, _DELEGATING):
        return _unwrap(estimator.estimator_)
    if hasattr(estimator, "best_estimator_"):
        return _unwrap(estimator.best_estimator_)
    if isinstance(estimator, Pipeline):
        return Pipeline([(name, _unwrap(step)) for name, step in estimator.steps])
    return copy(estimator)  # options belong to an object, and one may be needed twice


def _add_inner(
    g: _Graph, operator: Any, *, raw: bool = False, fitted: Any = None
) -> tuple[str, str]:
    """Add the classifier inside; return its label and its probabilities or, `raw`, scores.

    The columns are in the order of the classes outside.
    """
    outer = operator.raw_operator
    model = _unwrap(outer.estimator_ if fitted is None else fitted)
    # A Pipeline would not pass `raw_scores` on: the options are those of its last step.
    last, _ = get_last_step(model)
    allowed = g.scope._get_allowed_options(last, fail=False) or {}
    if raw and "raw_scores" not in allowed:
        raise NotImplementedError(
            f"skl2onnx has no decision_function of {type(last).__name__}; calibrate its "
            'probabilities: response_method="predict_proba".'
        )
    wanted = {"zipmap": False, "raw_scores": raw}
    for options in (g.scope, g.container):
        options.add_options(id(last), {key: wanted[key] for key in wanted if key in allowed})
    label, scores = _parse_sklearn(g.scope, model, list(operator.inputs))
    absent = _LEAST_SCORE if raw else 0.0
    values = _in_order(g, g.double(scores.full_name), model, outer.classes_, absent)
    return g("Reshape", label.full_name, _FLAT), values


def _in_order(g: _Graph, scores: str, model: Any, classes: NDArray[Any], absent: float) -> str:
    """Return the columns of a model in the order of `classes`; absent ones have this value."""
    known = np.asarray(getattr(model, "classes_", classes))
    if np.array_equal(known, classes):
        return scores
    positions = find_positions(classes, known)
    nothing = g("Add", g("Mul", g.columns(scores, [0]), 0.0), absent)
    columns = [nothing if at < 0 else g.columns(scores, [at]) for at in positions.tolist()]
    return str(g("Concat", *columns, axis=1))


# What skl2onnx calls: parsers declare operators, `_set_shapes` types outputs, converters add nodes


def _convert_labels(classes: ArrayLike) -> NDArray[Any]:
    """Return labels of a type that ONNX has: integers or strings."""
    array = np.asarray(classes)
    return array.astype(str if array.dtype.kind in "OSU" else np.int64)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare an operator with label and probabilities, in dicts unless zipmap is off."""
    operator = scope.declare_local_operator(_add_alias(type(model)), model)
    operator.inputs = inputs
    is_double = isinstance(inputs[0].type, DoubleTensorType)
    kind = DoubleTensorType if is_double else FloatTensorType
    outputs = [
        scope.declare_local_variable("label", Int64TensorType()),
        scope.declare_local_variable("probabilities", kind()),
    ]
    if isinstance(model, SelectiveClassifier):
        outputs.append(scope.declare_local_variable("accepted", BooleanTensorType()))
    for output in outputs:
        operator.outputs.append(output)
    zipmap = scope.get_options(model, {"zipmap": True})["zipmap"]
    if zipmap is False:
        return outputs
    return [*_apply_zipmap(zipmap, scope, model, kind(), outputs[:2]), *outputs[2:]]


def _set_shapes(operator: Any) -> None:
    """Set the types and shapes of the outputs."""
    label, proba, *accepted = operator.outputs
    n, classes = operator.inputs[0].get_first_dimension(), operator.raw_operator.classes_
    answers = getattr(operator.raw_operator, "decisions_", classes)
    is_text = _convert_labels(answers).dtype.kind == "U"
    label.set_type((StringTensorType if is_text else Int64TensorType)([n]))
    proba.set_type(type(proba.type)([n, len(classes)]))
    for output in accepted:
        output.set_type(BooleanTensorType([n]))


def _save(g: _Graph, operator: Any, label: str, proba: str) -> None:
    """Make label and probabilities outputs, the latter in the precision that was declared."""
    is_double = isinstance(operator.outputs[1].type, DoubleTensorType)
    g.save(label, operator.outputs[0])
    kind = TensorProto.DOUBLE if is_double else TensorProto.FLOAT
    g.save(g("Cast", proba, to=kind), operator.outputs[1])


def _save_largest(g: _Graph, operator: Any, proba: str) -> None:
    """Make probabilities an output, and the class of the largest as the label."""
    best = g("ArgMax", proba, axis=1, keepdims=0)
    _save(g, operator, g("Gather", _convert_labels(operator.raw_operator.classes_), best), proba)


def _convert_calibrator(scope: Any, operator: Any, container: Any) -> None:
    g = _Graph(scope, container)
    scores = g.double(operator.inputs[0].full_name)
    _save_largest(g, operator, _add_calibrator(g, operator.raw_operator, scores))


def _convert_calibrated(scope: Any, operator: Any, container: Any) -> None:
    g, model = _Graph(scope, container), operator.raw_operator
    if model.by_columns is not None:
        raise NotImplementedError(
            "by_columns must be None in ONNX: the graph has one map for all samples, got "
            f"{model.by_columns!r}."
        )
    parts = []
    for fitted in model.estimators_:
        raw = model._scoring_method() == "decision_function"
        _, scores = _add_inner(g, operator, raw=raw, fitted=fitted)
        if model.calibrator_.n_features_in_ == 1:
            scores = g.columns(scores, [1])  # skl2onnx has minus the score for the first class
        parts.append(_add_calibrator(g, model.calibrator_, scores))
    proba = parts[0]
    if len(parts) > 1:
        logs = [g("Log", g("Max", part, float(np.finfo(np.float64).tiny))) for part in parts]
        proba = g("Softmax", g("Div", g("Sum", *logs), float(len(parts))), axis=1)
    _save_largest(g, operator, proba)


def _convert_selective(scope: Any, operator: Any, container: Any) -> None:
    g, model = _Graph(scope, container), operator.raw_operator
    if not isinstance(model.confidence_, str):
        raise NotImplementedError(
            "confidence must be read off the classifier in ONNX, one of "
            f"{sorted(_CONFIDENCES)}, got {type(model.confidence_).__name__}."
        )
    if isinstance(model.risk, dict):
        raise NotImplementedError(
            f"risk must be a number in ONNX: the graph has one threshold, got {model.risk}."
        )
    label, proba = _add_inner(g, operator)
    raw = model.confidence_ in ("max_logit", "energy")
    values = _add_inner(g, operator, raw=True)[1] if raw else proba
    confidence = _CONFIDENCES[model.confidence_](g, values, len(model.classes_))
    limit = model.threshold_
    if np.isfinite(limit):
        # Scores that equal it up to rounding, as often with trees and neighbors, do not pass.
        limit += FLOAT32_ROUNDING * abs(limit)
    accepted = g("Reshape", g("Greater", confidence, limit), _FLAT)
    answer = g("Where", accepted, label, _convert_labels(model.reject_label_))
    _save(g, operator, answer, proba)
    g.save(accepted, operator.outputs[2])


def _convert_minimum_cost(scope: Any, operator: Any, container: Any) -> None:
    g, model = _Graph(scope, container), operator.raw_operator
    if callable(model.costs):
        raise NotImplementedError(
            "costs must be a table in ONNX, one for all samples, got a function of X."
        )
    _, proba = _add_inner(g, operator)
    expected = g("MatMul", proba, np.asarray(model.costs, dtype=np.float64).T)
    best = g("ArgMin", expected, axis=1, keepdims=0)
    _save(g, operator, g("Gather", _convert_labels(model.decisions_), best), proba)


def _add_minus_entropy(g: _Graph, proba: str, k: int) -> str:
    logs = g("Log", g("Max", proba, float(np.finfo(np.float64).tiny)))
    return g.row_sum(g("Mul", proba, logs), k)


def _add_margin(g: _Graph, proba: str, k: int) -> str:
    return str(g("MatMul", g.largest(proba, 2), np.array([[1.0], [-1.0]])))


def _add_energy(g: _Graph, logits: str, k: int) -> str:
    top = g.largest(logits)
    terms = g("Exp", g("Sub", logits, top))
    return str(g("Add", top, g("Log", g.row_sum(terms, k))))


_CONFIDENCES: dict[Any, Callable[[_Graph, str, int], str]] = {
    "msp": lambda g, proba, k: g.largest(proba),
    "entropy": _add_minus_entropy,
    "margin": _add_margin,
    "max_logit": lambda g, logits, k: g.largest(logits),
    "energy": _add_energy,
}


def _parse_delegating(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Parse the inner classifier in place of the outer one, whose predictions are the same."""
    inner = _unwrap(model)
    if not np.array_equal(inner.classes_, model.classes_):
        raise NotImplementedError("the classifier inside must know all classes.")
    zipmap = scope.get_options(model, {"zipmap": True})["zipmap"]
    scope.add_options(id(get_last_step(inner)[0]), {"zipmap": zipmap})
    return _parse_sklearn(scope, inner, inputs)


def _convert_delegating(scope: Any, operator: Any, container: Any) -> None:
    """Not called: the parser leaves no such operator."""


def _add_alias(kind: type) -> str:
    return f"Skcalib{kind.__name__}"


def _list_subclasses(base: Any) -> list[Any]:
    """Return the calibrators of the package, including private ones of the stack."""
    found: list[Any] = []
    for kind in base.__subclasses__():
        found += [kind, *_list_subclasses(kind)]
    return [kind for kind in found if kind.__module__.startswith(posthoc.__name__)]


def _register() -> None:
    handled: dict[Any, tuple[Any, Any]] = dict.fromkeys(
        _list_subclasses(PostHocCalibrator), (_parse, _convert_calibrator)
    )
    for kind in _DELEGATING:
        handled[kind] = _parse_delegating, _convert_delegating
    handled[PostHocCalibratedClassifier] = _parse, _convert_calibrated
    handled[SelectiveClassifier] = _parse, _convert_selective
    handled[MinimumCostClassifier] = _parse, _convert_minimum_cost
    for kind, (parser, converter) in handled.items():
        update_registered_converter(
            kind, _add_alias(kind), _set_shapes, converter, parser=parser, options=_OPTIONS
        )


_register()
