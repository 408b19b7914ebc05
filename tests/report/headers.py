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
    "dotted": "p.{}",
    "caret, mlr": "prob.{}",
    "tidymodels": ".pred_{}",
    "make.names": "X{}",
    "suffix": "{}_prob",
    "suffix of R": "{}.prob",
    "words": "Probability of {}",
    "brackets": "P({})",
    "JMP": "Prob[{}]",
    "Stata": "Pr({})",
    "KNIME": "P (churn={})",
    "RapidMiner": "confidence({})",
    "SAS": "P_churn{}",
    "CatBoost": "Probability:Class={}",
    "Azure": 'Scored Probabilities for Class "{}"',
    "DataRobot": "churn_{}_PREDICTION",
    "Vertex": "churn_{}_score",
    "Dataiku": "proba_{}",
    "PyCaret": "prediction_score_{}",
    "y_proba": "y_proba_{}",
    "predict_proba": "predict_proba_{}",
    "given x": "P(y={}|x)",
    "class": "class_{}",
    "softmax": "softmax_{}",
    "SPSS": "$XP-{}",
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


# Names of one column with the class that it means, "refused" where nobody can tell.
SINGLE: list[tuple[str, tuple[str, str], str]] = [
    *[
        (name, ("0", "1"), "1")
        for name in """score prob probability p proba y_proba y_prob y_score Prediction pred_proba
        Scored_Probabilities churn_probability fraud_score risk p1 prob1 proba_1 p_1 prob_yes
        prob_true P(yes) positive prob_pos p_positive model_1 probability_v1 predicted_risk
        P(churn) churn_score prob_churn Pr(churn) probability.of.churn .pred_1 X1 1""".split()
    ],
    *[
        (name, ("0", "1"), "0")
        for name in """p0 prob0 proba_0 p_0 prob_no prob_false P(no) negative prob_neg p_negative
        .pred_0 X0 P(0) P(y=0) y_proba_0 prob_not_1 not_1 p_false class_0 0 churn_0 1-p_1 1-p
        P(churn=0) probNo prob0.0""".split()
    ],
    *[
        (name, ("0", "1"), "refused")
        for name in """model_0 fold0_prob run_0 seed0 p_not_fraud no_default_prob not_churn
        one_minus_p prob_0_1""".split()
    ],
    ("p_spam", ("ham", "spam"), "spam"),
    ("p_ham", ("ham", "spam"), "ham"),
    ("p_not_spam", ("ham", "spam"), "ham"),
    ("P(not fraud)", ("not fraud", "fraud"), "not fraud"),
    ("fraud_probability", ("not fraud", "fraud"), "fraud"),
    ("score", ("ham", "spam"), "refused"),
    ("prob_1", ("ham", "spam"), "refused"),
    ("p_no", ("no", "yes"), "no"),
    ("p_yes", ("no", "yes"), "yes"),
    ("p_0", ("no", "yes"), "no"),
    ("p_1", ("no", "yes"), "yes"),
    ("score", ("no", "yes"), "yes"),
    ("prob_n", ("n", "y"), "n"),
    ("y_prob", ("n", "y"), "y"),
    ("p_False", ("False", "True"), "False"),
    ("p_0", ("False", "True"), "False"),
    ("p_-1", ("-1", "1"), "-1"),
    ("p_1", ("-1", "1"), "1"),
]
