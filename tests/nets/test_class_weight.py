import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight
from torch import nn

from skcalib.losses import DifficultyAwareLoss, FocalLoss
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.nets._checks import weigh_classes

X, Y = make_classification(
    150, 5, n_informative=4, n_redundant=0, n_classes=3, weights=[0.7, 0.2], random_state=0
)
NAMES = np.array(["cat", "dog", "eel"])[Y]
CLASSES = np.array(["cat", "dog", "eel"])
WEIGHT = np.random.RandomState(0).randint(0, 4, len(Y)).astype(float)


def make_net(**params):
    options = {"max_epochs": 2, "lr": 0.05, "random_state": 0}
    return CalibratedNetClassifier(MLP, module__hidden_layer_sizes=(8,), **options | params)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_balanced_is_that_of_scikit_learn(weight):
    found = weigh_classes("balanced", NAMES, weight)
    of_class = compute_class_weight("balanced", classes=CLASSES, y=NAMES, sample_weight=weight)
    np.testing.assert_allclose(found, of_class[Y] * (1 if weight is None else weight))
    totals = np.bincount(Y, found)
    np.testing.assert_allclose(totals, totals[0])
    assert found.sum() == pytest.approx(len(Y) if weight is None else weight.sum())


def test_a_class_without_samples_takes_no_weight_from_the_others():
    no_cats = np.where(Y == 0, 0.0, 1.0)
    found = weigh_classes("balanced", NAMES, no_cats)
    expected = weigh_classes("balanced", NAMES[Y > 0], None)
    np.testing.assert_array_equal(found[Y > 0], expected)
    assert (found[Y == 0] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("criterion", [nn.CrossEntropyLoss, FocalLoss])
@pytest.mark.parametrize(
    ("class_weight", "of_class"),
    [({"dog": 3.0}, [1, 3, 1]), ({"cat": 0.5, "dog": 2, "eel": 0}, [0.5, 2, 0])],
)
def test_weights_by_label_multiply_those_of_the_samples(criterion, class_weight, of_class):
    net = make_net(criterion=criterion, class_weight=class_weight)
    plain = make_net(criterion=criterion)
    expected = plain.fit(X, NAMES, sample_weight=np.array(of_class)[Y] * WEIGHT)
    np.testing.assert_array_equal(
        net.fit(X, NAMES, sample_weight=WEIGHT).predict_proba(X), expected.predict_proba(X)
    )
    expected = plain.fit(X, NAMES, sample_weight=np.array(of_class)[Y])
    np.testing.assert_array_equal(net.fit(X, NAMES).predict_proba(X), expected.predict_proba(X))


@pytest.mark.slow
def test_in_a_full_batch_it_is_the_class_weight_of_torch():
    options = {"batch_size": -1, "optimizer": torch.optim.SGD, "lr": 0.5, "max_epochs": 20}
    net = make_net(class_weight={0: 1.0, 1: 2.0, 2: 5.0}, **options).fit(X, Y)
    of_torch = make_net(criterion__weight=torch.tensor([1.0, 2.0, 5.0]), **options).fit(X, Y)
    np.testing.assert_allclose(net.predict_proba(X), of_torch.predict_proba(X), atol=1e-5)


@pytest.mark.slow
def test_it_goes_the_way_that_logistic_regression_goes():
    class Linear(nn.Module):
        def __init__(self, n_features, n_classes):
            super().__init__()
            self.linear = nn.Linear(n_features, n_classes)

        def forward(self, X):
            return self.linear(X)

    options = {"batch_size": -1, "lr": 0.1, "max_epochs": 800, "random_state": 0}
    net = CalibratedNetClassifier(Linear, class_weight="balanced", **options).fit(X, NAMES)
    model = LogisticRegression(C=1e6, class_weight="balanced", max_iter=1000).fit(X, NAMES)
    np.testing.assert_allclose(net.predict_proba(X), model.predict_proba(X), atol=5e-3)


@pytest.mark.slow
def test_it_is_searched_and_goes_with_soft_targets_and_mixup():
    grid = {"class_weight": [None, "balanced", {"eel": 9.0}]}
    GridSearchCV(make_net(max_epochs=1), grid, cv=2, error_score="raise").fit(X, NAMES)
    proba = np.full((len(Y), 3), 1 / 3)
    net = make_net(class_weight="balanced", mixup_alpha=0.5, criterion=DifficultyAwareLoss)
    net.fit(X, NAMES, target_proba=proba, difficulty_weight=np.ones(len(Y)))
    assert np.isfinite(net.history_[:, "train_loss"]).all()


def test_partial_fit_takes_weights_by_label_alone():
    assert make_net(class_weight={"cat": 2.0}).partial_fit(X, NAMES).classes_.tolist() == [
        *CLASSES
    ]
    with pytest.raises(ValueError, match=r"^class_weight must be a dict or None in partial_fit"):
        make_net(class_weight="balanced").partial_fit(X, NAMES)
    make_net(class_weight="balanced", warm_start=True).fit(X, NAMES).fit(X, NAMES)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "The 'class_weight' parameter"),
        ({"fox": 2.0}, r"The classes, \['cat', 'dog', 'eel'\], are not in class_weight"),
        ({"cat": -1.0}, "class_weight must be finite and not negative, got -"),
        ({"cat": np.nan}, "class_weight must be finite"),
        (dict.fromkeys(CLASSES.tolist(), 0.0), "class_weight must not be zero everywhere"),
    ],
)
def test_bad_class_weights_are_told(class_weight, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_net(class_weight=class_weight).fit(X, NAMES)


def test_a_fold_may_lack_a_class_that_has_a_weight():
    few = Y < 2
    weights = {"cat": 1.0, "dog": 2.0, "eel": 3.0}
    found = weigh_classes(weights, NAMES[few], None)
    np.testing.assert_array_equal(found, 1.0 + Y[few])


def test_labels_that_a_dataset_does_not_show_are_needed():
    class Hidden(torch.utils.data.Dataset):
        def __len__(self):
            return len(X)

        def __getitem__(self, i):
            return X[i].astype(np.float32), Y[i]

    with pytest.raises(ValueError, match="class_weight must be None without y, got 'balanced'"):
        make_net(class_weight="balanced", classes=[0, 1, 2]).fit(Hidden(), None)
