"""scikit-learn's own estimator checks over every public estimator of the package.

An estimator that can be built without arguments and passes all checks needs no entry here. Others
have one entry in CASES.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import skcalib
from skcalib.difficulty import (
    DifficultyAwareClassifier,
    DifficultyProfiler,
    KMeansPrototypeScorer,
    LossScorer,
    NoveltyDetector,
    PredictionDepthScorer,
    RMDScorer,
)
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.posthoc import (
    GroupwiseCalibration,
    IsotonicCalibration,
    PostHocCalibratedClassifier,
    PostHocCalibrator,
    PriorShift,
    StackedCalibration,
)
from skcalib.selection import (
    DifficultySelector,
    MaxEntropySelector,
    SelectiveClassifier,
    SubsetClassifier,
)

PACKAGES = sorted(path.parent.name for path in Path(skcalib.__file__).parent.glob("*/__init__.py"))
if find_spec("skorch") is None:
    PACKAGES = [name for name in PACKAGES if name not in ("embeddings", "losses", "nets")]


class Case(NamedTuple):
    """How a class is checked: its instances, small ones, and the checks it cannot pass, and why.

    Every check fits the instances several times.
    """

    instances: Callable[[], list] | None = None
    failures: dict[str, str] = {}


def _settled_net():
    # Stops after a few epochs without a warning that the loss has not settled.
    return MLPClassifier((6,), tol=1e3, n_iter_no_change=3, random_state=0)


def _profilers():
    scorer = PredictionDepthScorer(_settled_net(), n_neighbors=2)
    return [DifficultyProfiler(scorer, n_repeats=2, test_size=0.5)]


def _layer_embedders():
    from torch import nn

    from skcalib.embeddings import LayerEmbedder

    any_width = nn.Sequential(nn.AdaptiveAvgPool1d(4), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    return [LayerEmbedder(any_width)]


def _nets():
    from torch.optim import Adam

    from skcalib.nets import MLP, CalibratedNetClassifier

    return [
        CalibratedNetClassifier(
            MLP, optimizer=Adam, lr=0.02, batch_size=32, max_epochs=20, train_split=None,
            module__hidden_layer_sizes=(32,), random_state=0,
        )
    ]  # fmt: skip


def _label_cleaners():
    return [
        LabelCleaningClassifier(
            LogisticRegression(), LabelIssueFinder(RMDScorer(), noise="random", n_refits=0)
        ),
        LabelCleaningClassifier(
            GaussianNB(), LabelIssueFinder(GaussianNB(), noise="random"), action="weight"
        ),
    ]


CASES = {
    "CalibratedNetClassifier": Case(
        _nets,
        {
            "check_no_attributes_set_in_init": "skorch keeps its state and module__* in "
            "attributes that its __init__ sets",
            "check_sample_weight_equivalence_on_dense_data": "float32 sums of weighted and of "
            "repeated rows differ in the last digits, and beyond one batch the rows fall into "
            "others",
            "check_sample_weight_equivalence_on_sparse_data": "as for dense data: float32 sums "
            "and other batches",
            "check_set_params": "skorch builds callbacks in set_params and raises there if they "
            "are none",
        },
    ),
    "DifficultyAwareClassifier": Case(
        lambda: [DifficultyAwareClassifier(LogisticRegression(), fit_param="sample_weight")]
    ),
    "DifficultyProfiler": Case(_profilers),
    "DifficultySelector": Case(
        lambda: [
            DifficultySelector(LossScorer(LogisticRegression())),
            DifficultySelector(KMeansPrototypeScorer(1, random_state=0), keep="hardest"),
        ]
    ),
    # A parameter of nets, with nothing to fit.
    "EpochPrioritizer": Case(list),
    "KMeansPrototypeScorer": Case(lambda: [KMeansPrototypeScorer(3, random_state=0)]),
    "LabelCleaningClassifier": Case(
        _label_cleaners,
        {
            "check_sample_weight_equivalence_on_dense_data": "the folds of the judges fall "
            "differently when rows are repeated",
        },
    ),
    "LayerEmbedder": Case(
        _layer_embedders,
        {
            "check_estimators_overwrite_params": "the joblib hash of a torch module depends on "
            "where its weights lie in memory: the clone that is compared never equals its original"
        },
    ),
    "LossScorer": Case(lambda: [LossScorer(LogisticRegression())]),
    "MaxEntropySelector": Case(lambda: [MaxEntropySelector(GaussianNB())]),
    # Its costs need a column for every class, of which the checks have two or three: they are in
    # tests/selection/test_minimum_cost.py.
    "MinimumCostClassifier": Case(list),
    # With folds, not exactly `contamination` of the training samples are outliers: their checks
    # are in tests/difficulty/test_novelty.py.
    "NoveltyDetector": Case(
        lambda: [NoveltyDetector(KMeansPrototypeScorer(1, random_state=0), cv=None)]
    ),
    # Their rows are images: tests/embeddings runs those of the checks that need no numbers.
    "OpenClipEmbedder": Case(list),
    "TimmEmbedder": Case(list),
    "PostHocCalibratedClassifier": Case(
        lambda: [
            PostHocCalibratedClassifier(LogisticRegression(), "temperature", cv=3),
            PostHocCalibratedClassifier(GaussianNB(), IsotonicCalibration(), cv=3),
            PostHocCalibratedClassifier(DecisionTreeClassifier(max_depth=3, random_state=0), cv=3),
        ],
    ),
    # The common map of a name that is "auto" is checked as StackedCalibration.
    "GroupwiseCalibration": Case(lambda: [GroupwiseCalibration("temperature")]),
    "PriorShift": Case(lambda: [PriorShift(training_priors="uniform")]),
    "StackedCalibration": Case(
        lambda: [StackedCalibration()],
        {
            "check_sample_weight_equivalence_on_dense_data": "a sample of weight 2 is in one "
            "fold, its two copies in two, so that a step may be taken a little further",
        },
    ),
    "PredictionDepthScorer": Case(
        lambda: [PredictionDepthScorer(_settled_net(), n_neighbors=3)],
        {
            "check_sample_weight_equivalence_on_dense_data": "weights go to the network alone, "
            "whose shuffled batches fall differently when rows are repeated",
        },
    ),
    "SelectiveClassifier": Case(
        lambda: [SelectiveClassifier(LogisticRegression(), risk=0.9, confidence_level=0.1, cv=2)]
    ),
    "SubsetClassifier": Case(
        lambda: [
            SubsetClassifier(LogisticRegression(), MaxEntropySelector(GaussianNB(), fraction=0.8)),
            SubsetClassifier(LogisticRegression(), DifficultySelector(RMDScorer(shrinkage=0.1))),
        ],
        {
            "check_sample_weight_equivalence_on_dense_data": "the fraction counts samples: one of "
            "weight 2 counts once, its two copies twice",
        },
    ),
}

# A penalty or prior fades with the number of samples, and the scale of weights says none.
PENALIZED = {
    "DirichletCalibration",
    "MatrixScaling",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
}
WEIGHTS_ARE_RATIOS = {
    "check_sample_weight_equivalence_on_dense_data": "only the ratios of weights matter, while "
    "the penalty fades with the number of rows",
}
REPEATED_ROWS_IN_SEVERAL_FOLDS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "repeated rows fall into several folds of "
    "the default calibrator"
    for kind in ("dense", "sparse")
}
# Post-hoc calibrators read one column a class; these checks give 2 columns and 3 classes.
MORE_CLASSES_THAN_COLUMNS = dict.fromkeys(
    [
        "check_classifiers_classes",
        "check_classifiers_train",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_readonly_memmap_input",
    ],
    "X of the check has two columns and y three classes: scores need a column for every class",
)


def _public(package):
    module = import_module(f"skcalib.{package}")
    return [getattr(module, name) for name in module.__all__]


def _estimator_classes():
    classes = {
        value
        for package in PACKAGES
        for value in _public(package)
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    }
    concrete = (cls for cls in classes if not inspect.isabstract(cls))
    return sorted(concrete, key=lambda cls: cls.__name__)


def _instances():
    for cls in _estimator_classes():
        case = CASES.get(cls.__name__, Case())
        yield from [cls()] if case.instances is None else case.instances()


def _failures(estimator):
    known = MORE_CLASSES_THAN_COLUMNS if isinstance(estimator, PostHocCalibrator) else {}
    if type(estimator).__name__ in PENALIZED:
        known = {**known, **WEIGHTS_ARE_RATIOS}
    if getattr(estimator, "calibrator", None) == "auto":
        known = {**known, **REPEATED_ROWS_IN_SEVERAL_FOLDS}
    return {**known, **CASES.get(type(estimator).__name__, Case()).failures}


# The checks fit on noise and on separable samples, and features stand where scores should.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The columns of X seem:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:X is far below chance:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:X seems to belong to rows:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:The temperature is at its:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:The depth is undefined:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:No threshold keeps:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:The samples are too few:skcalib.utils.SkcalibWarning")
# A check of scikit-learn 1.7 has a class of four samples, and there are five folds.
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")
@pytest.mark.filterwarnings("ignore:That ..% of the labels:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:The features hardly predict:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore:The scores separate the:skcalib.utils.SkcalibWarning")
@parametrize_with_checks(list(_instances()), expected_failed_checks=_failures)
def test_estimator(estimator, check):
    check(estimator)


def _count_calls(function, *args, stop_at=None):
    """Return how many functions of the package a call enters; KeyboardInterrupt in `stop_at`."""
    place, n_calls = str(Path(skcalib.__file__).parent), 0

    def count(frame, event, argument):
        nonlocal n_calls
        # A generator is entered a last time when it is thrown away, where no exception gets out.
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if not generator and frame.f_code.co_filename.startswith(place):
            n_calls += 1
            if n_calls == stop_at:
                raise KeyboardInterrupt

    # How many calls a network needs can follow its random numbers: the same in every count.
    np.random.seed(0)  # noqa: NPY002
    sys.settrace(count)
    try:
        function(*args)
    finally:
        sys.settrace(None)
    return n_calls


# A net that is interrupted keeps what it has learned by then, as in skorch.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize(
    "estimator",
    [e for e in _instances() if type(e).__name__ != "CalibratedNetClassifier"],
    ids=lambda estimator: type(estimator).__name__,
)
def test_an_interrupted_fit_leaves_an_estimator_as_it_was(estimator):
    X, y = make_blobs(60, n_features=3, centers=3, cluster_std=4, random_state=0)
    fitted = estimator.fit(X, y)
    # Counted in the second fit: the first one imports what it needs.
    n_calls = _count_calls(clone(estimator).fit, X[::2], y[::2])
    before = vars(fitted).copy()
    with pytest.raises(KeyboardInterrupt):
        _count_calls(fitted.fit, X[::2], y[::2], stop_at=n_calls)
    assert vars(fitted).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(fitted).items())


def _documented_defaults():
    """Yield public callables with the names and the defaults that their docstrings tell."""
    for package in PACKAGES:
        for value in filter(callable, _public(package)):
            doc = inspect.getdoc(value) or ""
            defaults = dict(re.findall(r"^(\w+) : .*?\bdefault=(.+)$", doc, flags=re.MULTILINE))
            if defaults:
                yield pytest.param(value, defaults, id=f"{package}.{value.__name__}")


@pytest.mark.parametrize(("value", "documented"), list(_documented_defaults()))
def test_documented_defaults_are_those_of_the_signature(value, documented):
    for name, parameter in inspect.signature(value).parameters.items():
        try:
            expected = ast.literal_eval(documented.get(name, "..."))
        except ValueError:  # a function or a class, told by its name
            continue
        assert expected is ... or parameter.default == expected, name


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_case_is_an_estimator_and_its_failures_have_a_reason(name):
    if find_spec("skorch") is not None:  # without it, some of them cannot be imported
        assert name in [cls.__name__ for cls in _estimator_classes()]
    assert all(len(reason.split()) > 4 for reason in CASES[name].failures.values())
