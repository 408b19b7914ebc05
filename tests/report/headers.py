"""Headers that tools write: names of columns of probabilities, and which class each is of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

# ruff: noqa: SIM905 - names stand closer together in one text

# Labels as files have them; of two that are yes and no, the second is the positive one.
TWO = [
    ("0", "1"),
    ("No", "Yes"),
    ("no", "yes"),
    ("False", "True"),
    ("FALSE", "TRUE"),
    ("neg", "pos"),
    ("-1", "1"),
]
TWO_OF_ANY = [("ham", "spam"), ("benign", "malignant"), ("not fraud", "fraud"), ("M", "B")]
SEVERAL = [
    ("0", "1", "2"),
    tuple(str(k) for k in range(12)),
    ("cat", "dog", "bird"),
    ("b", "c", "r"),
    ("New York", "Los Angeles", "Rome"),
    ("setosa", "versicolor", "virginica"),
    ("class_1", "class_2", "class_10"),
    ("Käse", "Brot", "Öl"),
    ("1.5", "2.5", "3.5"),
]
# How tools write the name of the probability of a class; the label column is called "churn".
FORMS = {
    "exact": "{}",
    "scikit-learn": "proba_{}",
    "pandas": "prob_{}",
    "short": "p_{}",
    "predicted": "pred_{}",
    "caret, mlr": "prob.{}",
    "tidymodels": ".pred_{}",
    "brackets": "P({})",
    "JMP": "Prob[{}]",
    "RapidMiner": "confidence({})",
    "CatBoost": "Probability:Class={}",
    "PyCaret": "prediction_score_{}",
    "y_proba": "y_proba_{}",
    "predict_proba": "predict_proba_{}",
    "H2O": "p{}",
}


class Header(NamedTuple):
    """One file: the labels, and the class of every column of probabilities."""

    form: str
    labels: tuple[str, ...]
    columns: dict[str, str]
    others: dict[str, object]


OTHERS: list[dict[str, object]] = [
    {},
    {"id": 17, "age": 40.5, "fold": 0},
    {"predicted": "x", "logit": -2.5, "note": "a, b"},
]


def of_all_classes() -> Iterator[Header]:
    """Yield files with a column for every class."""
    for number, (labels, (form, text)) in enumerate(
        product([*TWO, *TWO_OF_ANY, *SEVERAL], FORMS.items())
    ):
        columns = {text.format(label): label for label in labels}
        yield Header(form, labels, columns, OTHERS[number % len(OTHERS)])


def of_one_class() -> Iterator[Header]:
    """Yield files with one column: of the positive class, or called after either of two."""
    for labels, (form, text) in product([*TWO, *TWO_OF_ANY], FORMS.items()):
        for label in labels:
            yield Header(form, labels, {text.format(label): label}, {})


# Names of one column with the class that it means, "refused" where the name has no known form.
SINGLE: list[tuple[str, tuple[str, str], str]] = [
    *[
        (name, ("0", "1"), "1")
        for name in """score prob probability p proba y_proba y_prob y_score Prediction pred_proba
        p_hat yhat oof risk p1 proba_1 p_1 prob_1 P(1) .pred_1 1""".split()
    ],
    *[
        (name, ("0", "1"), "0")
        for name in """p0 proba_0 p_0 prob_0 .pred_0 P(0) y_proba_0 0 prob.0""".split()
    ],
    *[
        (name, ("0", "1"), "refused")
        for name in """model_0 fold0_prob run_0 seed0 p_not_fraud no_default_prob not_churn
        one_minus_p prob_0_1 P(no) prob_not_1 churn_probability 1-p_1 X1 prob_yes P(churn)
        confidence""".split()
    ],
    ("p_spam", ("ham", "spam"), "spam"),
    ("p_ham", ("ham", "spam"), "ham"),
    ("p_not_spam", ("ham", "spam"), "refused"),
    ("P(not fraud)", ("not fraud", "fraud"), "not fraud"),
    ("p_fraud", ("not fraud", "fraud"), "fraud"),
    ("score", ("ham", "spam"), "refused"),
    ("prob_1", ("ham", "spam"), "refused"),
    ("p_no", ("no", "yes"), "no"),
    ("p_yes", ("no", "yes"), "yes"),
    ("p_1", ("no", "yes"), "refused"),
    ("score", ("no", "yes"), "yes"),
    ("prob_n", ("n", "y"), "n"),
    ("p_False", ("False", "True"), "False"),
    ("p_0", ("False", "True"), "False"),
    ("p_-1", ("-1", "1"), "-1"),
    ("p_1", ("-1", "1"), "1"),
]
