"""Reports against scikit-learn's AUROC and average precision."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from skcalib.metrics import fpr_at_tpr, misclassification_report, ood_report


def detection(seed=0, n=400):
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 2, n)
    score = np.round(rng.normal(size=n) + own, 1)
    return own, score, rng.uniform(0.1, 2, n)


def by_score(table):
    """The measures of every score by its name."""
    names = table.dtype.names
    assert names[0] == "score"
    return {str(row["score"]): {name: float(row[name]) for name in names[1:]} for row in table}


def predictions(seed=0, n=400):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(5), n)
    return np.array([rng.choice(5, p=row) for row in proba]), proba, rng.uniform(0.1, 2, n)


def ood_by_score(*arguments, **options):
    return by_score(ood_report(*arguments, **options))


def misclassification_by_score(*arguments, **options):
    return by_score(misclassification_report(*arguments, **options))


def expected_measures(positive, score, weight, tpr):
    return [
        fpr_at_tpr(positive, score, tpr=tpr, sample_weight=weight),
        roc_auc_score(positive, score, sample_weight=weight),
        average_precision_score(positive, score, sample_weight=weight),
        average_precision_score(1 - positive, -score, sample_weight=weight),
    ]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tpr", [0.8, 0.95])
def test_ood_against_scikit_learn(weighted, tpr):
    own, score, weight = detection()
    weight = weight if weighted else None
    report = ood_by_score(own, {"a": score, "b": -score}, tpr=tpr, sample_weight=weight)
    for name, values in (("a", score), ("b", -score)):
        assert list(report[name]) == ["fpr_at_tpr", "auroc", "aupr_in", "aupr_out"]
        np.testing.assert_allclose(
            list(report[name].values()), expected_measures(own, values, weight, tpr), rtol=1e-12
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_misclassification_against_scikit_learn(weighted):
    y, proba, weight = predictions()
    weight = weight if weighted else None
    report = misclassification_by_score(y, proba, sample_weight=weight)
    correct = (proba.argmax(axis=1) == y).astype(int)
    ordered = np.sort(proba, axis=1)
    scores = {
        "msp": ordered[:, -1],
        "entropy": np.sum(proba * np.log(proba), axis=1),
        "margin": ordered[:, -1] - ordered[:, -2],
    }
    assert list(report) == list(scores)
    for name, score in scores.items():
        assert list(report[name]) == ["fpr_at_tpr", "auroc", "aupr_success", "aupr_error"]
        np.testing.assert_allclose(
            list(report[name].values()), expected_measures(correct, score, weight, 0.95)
        )


def test_scores_of_ones_own():
    y, proba, _ = predictions()
    own = {"noise": np.random.default_rng(1).random(len(y)), "msp": proba.max(axis=1)}
    report = misclassification_by_score(y, proba, confidence=own)
    assert list(report) == ["noise", "msp"]
    assert report["msp"] == misclassification_by_score(y, proba, confidence="msp")["msp"]


def test_frames():
    pandas = pytest.importorskip("pandas")
    own, score, _ = detection()
    frame = ood_report(own, {"a": score, "b": -score}, as_frame=True)
    assert isinstance(frame, pandas.DataFrame)
    found = frame.set_index("score").to_dict(orient="index")
    assert found == ood_by_score(own, {"a": score, "b": -score})
    y, proba, _ = predictions()
    frame = misclassification_report(y, proba, as_frame=True)
    found = frame.set_index("score").to_dict(orient="index")
    assert found == misclassification_by_score(y, proba)


def test_a_single_array_and_a_frame_of_scores():
    pandas = pytest.importorskip("pandas")
    own, score, _ = detection()
    expected = ood_by_score(own, {"score": score})
    assert ood_by_score(own, score) == expected
    assert ood_by_score(own, pandas.Series(score)) == expected
    frame = pandas.DataFrame({"score": score, "worse": -score})
    assert ood_by_score(own, frame) == ood_by_score(own, {"score": score, "worse": -score})
    y, proba, _ = predictions()
    frame = pandas.DataFrame({"msp": proba.max(axis=1)})
    assert misclassification_by_score(y, proba, confidence=frame) == misclassification_by_score(
        y, proba, confidence=["msp"]
    )


def test_labels_of_ones_own():
    own, score, _ = detection()
    expected = ood_by_score(own, score)
    assert ood_by_score(2 * own - 1, score) == expected
    names = np.where(own, "in", "out")
    assert ood_by_score(names, score, pos_label="in") == expected
    assert ood_by_score(names, score, labels=["out", "in"]) == expected
    y, proba, _ = predictions()
    animals = np.array(["ant", "bee", "cat", "dog", "eel"])
    assert misclassification_by_score(animals[y], proba) == misclassification_by_score(y, proba)


def test_weight_is_repetition():
    y, proba, _ = predictions()
    count = np.random.default_rng(2).integers(0, 3, len(y))
    weighted = misclassification_by_score(y, proba, sample_weight=count)
    repeated = misclassification_by_score(np.repeat(y, count), np.repeat(proba, count, axis=0))
    own, score, _ = detection()
    for left, right in (
        (weighted, repeated),
        (
            ood_by_score(own, score, sample_weight=count),
            ood_by_score(np.repeat(own, count), np.repeat(score, count)),
        ),
    ):
        for name in left:
            assert left[name] == pytest.approx(right[name], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1, 1], [1, 2]), {}, ValueError, "y_true must hold both classes"),
        (([0, 1], {"a": [1, np.nan]}), {}, ValueError, r"scores\['a'\] must not contain NaN"),
        (([0, 1], {"a": [1, 2, 3]}), {}, ValueError, r"y_true and scores\['a'\] must have"),
        (([0, 1], {"a": ["x", "y"]}), {}, TypeError, r"scores\['a'\] must hold real numbers"),
        (([0, 1], {}), {}, ValueError, "at least one score"),
        (([0, 1], [1, 2]), {"tpr": 2}, ValueError, "'tpr' parameter"),
        (([0, 1], [1, 2]), {"as_frame": "yes"}, ValueError, "'as_frame' parameter"),
    ],
)
def test_bad_input_of_the_ood_report(arguments, options, error, message):
    with pytest.raises(error, match=message):
        ood_report(*arguments, **options)


PROBA = [[0.9, 0.1], [0.8, 0.2]]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([0, 0], PROBA), {}, ValueError, "correct and wrong predictions, got only correct ones"),
        (([1, 1], PROBA), {}, ValueError, "correct and wrong predictions, got only wrong ones"),
        (([0, 1], PROBA), {"confidence": ["max"]}, ValueError, "confidence must be one of"),
        (([0, 1], PROBA), {"confidence": []}, ValueError, "at least one score"),
        (([0, 1], PROBA), {"confidence": [[1, 2]]}, TypeError, "of names, a dict.*got list"),
        (([0, 1], PROBA), {"confidence": None}, TypeError, "of names, a dict.*got NoneType"),
        (([0, 1], PROBA), {"confidence": 0}, TypeError, "of names, a dict.*got int"),
        (([0, 1], PROBA), {"confidence": np.ones(2)}, TypeError, "of names, a dict.*got ndarray"),
        (([0, 1], [[0.9, 0.2], [0.8, 0.2]]), {}, ValueError, "rows of y_proba must sum to 1"),
    ],
)
def test_bad_input_of_the_misclassification_report(arguments, options, error, message):
    with pytest.raises(error, match=message):
        misclassification_report(*arguments, **options)
