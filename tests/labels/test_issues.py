import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.labels import LabelIssueFinder, find_label_issues

X, Y = load_digits(return_X_y=True)
X, Y = X[:900], Y[:900]
WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def _scorer(**kwargs):
    return make_pipeline(PCA(30, random_state=0), RelativeMahalanobisScorer(**kwargs))


@pytest.mark.parametrize("fraction", [0.1, 0.3])
@pytest.mark.parametrize("noise", ["mixed", "random"])
def test_random_flips_are_found_and_counted(noise, fraction):
    given, flipped = flip_labels(Y, fraction=fraction, random_state=0)
    finder = LabelIssueFinder(_scorer(), noise=noise).fit(X, given)
    issue = finder.issues_["is_issue"]
    assert (issue & flipped).sum() >= 0.9 * flipped.sum()
    assert (issue & flipped).sum() >= 0.9 * issue.sum()
    low, high = finder.noise_rate_interval_
    assert low < finder.noise_rate_ < high
    assert finder.noise_rate_ == pytest.approx(fraction, abs=0.03)
    assert (finder.issues_["suggested_label"] == Y).mean() > 0.96
    assert finder.random_rate_ + finder.near_rate_ == pytest.approx(finder.noise_rate_)


def test_clean_labels_are_left_alone():
    finder = LabelIssueFinder(_scorer()).fit(X, Y)
    assert finder.issues_["is_issue"].mean() < 0.01
    assert finder.noise_rate_interval_[0] < 0.005


def test_probabilities_mean_what_they_say():
    given, flipped = flip_labels(Y, fraction=0.2, random_state=1)
    p = LabelIssueFinder(_scorer()).fit(X, given).issues_["p_label_correct"]
    for low, high in [(0.0, 0.1), (0.1, 0.9), (0.9, 1.0)]:
        inside = (p >= low) & (p <= high)
        assert (~flipped[inside]).mean() == pytest.approx(p[inside].mean(), abs=0.15)


def test_any_classifier_gives_out_of_fold_probabilities():
    given, flipped = flip_labels(Y, fraction=0.1, random_state=0)
    pipe = make_pipeline(PCA(30, random_state=0), LinearDiscriminantAnalysis())
    finder = LabelIssueFinder(pipe, cv=4, n_refits=0).fit(X, given)
    issue = finder.issues_["is_issue"]
    assert (issue & flipped).sum() >= 0.8 * max(issue.sum(), flipped.sum())
    # The log-loss of a model that has not seen the sample.
    train, test = next(iter(KFold(3).split(X)))
    by_hand = clone(pipe).fit(X[train], given[train]).predict_log_proba(X[test])
    own = finder.set_params(cv=KFold(3)).fit(X, given).issues_["difficulty"][test]
    np.testing.assert_allclose(own, -by_hand[np.arange(len(test)), given[test]], rtol=1e-6)


def test_a_classifier_is_fitted_once_for_a_fold_and_a_round(monkeypatch):
    fitted = []
    fit = GaussianNB.fit
    monkeypatch.setattr(
        GaussianNB, "fit", lambda *args, **kw: fitted.append(1) or fit(*args, **kw)
    )
    LabelIssueFinder(GaussianNB(), cv=3, n_refits=1).fit(X[:, 20:30], Y)
    # And once on all samples, for `estimator_`.
    assert len(fitted) == 7


def test_folds_that_do_not_leave_out_every_sample_once_are_refused():
    finder = LabelIssueFinder(GaussianNB(), cv=[(np.arange(10), np.arange(10, 20))])
    with pytest.raises(ValueError, match=r"^cv must leave out every sample exactly once, got"):
        finder.fit(X[:30], Y[:30])


def test_the_only_sample_of_a_class_is_an_issue():
    given = WORDS[Y].astype(object)
    given[9] += " "
    finder = LabelIssueFinder(_scorer()).fit(X, given)
    issue = finder.issues_[9]
    assert issue["p_label_correct"] == 0
    assert issue["suggested_label"] == WORDS[Y[9]]
    assert issue["difficulty"] == issue["margin"] == np.inf
    assert np.isnan(finder.class_noise_rate_[list(finder.classes_).index(given[9])])


def test_text_is_labels_as_good_as_numbers():
    given, _ = flip_labels(Y, fraction=0.1, random_state=0)
    numbers = LabelIssueFinder(_scorer()).fit(X, given).issues_
    words = LabelIssueFinder(_scorer()).fit(X, WORDS[given]).issues_
    np.testing.assert_allclose(words["p_label_correct"], numbers["p_label_correct"], atol=1e-6)
    assert (words["suggested_label"] == WORDS[numbers["suggested_label"]]).all()


def test_columns_agree_with_each_other():
    given, _ = flip_labels(Y, fraction=0.1, random_state=0)
    finder = LabelIssueFinder(_scorer(), threshold=0.2).fit(X, given)
    issues, proba = finder.issues_, finder.label_proba_
    codes = np.searchsorted(finder.classes_, given)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(issues["p_label_correct"], proba[np.arange(len(X)), codes])
    np.testing.assert_array_equal(issues["suggested_label"], proba.argmax(axis=1))
    np.testing.assert_array_equal(issues["is_issue"], issues["p_label_correct"] < 0.2)
    assert (issues["margin"] >= 0).all()
    rate = [1 - issues["p_label_correct"][given == k].mean() for k in range(10)]
    np.testing.assert_allclose(finder.class_noise_rate_, rate)


def test_difficulty_is_that_of_a_sample_left_out():
    finder = LabelIssueFinder(RelativeMahalanobisScorer(), n_refits=0).fit(X[:, 20:30], Y)
    others = np.arange(len(X)) != 5
    scorer = RelativeMahalanobisScorer().fit(X[others, 20:30], Y[others])
    expected = scorer.difficulty(X[5:6, 20:30], Y[5:6])[0]
    assert finder.issues_["difficulty"][5] == pytest.approx(expected, rel=1e-8)


def test_weight_zero_is_removal_and_weight_two_is_two_copies():
    given, _ = flip_labels(Y[:400], fraction=0.1, random_state=0)
    weight = np.random.default_rng(0).integers(0, 3, 400)
    rows = np.repeat(np.arange(400), weight)
    scorer = RelativeMahalanobisScorer(shrinkage=0.2)
    weighted = LabelIssueFinder(scorer).fit(X[:400], given, sample_weight=weight)
    repeated = LabelIssueFinder(scorer).fit(X[rows], given[rows])
    assert weighted.noise_rate_ == pytest.approx(repeated.noise_rate_, abs=1e-4)
    p = weighted.issues_["p_label_correct"][rows]
    np.testing.assert_allclose(p, repeated.issues_["p_label_correct"], atol=1e-3)


def test_verified_labels_are_no_issues():
    given, flipped = flip_labels(Y, fraction=0.1, random_state=0)
    verified = np.zeros(len(Y), dtype=bool)
    verified[np.flatnonzero(~flipped)[:200]] = True
    verified[np.flatnonzero(flipped)[0]] = True  # who verifies is right
    finder = LabelIssueFinder(_scorer()).fit(X, given, verified=verified)
    assert (finder.issues_["p_label_correct"][verified] == 1).all()
    assert not finder.issues_["is_issue"][verified].any()
    for wrong in (verified.astype(int), verified[:-1]):
        with pytest.raises(ValueError, match=r"^verified must be a boolean mask of shape"):
            finder.fit(X, given, verified=wrong)


def test_a_refit_helps_where_labels_are_bad():
    rng = np.random.default_rng(0)
    right = []
    for seed in range(3):
        centers = 0.8 * rng.normal(size=(20, 30))
        data, true = make_blobs(300, centers=centers, cluster_std=1.0, random_state=seed)
        given, _ = flip_labels(true, fraction=0.4, random_state=seed)
        for n_refits in (0, 1):
            finder = LabelIssueFinder(n_refits=n_refits).fit(data, given)
            right.append((finder.issues_["suggested_label"] == true).mean())
    assert np.mean(right[1::2]) > np.mean(right[::2]) + 0.02 > 0.6


def test_transformers_of_a_pipeline_run_once():
    calls = []

    def embed(data):
        calls.append(len(data))
        return data[:, 20:40]

    pipe = make_pipeline(FunctionTransformer(embed), RelativeMahalanobisScorer())
    finder = LabelIssueFinder(pipe, n_refits=2).fit(X, Y)
    assert calls == [len(X)]
    assert (finder.estimator_.predict(X) == Y).mean() > 0.5
    assert not hasattr(pipe[-1], "classes_")


def test_estimator_is_fitted_to_the_suggested_labels():
    given, _ = flip_labels(Y, fraction=0.2, random_state=0)
    finder = LabelIssueFinder(_scorer()).fit(X, given)
    first = LabelIssueFinder(_scorer(), n_refits=0).fit(X, given)
    expected = _scorer().fit(X, first.issues_["suggested_label"])
    np.testing.assert_allclose(finder.estimator_[-1].means_, expected[-1].means_)


def test_table_is_ranked_and_keeps_the_index():
    pd = pytest.importorskip("pandas")
    given, _ = flip_labels(Y, fraction=0.1, random_state=0)
    issues = find_label_issues(_scorer(), X, given)
    assert (np.diff(issues["p_label_correct"]) >= 0).all()
    assert sorted(issues["sample"]) == list(range(len(X)))
    frame = pd.DataFrame(X, index=[f"image {i}" for i in range(len(X))])
    table = find_label_issues(_scorer(), frame, WORDS[given], as_frame=True)
    assert list(table.index[:5]) == [f"image {i}" for i in issues["sample"][:5]]
    assert list(table["label"][:5]) == list(WORDS[issues["label"][:5]])
    np.testing.assert_allclose(table["p_label_correct"], issues["p_label_correct"], atol=1e-6)


@pytest.mark.parametrize(
    ("finder", "message"),
    [
        (LabelIssueFinder(noise="near"), "'noise' parameter"),
        (LabelIssueFinder(threshold=0.0), "'threshold' parameter"),
    ],
)
def test_parameters_are_checked(finder, message):
    with pytest.raises(ValueError, match=message):
        finder.fit(X, Y)


def test_one_class_is_not_enough():
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        LabelIssueFinder().fit(X, np.zeros(len(X), dtype=int))


def test_weights_for_a_classifier_without_them_are_refused():
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(ValueError, match="estimator must have the parameter 'sample_weight'"):
        LabelIssueFinder(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(len(X)))
    finder = LabelIssueFinder(LogisticRegression(max_iter=10_000), cv=2, n_refits=0)
    weighted = finder.fit(X[:200], Y[:200], sample_weight=np.full(200, 1.0)).noise_rate_
    assert weighted == pytest.approx(finder.fit(X[:200], Y[:200]).noise_rate_, abs=1e-3)


def test_probabilities_are_a_mean_of_those_before_and_after_the_refit(monkeypatch):
    given, _ = flip_labels(Y[:100], fraction=0.2, random_state=0)
    scorer = make_pipeline(PCA(10, random_state=0), RelativeMahalanobisScorer(shrinkage="auto"))
    mean = LabelIssueFinder(scorer).fit(X[:100], given)
    first = LabelIssueFinder(scorer, n_refits=0).fit(X[:100], given).label_proba_
    monkeypatch.setattr("skcalib.labels._issues._WEIGHT_OF_FIRST", 0.0)
    last = LabelIssueFinder(scorer).fit(X[:100], given).label_proba_
    assert np.abs(first - last).max() > 0.01
    # Ten samples a class.
    np.testing.assert_allclose(mean.label_proba_, first / 3 + 2 * last / 3)
    low, high = mean.noise_rate_interval_
    assert low < mean.noise_rate_ < high


@pytest.mark.parametrize("total", [1.0, 1e-290])
def test_weights_that_do_not_count_samples_are_refused(total):
    X, y = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(ValueError, match="sample_weight must count samples"):
        LabelIssueFinder().fit(X, y, sample_weight=np.full(60, total / 60))
    # Folds do not need counts.
    LabelIssueFinder(GaussianNB()).fit(X, y, sample_weight=np.full(60, total / 60))
