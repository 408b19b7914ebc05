"""Laws of all calibrators: weights, labels, forms of the scores, feature names, bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone

from skcalib import posthoc
from skcalib.posthoc import (
    DirichletCalibration,
    MatrixScaling,
    PostHocCalibrator,
    TemperatureScaling,
)
from skcalib.utils import SkcalibWarning

from ._sample import sample


class BalancedPriorShift(posthoc.PriorShift):
    """Of a model trained on balanced classes, which PriorShift has to know."""

    def __init__(self, *, input="logits", classes=None):
        super().__init__(training_priors="uniform", input=input, classes=classes)


CALIBRATORS = sorted(
    (
        BalancedPriorShift if value is posthoc.PriorShift else value
        for value in map(posthoc.__dict__.get, posthoc.__all__)
        if isinstance(value, type)
        and issubclass(value, PostHocCalibrator)
        and value is not PostHocCalibrator
    ),
    key=lambda c: c.__name__,
)
# Their penalties and priors fade with the number of samples.
PENALIZED = (
    posthoc.DirichletCalibration,
    posthoc.EnsembleTemperatureScaling,
    posthoc.MatrixScaling,
    posthoc.StructuredMatrixScaling,
    posthoc.StructuredVectorScaling,
)
# Folds follow from the samples and the order of the classes.
FOLDED = posthoc.StackedCalibration, posthoc.GroupwiseCalibration
every = pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda c: c.__name__)
# What depends on the precision of a solver, not on a closed form.
RTOL = 1e-5


@every
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("form", ["logits", "proba"])
def test_rows_are_distributions_of_the_right_dtype(calibrator, k, form):
    logits, y = sample(k=k, n=400)
    scores = logits if form == "logits" else softmax(logits, axis=1)
    proba = calibrator(input=form).fit(scores, y).predict_proba(scores)
    assert proba.shape == (400, k)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


@every
def test_logits_and_their_softmax_agree(calibrator):
    logits, y = sample(n=400)
    proba = softmax(logits, axis=1)
    from_proba = calibrator(input="proba").fit(proba, y).predict_proba(proba)
    if calibrator is posthoc.MatrixScaling:
        # A shift of the row is no longer lost when a matrix mixes the columns.
        logits = np.log(proba)
    from_logits = calibrator().fit(logits, y).predict_proba(logits)
    if calibrator is posthoc.VectorScaling:
        from_logits = calibrator().fit(np.log(proba), y).predict_proba(np.log(proba))
    np.testing.assert_allclose(from_logits, from_proba, rtol=RTOL, atol=1e-7)


@every
@pytest.mark.parametrize("k", [2, 3])
def test_weight_is_repetition_and_zero_weight_is_removal(calibrator, k):
    if calibrator in FOLDED:
        pytest.skip("repeated samples fall into several folds")
    logits, y = sample(n=300, k=k)
    # Penalties and priors fade with the number of samples, which weights do not change.
    most = 2 if calibrator in PENALIZED else 4
    weight = np.random.default_rng(1).integers(0, most, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    weighted = calibrator().fit(logits, y, sample_weight=weight)
    expected = calibrator().fit(logits[repeated], y[repeated])
    np.testing.assert_allclose(
        weighted.predict_proba(logits), expected.predict_proba(logits), rtol=RTOL, atol=1e-7
    )


@every
def test_scale_of_the_weights_does_not_matter(calibrator):
    logits, y = sample(n=300)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    one, other = (
        calibrator().fit(logits, y, sample_weight=scale * weight).predict_proba(logits)
        for scale in (1, 1000)
    )
    np.testing.assert_allclose(one, other, rtol=RTOL, atol=1e-7)


@every
def test_order_of_rows_and_of_classes_does_not_matter(calibrator):
    logits, y = sample(n=300)
    rng = np.random.default_rng(2)
    rows, columns = rng.permutation(300), rng.permutation(4)
    expected = calibrator().fit(logits, y).predict_proba(logits)
    shuffled = calibrator().fit(logits[rows], y[rows]).predict_proba(logits)
    permuted = calibrator(classes=columns).fit(logits[:, columns], y)
    permuted = permuted.predict_proba(logits[:, columns])[:, np.argsort(columns)]
    np.testing.assert_allclose(shuffled, expected, rtol=RTOL, atol=1e-7)
    if calibrator in FOLDED:
        # Other folds, other weights: near by.
        assert np.abs(permuted - expected).mean() < 0.03
    else:
        np.testing.assert_allclose(permuted, expected, rtol=RTOL, atol=1e-7)


@every
def test_string_labels_are_integers(calibrator):
    logits, y = sample(n=300)
    names = np.array(["ant", "bee", "cat", "dog"])
    integers = calibrator().fit(logits, y)
    strings = calibrator().fit(logits, names[y])
    np.testing.assert_array_equal(strings.predict_proba(logits), integers.predict_proba(logits))
    np.testing.assert_array_equal(strings.predict(logits), names[integers.predict(logits)])
    np.testing.assert_array_equal(strings.classes_, names)


@every
@pytest.mark.filterwarnings("ignore:y has no sample of class")
def test_a_class_without_rows(calibrator):
    logits, y = sample(n=300)
    y = np.where(y == 3, 0, y)
    names = np.array(["ant", "bee", "cat", "dog"])
    integers = calibrator().fit(logits, y)
    named = calibrator(classes=names).fit(logits, names[y])
    np.testing.assert_array_equal(named.predict_proba(logits), integers.predict_proba(logits))
    assert integers.predict_proba(logits).shape == (300, 4)
    with pytest.raises(ValueError, match="4 classes in X and 3 classes in y"):
        calibrator().fit(logits, names[y])


@every
@pytest.mark.parametrize("form", ["logits", "proba"])
def test_the_second_class_alone(calibrator, form):
    logits, y = sample(n=300, k=2)
    logit = logits[:, 1] - logits[:, 0]
    alone = logit if form == "logits" else expit(logit)
    both = np.column_stack([np.zeros(300), logit] if form == "logits" else [1 - alone, alone])
    expected = calibrator(input=form).fit(both, y).predict_proba(both)
    vector = calibrator(input=form).fit(alone, y)
    np.testing.assert_allclose(vector.predict_proba(alone), expected, rtol=RTOL, atol=1e-9)
    np.testing.assert_array_equal(
        vector.predict_proba(alone[:, None]), vector.predict_proba(alone)
    )


@every
def test_float32(calibrator):
    logits, y = sample(n=300)
    narrow = logits.astype(np.float32)
    expected = calibrator().fit(narrow.astype(np.float64), y).predict_proba(narrow)
    np.testing.assert_allclose(
        calibrator().fit(narrow, y).predict_proba(narrow), expected, rtol=1e-4, atol=1e-6
    )


@every
def test_frames_pickling_and_cloning(calibrator):
    pandas = pytest.importorskip("pandas")
    logits, y = sample(n=300)
    names = np.array(["ant", "bee", "cat", "dog"])
    frame = pandas.DataFrame(logits, columns=names)
    fitted = calibrator().fit(frame, pandas.Series(names[y])).set_output(transform="pandas")
    out = fitted.transform(frame)
    assert list(out.columns) == [f"proba_{name}" for name in names]
    np.testing.assert_array_equal(out, fitted.predict_proba(frame))
    np.testing.assert_array_equal(fitted.feature_names_in_, names)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(frame), out)
    assert not hasattr(clone(fitted), "classes_")


BAD = {
    "NaN": (lambda x, y: (np.where(x > 3, np.nan, x), y), {}, "X contains NaN"),
    "rows": (lambda x, y: (x, y[1:]), {}, "must have the same number of samples"),
    "columns": (lambda x, y: (x[:, :3], y), {}, "3 classes in X and 4 classes in y"),
    "NaN label": (lambda x, y: (x, np.where(y == 1, np.nan, y)), {}, "y contains NaN"),
    "fractions": (lambda x, y: (x, y + 0.5), {}, "continuous"),
    "form": (lambda x, y: (x, y), {"input": "margins"}, "'input' parameter"),
    "no form": (lambda x, y: (x, y), {"input": None}, "'input' parameter"),
    "not proba": (
        lambda x, y: (x, y),
        {"input": "proba"},
        r"X must hold probabilities in \[0, 1\]",
    ),
    "row sum": (lambda x, y: (expit(x), y), {"input": "proba"}, "rows of X must sum to 1"),
    "classes": (lambda x, y: (x, y), {"classes": [0, 1, 2]}, "classes must hold 4 distinct"),
    "twice": (lambda x, y: (x, y), {"classes": [0, 1, 2, 2]}, "classes must hold 4 distinct"),
    "unknown": (
        lambda x, y: (x, y),
        {"classes": [0, 1, 2, 9]},
        r"y must hold labels among \[0, 1, 2, 9\], got 3",
    ),
}


@every
@pytest.mark.parametrize("fault", BAD)
def test_bad_input(calibrator, fault):
    change, params, message = BAD[fault]
    with pytest.raises(ValueError, match=message):
        calibrator(**params).fit(*change(*sample(n=60)))


@every
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(60), "sample_weight must not be zero everywhere"),
        (-np.ones(60), "sample_weight must be finite and not negative"),
        (np.ones(59), r"sample_weight must have shape \(60,\)"),
    ],
)
def test_bad_weights(calibrator, weight, message):
    with pytest.raises(ValueError, match=message):
        calibrator().fit(*sample(n=60), sample_weight=weight)


@every
def test_new_scores_are_checked_as_those_of_fit(calibrator):
    logits, y = sample(n=60)
    fitted = calibrator(input="proba").fit(softmax(logits, axis=1), y)
    with pytest.raises(ValueError, match=r"X must hold probabilities in \[0, 1\]"):
        fitted.predict_proba(logits)
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.predict_proba(np.full((2, 3), 1 / 3))


@every
def test_probabilities_posing_as_logits_are_a_warning(calibrator):
    logits, y = sample(n=60)
    proba = softmax(logits, axis=1)
    with pytest.warns(SkcalibWarning, match=r'X holds probabilities.*\(input="proba"\)'):
        calibrator().fit(proba, y)
    with pytest.warns(SkcalibWarning, match="X holds probabilities"):
        calibrator().fit(np.float32(proba), y)


@every
@pytest.mark.parametrize("change", [lambda p: p + 0.1, lambda p: np.log(p), lambda p: p[:, :3]])
def test_other_scores_are_not(calibrator, change):
    logits, y = sample(n=60)
    scores = change(softmax(logits, axis=1))
    rows = y < scores.shape[1]
    calibrator().fit(scores[rows], y[rows])


@every
@pytest.mark.parametrize("scale", [1e308, 1e-300])
def test_huge_and_tiny_weights_are_their_ratios(calibrator, scale):
    logits, y = sample(n=300)
    proba = calibrator().fit(logits, y).predict_proba(logits)
    weighted = calibrator().fit(logits, y, sample_weight=np.full(300, scale))
    np.testing.assert_allclose(weighted.predict_proba(logits), proba, rtol=RTOL, atol=1e-7)


@every
@pytest.mark.parametrize("unit", ["datetime64[s]", "timedelta64[s]"])
@pytest.mark.parametrize("as_frame", [False, True])
def test_dates_and_durations_are_no_scores(calibrator, unit, as_frame):
    logits, y = sample(n=60)
    dates = np.round(100 * logits).astype(int).astype(unit)
    wrong = pd.DataFrame(dates).add_prefix("c") if as_frame else dates
    with pytest.raises(TypeError, match="X must hold numbers, got dtype"):
        calibrator().fit(wrong, y)
    fitted = calibrator().fit(logits, y)
    with pytest.raises(TypeError, match="X must hold numbers, got dtype"):
        fitted.predict_proba(dates)


@every
def test_masked_input_is_refused(calibrator):
    logits, y = sample(n=60)
    mask = np.arange(60) == 3
    masked = np.ma.array(logits, mask=np.tile(mask[:, None], 4))
    with pytest.raises(ValueError, match="X must not be masked"):
        calibrator().fit(masked, y)
    with pytest.raises(ValueError, match="y must not be masked"):
        calibrator().fit(logits, np.ma.array(y, mask=mask))
    with pytest.raises(ValueError, match="sample_weight must not be masked"):
        calibrator().fit(logits, y, sample_weight=np.ma.array(np.ones(60), mask=mask))
    with pytest.raises(ValueError, match="X must not be masked"):
        calibrator().fit(logits, y).predict_proba(masked)


@every
def test_tensors_are_read(calibrator):
    torch = pytest.importorskip("torch")
    logits, y = sample(n=60)
    expected = calibrator().fit(logits, y).predict_proba(logits)
    tensor = torch.tensor(logits, requires_grad=True)
    fitted = calibrator().fit(tensor, torch.tensor(y))
    np.testing.assert_array_equal(fitted.predict_proba(tensor), expected)
    coarse = tensor.bfloat16()
    np.testing.assert_array_equal(
        calibrator().fit(coarse, y).predict_proba(coarse),
        calibrator().fit(coarse.detach().float().numpy(), y).predict_proba(coarse),
    )


@every
def test_several_labels_a_sample_are_calibrated_one_by_one(calibrator):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 3))
    y = (rng.random((200, 3)) < expit(logits)).astype(int)
    with pytest.raises(
        ValueError, match=r"^(The rows of )?y must .* fit one calibrator per label"
    ):
        calibrator().fit(logits, y)
    for j in range(3):
        proba = calibrator().fit(logits[:, j], y[:, j]).predict_proba(logits[:, j])
        assert proba.shape == (200, 2)


@every
@pytest.mark.parametrize("label", [0, 1, "a"])
def test_a_single_class_is_refused(calibrator, label):
    with pytest.raises(ValueError, match="y must hold at least two classes, got one class"):
        calibrator().fit([[1.0, 2.0], [2.0, 1.0]], [label, label])


@every
def test_labels_of_mixed_type_are_refused(calibrator):
    with pytest.raises(ValueError, match="y must hold labels of one type, got int, str"):
        calibrator().fit([[1.0, 2.0], [2.0, 1.0], [0.5, 3.0]], [0, "a", "a"])


def test_the_base_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        PostHocCalibrator()


@pytest.mark.parametrize("name", ["MatrixScaling", "DirichletCalibration"])
@pytest.mark.parametrize(
    "penalty", ["diagonal_penalty", "off_diagonal_penalty", "intercept_penalty"]
)
def test_bad_penalties(name, penalty):
    with pytest.raises(ValueError, match=f"'{penalty}' parameter"):
        getattr(posthoc, name)(**{penalty: -1}).fit(*sample(n=60))


def test_columns_are_classes_by_position_and_their_order_is_looked_at():
    scores, codes = sample(n=100, k=3)
    logits, y = pd.DataFrame(scores, columns=list("abc")), np.array(list("abc"))[codes]
    moved = logits[list("cab")]
    expected = TemperatureScaling().fit(logits, y).predict_proba(logits)
    sentence = r"were those of \['c', 'a', 'b'\]. If so, pass classes="
    with pytest.warns(SkcalibWarning, match=sentence):
        posthoc.IsotonicCalibration().fit(moved, y)
    found = TemperatureScaling(classes=list("cab")).fit(moved, y).predict_proba(moved)
    np.testing.assert_allclose(found[:, [1, 2, 0]], expected)


@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
@pytest.mark.parametrize("calibrator", [MatrixScaling, DirichletCalibration])
def test_logits_beyond_what_can_be_squared_are_named(calibrator):
    y = np.tile([0, 1, 2], 10)
    logits = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=r"X must hold logits of at most 1e\+15"):
        calibrator().fit(logits * 1e300, y)


@pytest.mark.parametrize("form", ["logits", "proba"])
@pytest.mark.parametrize("calibrator", [TemperatureScaling, posthoc.StackedCalibration])
def test_a_class_that_should_have_come_is_named(calibrator, form):
    rng = np.random.default_rng(0)
    frequency = np.array([0.25, 0.5, 0.25])
    y = rng.choice(3, 400, p=frequency)
    proba = softmax(np.log(frequency) + 1.5 * np.eye(3)[y] + rng.normal(size=(400, 3)), axis=1)
    seen = y < 2
    scores = np.log(proba) if form == "logits" else proba
    names = np.array(["a", "b", "c"])
    with pytest.warns(
        SkcalibWarning, match=r"y has no sample of class \['c'\], of which X"
    ) as caught:
        calibrator(input=form, classes=names).fit(scores[seen], names[y[seen]])
    assert f"{proba[seen, 2].sum():.3g} among {seen.sum()} samples" in str(caught[0].message)
    # All classes, and a rare one that need not come: no warning.
    calibrator(input=form, classes=names).fit(scores, names[y])
    rare = np.column_stack(
        [proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True) * 0.999, np.full(400, 1e-3)]
    )
    rare = np.log(rare) if form == "logits" else rare
    calibrator(input=form, classes=names).fit(rare[seen], names[y[seen]])


@pytest.mark.slow
def test_calibrated_samples_seldom_warn_of_a_rare_class():
    rng = np.random.default_rng(0)
    warned = 0
    for _ in range(200):
        rate = rng.uniform(0.001, 0.03)
        proba = rng.beta(2, 2 / rate - 2, 150)
        y = (rng.random(150) < proba).astype(int)
        if y.any():
            continue
        proba = np.column_stack([1 - proba, proba])
        proba = np.column_stack([proba[:, :1] * 0.4, proba[:, :1] * 0.6, proba[:, 1:]])
        others = (rng.random(150) < 0.6).astype(int)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            TemperatureScaling(input="proba").fit(proba, others)
        warned += any("y has no sample" in str(entry.message) for entry in caught)
    assert warned <= 2
