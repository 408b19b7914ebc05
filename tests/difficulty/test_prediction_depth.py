import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from skcalib.difficulty import DifficultyAwareClassifier, DifficultyMixin, PredictionDepthScorer

K = 5


def quick_net(*hidden):
    """Train for 30 epochs, without a complaint that the loss has not settled."""
    return MLPClassifier(
        hidden, tol=1e9, n_iter_no_change=29, learning_rate_init=0.02, random_state=0
    )


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(240, n_features=4, centers=3, cluster_std=3.0, random_state=0)
    return X[:160], y[:160], X[160:], y[160:]


@pytest.fixture(scope="module")
def net(data):
    X, y, _, _ = data
    return quick_net(12, 8).fit(X, y)


@pytest.fixture(scope="module")
def scorer(data, net):
    X, y, _, _ = data
    return PredictionDepthScorer(FrozenEstimator(net), n_neighbors=K).fit(X, y)


def layers_by_hand(net, X):
    found, hidden = [X], X
    for i, (weights, bias) in enumerate(zip(net.coefs_, net.intercepts_)):
        linear = hidden @ weights + bias
        found.append(linear)
        hidden = np.maximum(linear, 0) if i < len(net.coefs_) - 1 else linear
    e = np.exp(hidden - hidden.max(axis=1, keepdims=True))
    # Without the logits, whose probe is that of the softmax that follows.
    return [*found[:-1], e / e.sum(axis=1, keepdims=True)]


def probes_by_hand(net, X, y, queries, exclude=None):
    """Votes (n, L, K) from sorting all distances, one row and one layer at a time."""
    votes = np.zeros((len(queries), len(net.coefs_) + 1, len(net.classes_)))
    pairs = zip(layers_by_hand(net, X), layers_by_hand(net, queries))
    for layer, (train, query) in enumerate(pairs):
        for i, row in enumerate(query):
            squared = ((train - row) ** 2).sum(axis=1)
            if exclude is not None and exclude[i] >= 0:
                squared[exclude[i]] = np.inf
            for j in np.argsort(squared, kind="stable")[:K]:
                votes[i, layer, list(net.classes_).index(y[j])] += 1 / K
    return votes


def depth_by_hand(labels, final):
    depth = []
    for row, label in zip(labels, final):
        settled = [i for i in range(len(row)) if all(p == label for p in row[i:])]
        depth.append(min(settled) if settled else np.nan)
    return np.array(depth)


def test_equals_brute_force(data, net, scorer):
    X, y, queries, truth = data
    votes = probes_by_hand(net, X, y, queries)
    labels = votes.argmax(axis=2)
    assert scorer.layer_names_ == ["input", "linear_0", "linear_1", "softmax"]
    np.testing.assert_allclose(scorer.probe_predict_proba(queries), votes)
    np.testing.assert_array_equal(scorer.probe_predict(queries), labels)
    expected = depth_by_hand(labels, net.predict(queries))
    np.testing.assert_array_equal(scorer.difficulty(queries), expected)
    np.testing.assert_array_equal(scorer.transform(queries)[:, 0], expected)
    np.testing.assert_array_equal(scorer.score_samples(queries), -expected)
    np.testing.assert_allclose(
        scorer.probe_score(queries, truth), [np.mean(column == truth) for column in labels.T]
    )
    assert 0 < np.isnan(expected).sum() < len(expected)
    assert len(np.unique(expected[~np.isnan(expected)])) > 2


@pytest.mark.parametrize("algorithm", ["brute", "faiss"])
def test_algorithms_agree(data, net, scorer, algorithm):
    if algorithm != "brute":
        pytest.importorskip(algorithm)
    X, y, queries, _ = data
    other = clone(scorer).set_params(algorithm=algorithm).fit(X, y)
    np.testing.assert_allclose(
        other.probe_predict_proba(queries), scorer.probe_predict_proba(queries)
    )


def test_training_rows_with_and_without_themselves(data, net, scorer):
    X, y, _, _ = data
    np.testing.assert_allclose(scorer.probe_predict_proba(X), probes_by_hand(net, X, y, X))
    without = clone(scorer).set_params(exclude_self=True).fit(X, y)
    expected = probes_by_hand(net, X, y, X, exclude=np.arange(len(X)))
    np.testing.assert_allclose(without.probe_predict_proba(X), expected)
    # Row by row: in any order, any part of the rows, with new rows among them.
    some = np.r_[X[7:3:-1], data[2][:3]]
    new = probes_by_hand(net, X, y, data[2][:3])
    np.testing.assert_allclose(
        without.probe_predict_proba(some), np.concatenate([expected[7:3:-1], new])
    )


def test_duplicates_do_not_break_exclude_self(data, net):
    X, y, _, _ = data
    X, y = np.repeat(X[:60], 2, axis=0), np.repeat(y[:60], 2)
    y[1] = (y[0] + 1) % 3  # Equal rows with different labels.
    scorer = PredictionDepthScorer(FrozenEstimator(net), n_neighbors=2, exclude_self=True)
    proba = scorer.fit(X, y).probe_predict_proba(X, y)
    # The twin is nearest, in every layer: it votes, and the row itself does not.
    assert (proba[0, :, y[1]] >= 0.5).all()
    assert (proba[1, :, y[0]] >= 0.5).all()
    assert (proba[np.arange(2, 120), :, y[2:]] >= 0.5).all()
    assert (proba[0, :-1, y[0]] <= 0.5).all()


def test_probes_can_have_to_agree_with_the_label(data, scorer):
    X, y, queries, truth = data
    labeled = clone(scorer).set_params(agree_with="label").fit(X, y)
    labels = scorer.probe_predict(queries)
    np.testing.assert_array_equal(labeled.difficulty(queries, truth), depth_by_hand(labels, truth))
    np.testing.assert_array_equal(labeled.difficulty(queries), scorer.difficulty(queries))
    np.testing.assert_array_equal(scorer.difficulty(queries, truth), scorer.difficulty(queries))


def test_undefined_depth_can_be_the_hardest(data, scorer):
    X, y, queries, _ = data
    full = clone(scorer).set_params(undefined="hardest").fit(X, y)
    expected = [4.0 if np.isnan(depth) else depth for depth in scorer.difficulty(queries)]
    np.testing.assert_array_equal(full.difficulty(queries), expected)
    np.testing.assert_array_equal(full.transform(queries)[:, 0], expected)
    aware = DifficultyAwareClassifier(GaussianNB(), clone(full), fit_param="sample_weight")
    aware.fit(X, y)
    assert np.isfinite(aware.weights_).all()


def test_string_labels_and_frames(data, scorer):
    X, y, queries, truth = data
    names = np.array(["ant", "bee", "cat"], dtype=object)
    columns = list("abcd")
    named = PredictionDepthScorer(quick_net(12, 8), n_neighbors=K).fit(
        pd.DataFrame(X, columns=columns), names[y]
    )
    frame = pd.DataFrame(queries, columns=columns)
    np.testing.assert_array_equal(named.feature_names_in_, columns)
    np.testing.assert_array_equal(named.probe_predict(frame), names[scorer.probe_predict(queries)])
    np.testing.assert_array_equal(named.difficulty(frame), scorer.difficulty(queries))
    np.testing.assert_array_equal(
        named.probe_score(frame, names[truth]), scorer.probe_score(queries, truth)
    )
    table = named.set_output(transform="pandas").transform(frame)
    assert table.columns.tolist() == ["prediction_depth"]


def test_blocks_do_not_change_the_depth(data, scorer):
    X, y, queries, _ = data
    other = clone(scorer).fit(X, y)
    other._reader.block_size = 7
    np.testing.assert_array_equal(other.difficulty(queries), scorer.difficulty(queries))


def test_estimator_is_cloned_and_frozen_is_not(data, net):
    X, y, queries, _ = data
    fresh = quick_net(4)
    scorer = PredictionDepthScorer(fresh, n_neighbors=K).fit(X, y)
    assert not hasattr(fresh, "coefs_")
    np.testing.assert_array_equal(
        scorer.estimator_.predict(queries), clone(fresh).fit(X, y).predict(queries)
    )
    frozen = PredictionDepthScorer(FrozenEstimator(net), n_neighbors=K).fit(X, y)
    assert frozen.estimator_.estimator is net


@pytest.mark.slow
def test_default_network_is_repeatable():
    X, y = make_blobs(60, centers=2, random_state=0)
    queries = X[:10] + 1
    first, second = (PredictionDepthScorer(random_state=0).fit(X, y) for _ in range(2))
    assert isinstance(first, DifficultyMixin)
    np.testing.assert_array_equal(first.difficulty(queries), second.difficulty(queries))


def test_pipeline_steps_come_before_the_input(data):
    X, y, queries, _ = data
    net = quick_net(6)
    piped = PredictionDepthScorer(make_pipeline(StandardScaler(), net), n_neighbors=K).fit(X, y)
    scaler = StandardScaler().fit(X)
    plain = PredictionDepthScorer(net, n_neighbors=K).fit(scaler.transform(X), y)
    np.testing.assert_array_equal(
        piped.difficulty(queries), plain.difficulty(scaler.transform(queries))
    )
    weighted = clone(piped).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(weighted.difficulty(queries), piped.difficulty(queries))


def test_pipelines_may_be_nested(data):
    X, y, queries, _ = data
    net = quick_net(6)
    flat = PredictionDepthScorer(make_pipeline(StandardScaler(), net), n_neighbors=K).fit(X, y)
    nested = make_pipeline(make_pipeline(make_pipeline(StandardScaler(), make_pipeline(net))))
    scorer = PredictionDepthScorer(nested, n_neighbors=K).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(scorer.difficulty(queries), flat.difficulty(queries))
    frozen = PredictionDepthScorer(FrozenEstimator(clone(nested).fit(X, y)), n_neighbors=K)
    np.testing.assert_array_equal(frozen.fit(X, y).difficulty(queries), flat.difficulty(queries))


def test_pipeline_reads_text_columns():
    frame = pd.DataFrame({"color": ["red", "blue"] * 20})
    y = np.tile([0, 1], 20)
    net = quick_net(3)
    scorer = PredictionDepthScorer(make_pipeline(OneHotEncoder(), net), n_neighbors=K)
    assert scorer.fit(frame, y).difficulty(frame[:3]).tolist() == [0, 0, 0]


def test_random_projection_of_wide_layers(data, net):
    X, y, queries, _ = data
    scorer = PredictionDepthScorer(
        FrozenEstimator(net), n_neighbors=K, n_components=8, random_state=0
    ).fit(X, y)
    assert [probe.search.train_.shape[1] for probe in scorer.probes_] == [4, 8, 8, 3]
    again = clone(scorer).fit(X, y)
    np.testing.assert_array_equal(scorer.difficulty(queries), again.difficulty(queries))


def test_middle_probe_predict(data, net, scorer):
    queries = data[2]
    labels, final = scorer.probe_predict(queries), net.predict(queries)
    np.testing.assert_array_equal(scorer.middle_probe_predict(queries), labels[:, 2])
    rows = np.arange(len(queries)) % 2 == 0
    np.testing.assert_array_equal(
        scorer.middle_probe_predict(queries, rows, layer="input"),
        [labels[i, 0] if rows[i] else final[i] for i in range(len(rows))],
    )
    with pytest.raises(ValueError, match="layer must be one of"):
        scorer.middle_probe_predict(queries, layer="linear_9")
    with pytest.raises(ValueError, match="where must be boolean and of shape"):
        scorer.middle_probe_predict(queries, [True])


def test_pickle(data, scorer):
    queries = data[2]
    copy = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_array_equal(copy.difficulty(queries), scorer.difficulty(queries))


@pytest.mark.filterwarnings("ignore:The depth is undefined")
def test_all_training_samples_can_vote(data, net):
    X, y, _, _ = data
    scorer = PredictionDepthScorer(FrozenEstimator(net), n_neighbors=20).fit(X[:20], y[:20])
    share = np.bincount(y[:20], minlength=3) / 20
    np.testing.assert_allclose(scorer.probe_predict_proba(X[:2])[0, 0], share)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"n_neighbors": 161},
            ValueError,
            "n_neighbors must be at most n_samples, got 161 with n_samples=160",
        ),
        (
            {"n_neighbors": 160, "exclude_self": True},
            ValueError,
            "n_neighbors must be at most n_samples - 1, got 160 with n_samples=160",
        ),
        ({"layers": ["linear_7"]}, ValueError, "layers must name layers among .*linear_7"),
        (
            {"estimator": LogisticRegression()},
            TypeError,
            "estimator must be an MLPClassifier",
        ),
        (
            {"metric": "manhattan", "algorithm": "faiss"},
            ValueError,
            "algorithm must be 'brute' where metric",
        ),
        ({"estimator": FrozenEstimator(MLPClassifier())}, NotFittedError, "not fitted yet"),
    ],
)
def test_bad_parameters(data, net, options, error, message):
    X, y, _, _ = data
    parameters = {"estimator": FrozenEstimator(net), "n_neighbors": K, **options}
    with pytest.raises(error, match=message):
        PredictionDepthScorer(**parameters).fit(X, y)


def test_bad_labels(data, net, scorer):
    X, _, queries, truth = data
    with pytest.raises(
        ValueError, match=r"^y must hold class labels. Unknown label type: continuous"
    ):
        PredictionDepthScorer(FrozenEstimator(net)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="y must hold labels of the same type as the others"):
        scorer.probe_score(queries, truth.astype(str))
    with pytest.raises(ValueError, match="must have the same number of samples"):
        scorer.difficulty(queries, truth[:-1])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        PredictionDepthScorer().difficulty(X)


@pytest.mark.slow
@pytest.mark.parametrize("probe", ["logistic", GaussianNB()])
def test_classifiers_as_probes(data, net, probe):
    X, y, queries, _ = data
    names = np.array(["ant", "bee", "cat"])[y]
    frozen = FrozenEstimator(clone(net).fit(X, names))
    fitted = PredictionDepthScorer(frozen, probe=probe).fit(X, names)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    probes = [
        clone(linear if isinstance(probe, str) else probe).fit(train, names)
        for train in layers_by_hand(net, X)
    ]
    layers = layers_by_hand(net, queries)
    proba = np.stack([p.predict_proba(z) for p, z in zip(probes, layers)], axis=1)
    np.testing.assert_allclose(fitted.probe_predict_proba(queries), proba, atol=1e-6)
    labels = np.stack([p.predict(z) for p, z in zip(probes, layers)], axis=1)
    np.testing.assert_array_equal(fitted.probe_predict(queries), labels)
    np.testing.assert_array_equal(
        fitted.difficulty(queries), depth_by_hand(labels, frozen.predict(queries))
    )


def test_a_classifier_as_probe_knows_the_samples_that_it_was_fitted_to(data):
    X, y, _, _ = data
    scorer = PredictionDepthScorer(probe="logistic", exclude_self=True)
    with pytest.raises(ValueError, match=r"exclude_self must be False unless probe='neighbors'"):
        scorer.fit(X, y)
    without = PredictionDepthScorer(quick_net(4), probe=RidgeClassifier()).fit(X, y)
    assert np.isfinite(without.difficulty(X)).any()
    with pytest.raises(TypeError, match=r"probe must be a classifier with probabilities"):
        without.probe_predict_proba(X)
    with pytest.raises(InvalidParameterError, match="'probe' parameter"):
        PredictionDepthScorer(probe="linear").fit(X, y)
