"""Laws that every metric obeys, over a registry of all functions of (y_true, y_proba)."""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skcalib.metrics
from skcalib.metrics import (
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    calibration_error_interval,
    calibration_test,
    classwise_calibration_error,
    coverage_at_risk,
    debiased_calibration_error,
    excess_area_under_risk_coverage,
    expected_calibration_error,
    expected_cost,
    generalized_brier_score,
    isotonic_reliability_curve,
    ks_calibration_error,
    maximum_calibration_error,
    refined_log_loss,
    reliability_curve,
    risk_coverage_curve,
    score_decomposition,
    smooth_calibration_error,
    smooth_reliability_curve,
)


@dataclass(frozen=True)
class Case:
    """A metric with options, and where it is excused from a law."""

    function: Callable
    options: dict = field(default_factory=dict)
    weighted: bool = True  # takes sample_weight
    scale_free: bool = True  # the scale of the weights does not matter
    per_sample: bool = False  # returns one value a row
    atol: float = 1e-9
    dtype_atol: float = 1e-9  # float32 input against the same numbers in float64

    def __call__(self, y_true, y_proba, **kwargs):
        result = self.function(y_true, y_proba, **self.options, **kwargs)
        parts = result if isinstance(result, tuple) else (result,)
        return [np.asarray(part, dtype=np.float64) for part in parts]

    def __str__(self):
        options = ",".join(f"{k}={v}" for k, v in self.options.items())
        return f"{self.function.__name__}({options})"


CASES = [
    Case(expected_calibration_error),
    Case(expected_calibration_error, {"strategy": "quantile", "n_bins": 4}),
    Case(expected_calibration_error, {"norm": "l2", "n_bins": 7}),
    Case(maximum_calibration_error),
    Case(maximum_calibration_error, {"strategy": "quantile", "n_bins": 3}),
    Case(classwise_calibration_error),
    Case(classwise_calibration_error, {"strategy": "quantile", "n_bins": 4}),
    Case(debiased_calibration_error, {"squared": True, "n_bins": 4}, scale_free=False),
    Case(ks_calibration_error),
    Case(smooth_calibration_error, atol=1e-7, dtype_atol=1e-7),
    Case(smooth_calibration_error, {"bandwidth": 0.05}),
    Case(reliability_curve, {"n_bins": 4}, scale_free=False),
    Case(isotonic_reliability_curve, {"n_resamples": 3, "random_state": 0}, scale_free=False),
    Case(smooth_reliability_curve, {"n_resamples": 3, "random_state": 0}, scale_free=False),
    Case(generalized_brier_score, weighted=False, per_sample=True, dtype_atol=1e-6),
    Case(
        generalized_brier_score,
        {"order": 3, "exponent": 1.5},
        weighted=False,
        per_sample=True,
        dtype_atol=1e-6,
    ),
    Case(refined_log_loss, dtype_atol=1e-6),
    Case(score_decomposition),
    Case(score_decomposition, {"scoring_rule": "log_loss"}),
    Case(area_under_risk_coverage, scale_free=False),
    Case(area_under_risk_coverage, {"confidence": "entropy"}, scale_free=False),
    Case(area_under_risk_coverage, {"confidence": "margin"}, scale_free=False),
    Case(excess_area_under_risk_coverage, scale_free=False),
    Case(area_under_generalized_risk_coverage),
    Case(risk_coverage_curve),
    Case(accuracy_at_coverage, {"coverage": 0.37}),
    Case(coverage_at_risk, {"risk": 0.3}),
    Case(expected_cost),
]
# Resamples depend on the number and the order of the rows: no laws, but the same errors.
RANDOM = [
    Case(calibration_error_interval, {"n_resamples": 2, "random_state": 0}),
    Case(calibration_test, {"n_resamples": 2, "random_state": 0}),
]
# Functions of (y_true, y_proba) that the laws do not fit; their own tests say why.
ELSEWHERE = {
    "cost_summary",  # tables, and costs for the number of classes
    "decision_curve",
    "net_benefit",  # two classes alone
    "validation_summary",
    "misclassification_report",
    "groupwise_calibration_error",
    *(case.function.__name__ for case in RANDOM),
}

every_case = pytest.mark.parametrize("case", CASES, ids=str)
weighted_case = pytest.mark.parametrize("case", [c for c in CASES if c.weighted], ids=str)
shapes = pytest.mark.parametrize("binary", [False, True], ids=["matrix", "vector"])


def assert_same(left, right, atol):
    assert len(left) == len(right)
    for a, b in zip(left, right):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol, equal_nan=True)


def make(seed, *, n=60, n_classes=4, binary=False, grid=None):
    """Labels and probabilities; with `grid`, multiples of 1 / grid, so that many are tied."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(2 if binary else n_classes, 0.7), size=n)
    if grid is not None:
        proba = np.stack([rng.multinomial(grid, row) for row in proba]) / grid
    labels = np.array([rng.choice(len(row), p=row / row.sum()) for row in proba])
    return labels, proba[:, 1] if binary else proba


# Their y_true is another one: indicators, labels of checked samples, labels in any order.
OTHER_LABELS = {
    "multilabel_calibration_error",
    "prediction_powered_interval",
    "check_alignment",
}
PREDICTION_METRICS = [
    name
    for name in skcalib.metrics.__all__
    if inspect.isfunction(function := getattr(skcalib.metrics, name))
    and list(inspect.signature(function).parameters)[:2] == ["y_true", "y_proba"]
    and name not in OTHER_LABELS
]


def test_registry_is_complete():
    assert set(PREDICTION_METRICS) - ELSEWHERE == {case.function.__name__ for case in CASES}


@shapes
@weighted_case
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), grid=st.sampled_from([None, 4, 64]))
def test_weight_is_repetition(case, binary, seed, grid):
    y, proba = make(seed, n=30, binary=binary, grid=grid)
    count = np.random.default_rng(seed).integers(0, 4, size=len(y))
    count[0] = 1
    weighted = case(y, proba, sample_weight=count, **known(binary))
    repeated = case(np.repeat(y, count), np.repeat(proba, count, axis=0), **known(binary))
    if case.per_sample:
        weighted = [np.repeat(part, count) for part in weighted]
    assert_same(weighted, repeated, case.atol)


def make_shares(seed, *, n=40, binary=False, grid=None):
    """Fractions of people, some of whom agree on everything, and probabilities."""
    _, proba = make(seed, n=n, binary=binary, grid=grid)
    rng = np.random.default_rng(seed)
    columns = np.column_stack([1 - proba, proba]) if binary else proba
    shares = np.stack([rng.dirichlet(2 * row + 0.1) for row in columns])
    shares[::3] = np.eye(shares.shape[1])[shares[::3].argmax(axis=1)]
    return shares, proba


@shapes
@every_case
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32), grid=st.sampled_from([None, 4, 64]))
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_shares_are_weighted_rows(case, binary, seed, grid):
    shares, proba = make_shares(seed, binary=binary, grid=grid)
    n_classes = shares.shape[1]
    rows, y = np.repeat(np.arange(40), n_classes), np.tile(np.arange(n_classes), 40)
    found = case(shares, proba, **known(binary))
    if case.per_sample:
        (of_rows,) = case(y, proba[rows], **known(binary))
        expected = [np.bincount(rows, shares.ravel() * of_rows)]
    else:
        expected = case(y, proba[rows], sample_weight=shares.ravel(), **known(binary))
    assert_same(found, expected, case.atol)
    if case.weighted:
        weight = np.random.default_rng(seed).uniform(0, 2, 40)
        found = case(shares, proba, sample_weight=weight, **known(binary))
        weight = shares.ravel() * weight[rows]
        assert_same(found, case(y, proba[rows], sample_weight=weight, **known(binary)), case.atol)


@shapes
@every_case
def test_people_who_agree_are_labels(case, binary):
    y, proba = make(7, binary=binary)
    one_hot = np.eye(2 if binary else 4)[y]
    for shares in (one_hot, one_hot.astype(np.float32), one_hot.astype(int), one_hot.tolist()):
        assert_same(case(y, proba, **known(binary)), case(shares, proba, **known(binary)), 1e-12)


@shapes
@weighted_case
@pytest.mark.parametrize("seed", range(4))
def test_zero_weight_is_removal(case, binary, seed):
    y, proba = make(seed, binary=binary, grid=16 if seed % 2 else None)
    weight = np.random.default_rng(seed).uniform(0.5, 2, size=len(y))
    kept = np.arange(len(y)) % 3 != 0
    weight[~kept] = 0
    weighted = case(y, proba, sample_weight=weight, **known(binary))
    removed = case(y[kept], proba[kept], sample_weight=weight[kept], **known(binary))
    if case.per_sample:
        weighted = [part[kept] for part in weighted]
    assert_same(weighted, removed, case.atol)


@shapes
@pytest.mark.parametrize("case", [c for c in CASES if c.weighted and c.scale_free], ids=str)
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e6])
def test_scale_of_weights_does_not_matter(case, binary, scale):
    y, proba = make(0, binary=binary)
    weight = np.random.default_rng(0).uniform(0, 2, size=len(y))
    assert_same(
        case(y, proba, sample_weight=weight, **known(binary)),
        case(y, proba, sample_weight=scale * weight, **known(binary)),
        case.atol,
    )


@shapes
@every_case
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), grid=st.sampled_from([None, 4, 64]))
def test_order_of_rows_does_not_matter(case, binary, seed, grid):
    y, proba = make(seed, n=40, binary=binary, grid=grid)
    order = np.random.default_rng(seed).permutation(len(y))
    straight = case(y, proba, **known(binary))
    shuffled = case(y[order], proba[order], **known(binary))
    if case.per_sample:
        straight = [part[order] for part in straight]
    assert_same(straight, shuffled, case.atol)


@every_case
@pytest.mark.parametrize("seed", range(3))
def test_order_of_classes_does_not_matter(case, seed):
    y, proba = make(seed)
    order = np.random.default_rng(seed).permutation(proba.shape[1])
    assert_same(case(y, proba, labels=range(4)), case(y, proba[:, order], labels=order), case.atol)


@every_case
def test_string_labels_are_integers(case):
    y, proba = make(1)
    names = np.array(["ant", "bee", "cat", "dog"])
    integers = case(y, proba)
    assert_same(integers, case(names[y], proba), 0)
    assert_same(integers, case(names[y].tolist(), proba, labels=names), 0)
    assert_same(integers, case(names[y].astype(object), proba, labels=names.tolist()), 0)
    order = [2, 0, 3, 1]
    assert_same(integers, case(names[y], proba[:, order], labels=names[order]), case.atol)


@every_case
def test_string_labels_of_two_classes(case):
    y, proba = make(1, binary=True)
    names = np.array(["no", "yes"])
    integers = case(y, proba)
    assert_same(integers, case(names[y], proba, pos_label="yes"), 0)
    assert_same(integers, case(names[y], proba, labels=names), 0)
    assert_same(integers, case(2 * y - 1, proba), 0)
    assert_same(integers, case(y.astype(bool), proba), 0)
    assert_same(case(1 - y, proba), case(names[y], proba, pos_label="no"), 0)


@every_case
def test_labels_with_a_class_that_never_occurs(case):
    y, proba = make(2)
    y = np.where(y == 3, 0, y)
    names = np.array(["ant", "bee", "cat", "dog"])
    assert_same(case(y, proba), case(names[y], proba, labels=names), 0)


@shapes
@every_case
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 50), n_classes=st.integers(2, 90))
def test_dtype_changes_nothing(case, binary, dtype, seed, n, n_classes):
    # Multiples of 1 / 1024 are exact in float16, and so are the sums of the rows.
    y, proba = make(seed, n=n, n_classes=n_classes, binary=binary, grid=1024)
    narrow, wide = proba.astype(dtype), proba.astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(wide, proba)
    assert_same(
        case(y, narrow, **known(binary, n_classes)),
        case(y, wide, **known(binary, n_classes)),
        case.dtype_atol,
    )


@shapes
@every_case
def test_input_is_left_alone(case, binary):
    y, proba = make(3, binary=binary)
    weight = np.ones(len(y))
    arrays = [y, proba, weight] if case.weighted else [y, proba]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    case(*arrays[:2], **({"sample_weight": weight} if case.weighted else {}))
    for array, copy in zip(arrays, copies):
        np.testing.assert_array_equal(array, copy)


@shapes
@every_case
def test_data_frames_and_tensors(case, binary):
    pd = pytest.importorskip("pandas")
    torch = pytest.importorskip("torch")
    y, proba = make(4, binary=binary)
    weight = {"sample_weight": np.linspace(0, 1, len(y))} if case.weighted else {}
    expected = case(y, proba, **weight)
    frame = pd.Series if binary else pd.DataFrame
    series = {name: pd.Series(value) for name, value in weight.items()}
    assert_same(expected, case(pd.Series(y, dtype="Int64"), frame(proba), **series), case.atol)
    tensors = {name: torch.tensor(value) for name, value in weight.items()}
    assert_same(expected, case(torch.tensor(y), torch.tensor(proba), **tensors), case.atol)
    assert_same(expected, case(y.tolist(), proba.tolist(), **weight), case.atol)
    assert_same(expected, case(y, np.asfortranarray(proba), **weight), case.atol)


@shapes
@every_case
def test_tensors_of_any_kind(case, binary):
    torch = pytest.importorskip("torch")
    y, proba = make(4, binary=binary, grid=64)
    expected = case(y, proba, **known(binary))
    # Multiples of 1 / 64 are exact in bfloat16.
    for tensor in (torch.tensor(proba, requires_grad=True), torch.tensor(proba).bfloat16()):
        assert_same(expected, case(torch.tensor(y), tensor, **known(binary)), case.dtype_atol)


@shapes
@every_case
def test_tensors_on_a_device(device, case, binary):
    torch = pytest.importorskip("torch")
    y, proba = make(4, binary=binary, grid=64)
    weight = {"sample_weight": np.linspace(0, 1, len(y))} if case.weighted else {}
    expected = case(y, proba, **weight)
    there = {name: torch.tensor(value, device=device) for name, value in weight.items()}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        tensor = torch.tensor(proba, device=device, dtype=dtype, requires_grad=True)
        found = case(torch.tensor(y, device=device), tensor, **there)
        assert_same(expected, found, max(case.atol, case.dtype_atol))


@shapes
@pytest.mark.parametrize("case", CASES + RANDOM, ids=str)
@pytest.mark.parametrize("fault", [np.nan, -0.5, 1.5])
def test_faults_of_tensors_on_a_device_are_named(device, case, binary, fault):
    torch = pytest.importorskip("torch")
    y, proba = make(4, binary=binary)
    proba[7] = fault
    with pytest.raises(ValueError) as expected:
        case(y, proba)
    with pytest.raises(ValueError) as raised:
        case(y, torch.tensor(proba, device=device))
    assert str(raised.value) == str(expected.value)


@every_case
def test_columns_named_by_labels_are_matched_by_name(case):
    pd = pytest.importorskip("pandas")
    y, proba = make(2)
    names = np.array(["ant", "bee", "cat", "dog"])
    order = [2, 0, 3, 1]
    for labels in (names, np.array([30, 10, 40, 20])):
        shuffled = pd.DataFrame(proba, columns=labels)[labels[order].tolist()]
        assert_same(
            case(labels[y], proba, labels=labels),
            case(labels[y], shuffled, labels=labels),
            0,
        )
        assert_same(
            case(labels[y], proba[:, order], labels=labels[order]), case(labels[y], shuffled), 0
        )


@every_case
def test_ordered_categories_go_by_the_names_of_the_columns(case):
    pd = pytest.importorskip("pandas")
    y, proba = make(2)
    names = np.array(["low", "mid", "high", "top"])
    values = pd.Series(pd.Categorical(names[y], categories=names, ordered=True))
    expected = case(y, proba)
    assert_same(expected, case(values, pd.DataFrame(proba, columns=names)), 0)
    assert_same(expected, case(values, proba, labels=names), 0)
    # Without names the columns are in the sorted order of the labels, as in scikit-learn.
    assert_same(expected, case(values, proba[:, np.argsort(names)]), 1e-12)
    in_order = pd.Series(pd.Categorical(y, categories=range(4), ordered=True))
    assert_same(expected, case(in_order, proba), 0)


@shapes
@weighted_case
@pytest.mark.parametrize("exponent", [-200, 308])
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_extreme_weights_do_not_overflow(case, binary, exponent):
    # Where weights count samples, beyond 1e12 or below 1e-12 of them the number does not matter.
    y, proba = make(0, binary=binary)
    weight = np.random.default_rng(0).uniform(0.5, 1, size=len(y))
    extreme = case(y, proba, sample_weight=weight * 10.0**exponent, **known(binary))
    expected = case(y, proba, sample_weight=weight * 1e12 ** np.sign(exponent), **known(binary))
    # In the unit of the weights, or drawn from as many samples: the rest of the curves.
    curves = (reliability_curve, isotonic_reliability_curve, smooth_reliability_curve)
    if case.function in curves:
        extreme, expected = extreme[:2], expected[:2]
    assert all(np.isfinite(part).any() for part in extreme)
    assert_same(extreme, expected, 1e-9)


def known(binary, n_classes=4):
    """Labels spelled out, so that a class may be missing from a small sample."""
    return {"labels": [0, 1] if binary else list(range(n_classes))}


def broken(**changes):
    """Arguments of a valid call, with some replaced; a callable is given the valid value."""
    y, proba = make(5, n=12)
    arguments = {"y_true": y, "y_proba": proba}
    for name, change in changes.items():
        arguments[name] = change(arguments[name].copy()) if callable(change) else change
    return arguments


def put(value, place):
    def change(array):
        array = np.asarray(array, dtype=np.float64)
        array[place] = value
        return array

    return change


BAD = {
    "NaN": (broken(y_proba=put(np.nan, (3, 1))), "y_proba must not contain NaN.*row 3"),
    "negative": (
        broken(y_proba=put(-0.1, (2, 0))),
        r"must hold probabilities in \[0, 1\], got -0.1 in row 2",
    ),
    "above one": (
        broken(y_proba=put(1.2, (2, 0))),
        r"must hold probabilities in \[0, 1\], got 1.2 in row 2",
    ),
    "infinite": (
        broken(y_proba=put(np.inf, (2, 0))),
        r"y_proba must hold probabilities in \[0, 1\], got inf",
    ),
    "row sum": (broken(y_proba=lambda p: p * 0.99), "rows of y_proba must sum to 1, got .*0.99"),
    "logits": (
        broken(y_proba=lambda p: 5 * p - 2),
        r"y_proba must hold probabilities in \[0, 1\]",
    ),
    "no rows": (broken(y_true=[], y_proba=np.empty((0, 4))), "at least one row"),
    "no columns": (broken(y_proba=np.empty((12, 0))), "a column for every class"),
    "one column": (broken(y_proba=np.ones((12, 1))), "a column for every class"),
    "three axes": (broken(y_proba=np.ones((12, 2, 2))), "y_proba must have shape"),
    "text": (broken(y_proba=[["a", "b"]] * 12), "y_proba must hold real numbers"),
    "ragged": (broken(y_proba=[[0.5, 0.5], [1.0]]), "y_proba cannot be read"),
    "length": (broken(y_true=lambda y: y[1:]), "same number of rows, got 11 and 12"),
    "column of labels": (broken(y_true=lambda y: y[:, None]), r"y_true must have shape \(n,\)"),
    "several labels": (
        broken(y_true=lambda y: np.eye(4)[y] + np.eye(4)[0]),
        "y_true must hold probabilities.*multilabel_calibration_error",
    ),
    "several labels or none": (
        broken(y_true=lambda y: np.eye(4)[y] * (y > 0)[:, None]),
        "y_true must hold one label for every sample, got .*multilabel_calibration_error",
    ),
    "texts of several columns": (
        broken(y_true=[["a", "b"]] * 12),
        "y_true must hold real numbers.*soft labels.*multilabel_calibration_error",
    ),
    "shares of other classes": (
        broken(y_true=np.full((12, 3), 1 / 3)),
        "y_true must hold a fraction for every class of y_proba, 4, got 3 columns",
    ),
    "shares of other samples": (
        broken(y_true=np.full((11, 4), 0.25)),
        "y_true and y_proba must have the same number of rows, got 11 and 12",
    ),
    "shares beside labels": (
        broken(y_true=[[0.5, 0.5]] * 12, y_proba=[0, 1] * 6),
        "y_proba must hold probabilities .*seem swapped",
    ),
    "shares, positive class of nothing": (
        broken(y_true=[[0.5, 0.5]] * 12, y_proba=[0.2, 0.7] * 6, pos_label="a"),
        "labels must name the columns of y_true",
    ),
    "fraction": (broken(y_true=put(0.5, 4)), "y_true must hold class labels.*0.5 in row 4"),
    "label beyond 64 bits": (
        broken(y_true=put(1e19, 4)),
        r"y_true must hold class labels within .* 64-bit integers, got 1e\+19 in row 4",
    ),
    "masked labels": (
        broken(y_true=lambda y: np.ma.array(y, mask=y == y[0])),
        "^y_true must not be masked",
    ),
    "masked": (
        broken(y_proba=lambda p: np.ma.array(p, mask=p == p[0])),
        "^y_proba must not be masked",
    ),
    "dates": (
        broken(y_proba=lambda p: p.astype("timedelta64[s]")),
        "y_proba must hold real numbers, got dtype timedelta64",
    ),
    "objects of text": (
        broken(y_proba=lambda p: p.astype(str).astype(object)),
        "y_proba must hold real numbers, got dtype object",
    ),
    "NaN label": (broken(y_true=put(np.nan, 4)), "y_true must hold class labels.*nan in row 4"),
    "mixed labels": (broken(y_true=[0, "a"] * 6), "of one type.*int, str"),
    "too many": (broken(y_true=np.arange(12)), "labels must name the columns"),
    "unknown": (
        broken(y_true=[9] * 12, labels=[0, 1, 2, 3]),
        r"y_true must hold labels among \[0, 1, 2, 3\], got 9 in row 0",
    ),
    "unknown type": (broken(labels=list("abcd")), r"y_true must hold labels among \['a'"),
    "few labels": (broken(labels=[0, 1, 2]), "labels must hold 4 distinct classes"),
    "equal labels": (broken(labels=[0, 1, 2, 2]), "labels must hold 4 distinct classes"),
    "pos_label": (broken(pos_label=1), "pos_label is for y_proba of shape"),
    "vector of strings": (
        broken(y_true=["a", "b"] * 6, y_proba=[0.5] * 12),
        r"pos_label must name .* pos_label='a' or pos_label='b', got None\.$",
    ),
    "vector of three": (broken(y_true=[0, 1, 2] * 4, y_proba=[0.5] * 12), "must hold two classes"),
    "vector, unknown": (
        broken(y_true=["a", "b"] * 6, y_proba=[0.5] * 12, pos_label="c"),
        "pos_label must be one of",
    ),
    "vector above one": (
        broken(y_true=[0, 1] * 6, y_proba=[0.5, 1.5] * 6),
        r"y_proba must hold probabilities in \[0, 1\], got 1.5 in row 1",
    ),
}
BAD_WEIGHTS = {
    "negative weight": (put(-1, 2), "sample_weight must be finite and not negative.*row 2"),
    "NaN weight": (put(np.nan, 2), "sample_weight must be finite and not negative.*row 2"),
    "infinite weight": (put(np.inf, 2), "sample_weight must be finite and not negative.*row 2"),
    "zero weights": (np.zeros_like, "sample_weight must not be zero everywhere"),
    "masked weights": (
        lambda w: np.ma.array(w, mask=np.arange(len(w)) == 1),
        "^sample_weight must not be masked",
    ),
    "short weights": (lambda w: w[1:], r"sample_weight must have shape \(12,\)"),
    "scalar weight": (lambda w: 2.0, r"sample_weight must have shape \(12,\)"),
}


@pytest.mark.parametrize("case", CASES + RANDOM, ids=str)
@pytest.mark.parametrize("fault", BAD)
def test_bad_input(case, fault):
    arguments, message = BAD[fault]
    with pytest.raises((ValueError, TypeError), match=message):
        case(**arguments)


@pytest.mark.parametrize("case", [c for c in CASES + RANDOM if c.weighted], ids=str)
@pytest.mark.parametrize("fault", BAD_WEIGHTS)
def test_bad_weights(case, fault):
    change, message = BAD_WEIGHTS[fault]
    with pytest.raises(ValueError, match=message):
        case(**broken(), sample_weight=change(np.ones(12)))


BINNED = {c.function for c in CASES if "n_bins" in inspect.signature(c.function).parameters}


@pytest.mark.parametrize("function", sorted(BINNED, key=lambda f: f.__name__))
@pytest.mark.parametrize("n_bins", [0, -1, 2.5, "15", None])
def test_bad_number_of_bins(function, n_bins):
    with pytest.raises(ValueError, match="'n_bins' parameter"):
        function(**broken(), n_bins=n_bins)


@every_case
@pytest.mark.parametrize("value", [1.00001, -0.00001])
def test_rounding_is_tolerated(case, value):
    y, proba = make(6, n=12)
    proba[0] = [value, 1 - value, 0, 0] if value < 0 else [value, 0, 0, 0]
    y[0] = proba[0].argmax()  # wrong at probability 1 is an infinite log-loss
    for dtype in (np.float32, np.float64):
        for part in case(y, proba.astype(dtype)):
            assert not np.isinf(part).any()


WRONG_NAMES = {
    "other labels": list("wxyz"),
    "one label missing": ["ant", "bee", "cat", "emu"],
    "twice the same": ["ant", "bee", "cat", "cat"],
    "numbers": [1, 2, 3, 4],
    "mixed": ["ant", 1, 2, 3],
    "numbered in another order": ["p1", "p0", "p2", "p3"],
    "numbered from 1": ["p1", "p2", "p3", "p4"],
}


@every_case
@pytest.mark.parametrize("fault", WRONG_NAMES)
def test_other_names_of_columns_are_errors(case, fault):
    pd = pytest.importorskip("pandas")
    y, proba = make(2)
    names = np.array(["ant", "bee", "cat", "dog"])
    frame = pd.DataFrame(proba, columns=WRONG_NAMES[fault])
    for labels in (None, names):
        with pytest.raises(ValueError, match=r"^y_proba must have columns that are named by the"):
            case(names[y], frame, labels=labels)


@every_case
@pytest.mark.parametrize("names", [range(4), list("0123"), [f"class_{k}" for k in range(4)]])
def test_numbered_columns_are_positions(case, names):
    pd = pytest.importorskip("pandas")
    y, proba = make(2)
    animals = np.array(["ant", "bee", "cat", "dog"])
    frame = pd.DataFrame(proba, columns=names)
    assert_same(case(y, proba), case(y, frame), 0)
    assert_same(case(y, proba), case(animals[y], frame), 0)
    assert_same(case(y, proba), case(animals[y], frame, labels=animals), 0)


def documented_defaults(name):
    """Return the defaults that a docstring tells, or those of the functions it refers to."""
    doc = inspect.getdoc(getattr(skcalib.metrics, name))
    found = dict(re.findall(r"^(\w+) : .*default=(.+)$", doc, re.M))
    entries = re.findall(r"^(\w[\w, *]*)(?: : .*)?\n((?:    .+\n)+)", doc, re.M)
    referred = [
        (names, re.search(r"(?:[Aa]s for|see)\s+:func:`(\w+)`\.$", text, re.M))
        for names, text in entries
    ]
    for names, other in [(names, match[1]) for names, match in referred if match]:
        told = documented_defaults(other)
        wanted = [parameter.strip("* ") for parameter in names.split(",")]
        known = inspect.signature(getattr(skcalib.metrics, other)).parameters
        assert set(wanted) <= set(known), (name, other)
        found |= {parameter: told[parameter] for parameter in wanted if parameter in told}
    return found


@pytest.mark.parametrize("name", skcalib.metrics.__all__)
def test_defaults_are_those_of_the_docstring(name):
    documented = documented_defaults(name)
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(getattr(skcalib.metrics, name)).parameters.values()
        if parameter.default is not parameter.empty
    }
    assert documented.keys() == defaults.keys()
    for parameter, text in documented.items():
        default = defaults[parameter]
        assert text == default.__name__ if callable(default) else ast.literal_eval(text) == default


# There the number of samples matters, and each says how.
COUNTING = {
    "area_under_risk_coverage",
    "calibration_test",
    "debiased_calibration_error",
    "excess_area_under_risk_coverage",
    "groupwise_calibration_error",
    "isotonic_reliability_curve",
    "smooth_reliability_curve",
}


@pytest.mark.parametrize("parameter", ["y_true", "sample_weight", "labels", "pos_label"])
def test_shared_parameters_have_one_text(parameter):
    texts = {}
    for name in PREDICTION_METRICS:
        doc = inspect.getdoc(getattr(skcalib.metrics, name))
        found = re.search(rf"^{parameter} : (.+\n(?:    .+\n)+)", doc, re.M)
        # The first of them takes arrays in chunks as well, and tells what the others refer to.
        if found and name != "expected_calibration_error":
            texts.setdefault(found[1], []).append(name)
    if parameter == "sample_weight":
        texts = {text: names for text, names in texts.items() if not set(names) <= COUNTING}
    assert len(texts) <= 1, texts
