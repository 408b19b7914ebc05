import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer

# Networks of these tests are trained for a few epochs or not at all.
pytestmark = pytest.mark.filterwarnings("ignore:The depth is undefined")


def planted():
    """Two clusters; some samples mislabeled; a group in the middle with random labels."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    X = rng.normal(size=(160, 8))
    X[:, 0] += np.where(y == 1, 3, -3)
    y[:8] = 1 - y[:8]
    middle = rng.normal(size=(40, 8))
    middle[:, 0] *= 0.3
    group = np.repeat(["mislabeled", "easy", "ambiguous"], [8, 152, 40])
    return np.concatenate([X, middle]), np.concatenate([y, rng.integers(0, 2, 40)]), group


@pytest.fixture(scope="module")
def study():
    X, y, group = planted()
    net = MLPClassifier((32, 32, 32), learning_rate_init=0.01, max_iter=100, batch_size=32)
    profiler = DifficultyProfiler(
        PredictionDepthScorer(net, n_neighbors=5),
        n_repeats=8,
        test_size=0.25,
        random_state=0,
        threshold=0.5,
        keep_proba=True,
    )
    return profiler.fit(X, y), y, group


@pytest.mark.slow
def test_planted_groups_land_in_their_corners(study):
    profiler, _, group = study
    table = pd.DataFrame(profiler.profile_).groupby(group)
    assert (table["difficulty_type"].agg(lambda s: s.mode()[0])[["easy", "mislabeled"]] == [
        "easy", "looks_like_other_class"
    ]).all()  # fmt: skip
    held_out, trained = table["depth_held_out"].mean(), table["depth_trained"].mean()
    assert held_out["easy"] < 0.5 > trained["easy"]
    assert held_out["mislabeled"] < 0.5 < trained["mislabeled"]
    assert held_out["ambiguous"] > 0.5 < trained["ambiguous"]
    learned = table["iteration_learned_trained"].mean()
    assert learned["easy"] < learned["ambiguous"] < learned["mislabeled"]
    consistency = table["consistency"].mean()
    assert consistency["easy"] > 0.9 > 0.1 > consistency["mislabeled"]
    assert table["consensus_consistency"].mean()["mislabeled"] > 0.9


@pytest.mark.slow
def test_profile_equals_loops_over_the_repeats(study):
    profiler, y, _ = study
    profile = profiler.profile_
    for i in range(len(y)):
        out = np.flatnonzero(profiler.held_out_[:, i])
        votes = profiler.predictions_[out, i]
        assert profile["n_held_out"][i] == len(out) == 2
        assert profile["consistency"][i] == np.mean(votes == y[i])
        assert profile["consensus_class"][i] in votes
        for name, repeats in (("held_out", out), ("trained", np.setdiff1d(range(8), out))):
            for column, values in (
                ("depth", profiler.depth_),
                ("iteration_learned", profiler.iteration_learned_),
            ):
                known = [v for v in values[repeats, i] if not np.isnan(v)]
                expected = np.mean(known) if known else np.nan
                np.testing.assert_allclose(profile[f"{column}_{name}"][i], expected)


def small(**options):
    net = MLPClassifier((6,), max_iter=8)
    scorer = PredictionDepthScorer(net, n_neighbors=3)
    return DifficultyProfiler(
        scorer, **{"n_repeats": 5, "test_size": 0.25, "random_state": 0, **options}
    )


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(40, centers=3, cluster_std=3.0, random_state=0)


def assert_same(one, other):
    pd.testing.assert_frame_equal(pd.DataFrame(one.profile_), pd.DataFrame(other.profile_))
    np.testing.assert_array_equal(one.predictions_, other.predictions_)
    np.testing.assert_array_equal(one.depth_, other.depth_)


@pytest.mark.slow
def test_jobs_do_not_change_the_profile(blobs):
    import joblib

    with joblib.parallel_backend("threading"):
        assert_same(small(n_jobs=2).fit(*blobs), small().fit(*blobs))


@pytest.mark.slow
def test_repeats_differ_and_seeds_repeat(blobs):
    first, second = small().fit(*blobs), small().fit(*blobs)
    assert_same(first, second)
    assert not (first.predictions_[0] == first.predictions_[1]).all()


@pytest.mark.slow
def test_classifier_pipeline_frame_and_text_labels(blobs):
    X, y = blobs
    names = np.array(["ant", "bee", "cat"], dtype=object)
    frame = pd.DataFrame(X, columns=["a", "b"])
    net = make_pipeline(StandardScaler(), make_pipeline(MLPClassifier((4,), max_iter=5)))
    scorer = PredictionDepthScorer(net, n_neighbors=3, exclude_self=True)
    profiler = DifficultyProfiler(scorer, n_repeats=2, test_size=20, random_state=0)
    profile = profiler.fit(frame, names[y]).profile_
    assert profiler.feature_names_in_.tolist() == ["a", "b"]
    assert np.isin(profile["consensus_class"], names.astype(str)).all()
    assert (profile["n_held_out"] == 1).all()
    bare = DifficultyProfiler(net[-1][-1], n_repeats=2, test_size=0.2, random_state=0)
    with pytest.raises(ValueError, match="n_repeats must be at least 5 with"):
        bare.fit(X, y)


@pytest.mark.slow
def test_a_group_is_held_out_whole_or_not_at_all(blobs):
    X, y = blobs
    groups = np.array(["a", "b", "c", "d", "e"])[np.arange(len(y)) // 3 % 5]
    profiler = small(n_repeats=5, test_size=2).fit(X, y, groups=groups)
    for group in np.unique(groups):
        held_out = profiler.held_out_[:, groups == group]
        assert (held_out == held_out[:, :1]).all()
        assert held_out[:, 0].sum() == 2
    with pytest.raises(ValueError, match=r"test_size must leave samples .* with n_groups=5\."):
        small(test_size=5).fit(X, y, groups=groups)


@pytest.mark.slow
def test_default_probes_and_unobserved_epochs(blobs):
    X, y = blobs
    net = MLPClassifier((4,), early_stopping=True, tol=1e9, n_iter_no_change=2)
    profile = DifficultyProfiler(net, n_repeats=10, random_state=0).fit(X, y).profile_
    assert np.isnan(profile["iteration_learned_trained"]).all()
    assert not np.isnan(profile["depth_trained"]).all()


@pytest.mark.slow
def test_sample_weight_reaches_the_networks(blobs):
    X, y = blobs
    weight = np.where(y == 0, 0.0, 1.0)
    profiler = small()
    profiler.estimator.estimator.set_params(max_iter=60, learning_rate_init=0.05)
    profiler.fit(X, y, sample_weight=weight)
    assert not (profiler.predictions_ == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("as_frame", [False, True])
def test_profile_is_an_array_or_a_frame_with_the_index_of_the_samples(blobs, as_frame):
    X, y = blobs
    index = pd.Index([f"image {i}" for i in range(len(y))])
    frame = pd.DataFrame(X, columns=["a", "b"], index=index)
    expected = small().fit(X, y).profile_
    profile = small(as_frame=as_frame).fit(frame, y).profile_
    if as_frame:
        assert profile.index.equals(index)
        assert small(as_frame=True).fit(X, y).profile_.index.tolist() == list(range(len(y)))
    else:
        assert isinstance(profile, np.ndarray)
    for name in expected.dtype.names:
        np.testing.assert_array_equal(np.asarray(profile[name]), expected[name])


def test_parameters_after_the_estimator_are_named_and_have_these_defaults():
    defaults = {
        "n_repeats": 25,
        "test_size": 0.1,
        "n_probe_samples": None,
        "keep_proba": False,
        "n_jobs": None,
        "random_state": None,
        "threshold": None,
        "folder": None,
        "as_frame": False,
        "verbose": 0,
    }
    assert DifficultyProfiler(None).get_params(deep=False) == {"estimator": None, **defaults}
    with pytest.raises(TypeError, match="positional argument"):
        DifficultyProfiler(None, 25)


@pytest.mark.slow
def test_probes_on_some_of_the_training_samples(blobs, monkeypatch):
    fitted_to = []
    fit = PredictionDepthScorer._fit_probes

    def recorded(self, X, y, sample_weight):
        fitted_to.append(X)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(PredictionDepthScorer, "_fit_probes", recorded)
    whole = small().fit(*blobs)
    n_train = len(fitted_to[0])
    assert_same(whole, small().set_params(n_probe_samples=n_train).fit(*blobs))
    del fitted_to[:]
    some = small().set_params(n_probe_samples=n_train // 2).fit(*blobs)
    assert [len(X) for X in fitted_to] == [n_train // 2] * some.n_repeats
    assert not np.array_equal(fitted_to[0], fitted_to[1])
    # The networks are the same.
    np.testing.assert_array_equal(some.predictions_, whole.predictions_)
    assert np.isclose(some.depth_, whole.depth_, equal_nan=True).mean() > 0.5


@pytest.mark.slow
def test_skorch_net(blobs):
    pytest.importorskip("torch")
    from skcalib.nets import MLP, CalibratedNetClassifier

    X, y = blobs
    net = CalibratedNetClassifier(
        MLP,
        max_epochs=3,
        train_split=None,
        module__hidden_layer_sizes=(6,),
        verbose=0,
        random_state=0,
    )
    scorer = PredictionDepthScorer(net, n_neighbors=3)
    options = {"n_repeats": 2, "test_size": 0.5, "random_state": 0}
    names = np.array(["ant", "bee", "cat"])
    profiler = DifficultyProfiler(scorer, **options).fit(X, names[y])
    assert np.nanmax(profiler.iteration_learned_) in (1, 2, 3)
    assert_same(profiler, clone(profiler).fit(X, names[y]))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_repeats": 3}, ValueError, "n_repeats must be at least 4 with test_size=0.25"),
        ({"test_size": 40}, ValueError, "test_size must leave samples to train on, got 40"),
        ({"estimator": FrozenEstimator(MLPClassifier())}, TypeError, "can be trained again"),
        (
            {"estimator": PredictionDepthScorer(FrozenEstimator(MLPClassifier()))},
            TypeError,
            "estimator must be a network that can be trained again, got FrozenEstimator",
        ),
        (
            {"estimator": PredictionDepthScorer(MLPClassifier(), n_neighbors=0)},
            ValueError,
            "The 'n_neighbors' parameter of PredictionDepthScorer must be an int",
        ),
        ({"estimator": GaussianNB()}, TypeError, "estimator must be an MLPClassifier"),
        ({"n_probe_samples": 2}, ValueError, "n_probe_samples must be at least 3, for the probes"),
        ({"n_probe_samples": 999}, ValueError, "and at most the [0-9]+ samples that a repeat"),
    ],
)
def test_bad_parameters(blobs, options, error, message):
    with pytest.raises(error, match=message):
        small().set_params(**options).fit(*blobs)


@pytest.mark.slow
@pytest.mark.parametrize("held_out", [True, False])
def test_agreement_of_the_probes_layer_by_layer(blobs, held_out):
    X, y = blobs
    names = np.array(["ant", "bee", "cat"])[y]
    profiler = small().fit(X, names)
    assert profiler.layer_names_ == ["input", "linear_0", "softmax"]
    assert profiler.probe_votes_.dtype == np.uint8
    asked = profiler.held_out_ if held_out else ~profiler.held_out_
    expected = {}
    for run, of_run in enumerate(profiler.probe_votes_):
        for i, votes in enumerate(of_run):
            if asked[run, i]:
                form = profiler.profile_["difficulty_type"][i]
                expected.setdefault(form, []).append(profiler.classes_[votes] == names[i])
    expected.pop("undefined", None)
    got = profiler.layer_agreement(names, held_out=held_out)
    assert got.keys() == expected.keys()
    for form, agreement in got.items():
        np.testing.assert_allclose(agreement, np.mean(expected[form], axis=0))
    # Networks whose last probes all say what they say: the depth is where the votes settle.
    run, i = np.argwhere(~np.isnan(profiler.depth_))[0]
    final = profiler.predictions_[run, i]
    settled = profiler.classes_[profiler.probe_votes_[run, i]] == final
    assert settled[int(profiler.depth_[run, i]) :].all()
    with pytest.raises(ValueError, match="labels must"):
        profiler.layer_agreement(names[:-1])
    with pytest.raises(ValueError, match=r"n_closest must be an integer >= 1 or None, got 0"):
        profiler.layer_agreement(names, n_closest=0)


@pytest.mark.slow
def test_confidence_of_the_probes_layer_by_layer(study):
    profiler, y, _ = study
    X, profile = planted()[0], profiler.profile_
    # In the input, the neighbors are those of scikit-learn's classifier.
    proba = np.zeros((len(X), 2))
    for held_out in profiler.held_out_:
        neighbors = KNeighborsClassifier(5).fit(X[~held_out], y[~held_out])
        proba[held_out] += neighbors.predict_proba(X[held_out])
    proba /= profiler.held_out_.sum(axis=0)[:, None]
    np.testing.assert_allclose(profiler.held_out_proba_[:, 0], proba, atol=1e-6)
    np.testing.assert_allclose(profiler.held_out_proba_.sum(axis=2), 1, atol=1e-6)
    for labels in (y, profile["consensus_class"]):
        codes = np.searchsorted(profiler.classes_, labels)
        for n_closest in (None, 3):
            found = profiler.layer_confidence(labels, n_closest=n_closest)
            assert set(found) == set(profile["difficulty_type"]) - {"undefined"}
            for form, confidence in found.items():
                rows = np.flatnonzero(profile["difficulty_type"] == form)
                rows = rows[np.argsort(profile["corner_distance"][rows], kind="stable")]
                rows = rows[:n_closest]
                expected = profiler.held_out_proba_[rows, :, codes[rows]].mean(axis=0)
                np.testing.assert_allclose(confidence, expected, rtol=1e-5)
                accuracy = profiler.layer_agreement(labels, n_closest=n_closest)[form]
                agree = profiler.probe_votes_[:, rows] == codes[rows, None]
                np.testing.assert_allclose(
                    accuracy, agree[profiler.held_out_[:, rows]].mean(axis=0)
                )
    with pytest.raises(ValueError, match="labels must hold labels among"):
        profiler.layer_confidence(np.full(len(X), 7))


@pytest.mark.slow
@pytest.mark.parametrize("probe", ["logistic", LinearSVC(random_state=0)])
def test_classifiers_as_probes(blobs, probe):
    scorer = PredictionDepthScorer(
        MLPClassifier((8,), max_iter=20, learning_rate_init=0.05), probe=probe
    )
    profiler = DifficultyProfiler(scorer, n_repeats=4, test_size=0.25, random_state=0)
    X, y = blobs
    profiler.fit(X, y)
    with pytest.raises(ValueError, match="keep_proba must be True in `fit`"):
        profiler.layer_confidence(y)
    profiler.set_params(keep_proba=True)
    if isinstance(probe, LinearSVC):
        with pytest.raises(TypeError, match="probe must be a classifier with probabilities"):
            profiler.fit(X, y)
    else:
        confidence = profiler.fit(X, y).layer_confidence(y)
        proba = profiler.held_out_proba_[np.arange(len(y)), :, y]
        assert min(c.min() for c in confidence.values()) >= proba.min()
        assert not hasattr(profiler.set_params(keep_proba=False).fit(X, y), "held_out_proba_")
    # The probe of the input, by hand.
    model = (
        LinearSVC(random_state=0)
        if isinstance(probe, LinearSVC)
        else LogisticRegression(max_iter=1000)
    )
    model = model if isinstance(probe, LinearSVC) else make_pipeline(StandardScaler(), model)
    for held_out, votes in zip(profiler.held_out_, profiler.probe_votes_):
        np.testing.assert_array_equal(
            votes[:, 0], clone(model).fit(X[~held_out], y[~held_out]).predict(X)
        )
