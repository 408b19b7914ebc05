import pickle
import re
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer, RMDScorer
from skcalib.labels import LabelIssueFinder, find_label_issues
from skcalib.labels._checks import compute_inclusion, draw_samples, estimate_rate
from skcalib.labels._duplicates import find_near_duplicates
from skcalib.utils import SkcalibWarning

pytestmark = pytest.mark.usefixtures("few_trees")
X, Y = load_digits(return_X_y=True)
X, Y = X[:900], Y[:900]
WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def _scorer(**kwargs):
    return make_pipeline(PCA(30, random_state=0), RelativeMahalanobisScorer(**kwargs))


@pytest.mark.slow
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
    assert 1 - np.diag(finder.noise_matrix_).mean() == pytest.approx(fraction, abs=0.03)
    assert finder.base_models_ == {"RelativeMahalanobisScorer": 1.0}
    assert not finder.caveats_
    assert not finder.is_trustworthy_  # nobody has checked
    assert finder.caveats_ == ()


@pytest.mark.slow
def test_flips_to_the_nearest_class_are_found():
    rng, rows = np.random.default_rng(0), np.arange(len(Y))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    rival = cross_val_predict(model, X, Y, method="predict_proba")
    rival[rows, Y] = -1.0
    given = np.where(rng.random(len(Y)) < 0.2, rival.argmax(axis=1), Y)
    finder = LabelIssueFinder().fit(X, given)
    found, wrong = finder.issues_["is_issue"], given != Y
    assert (found & wrong).sum() > 0.8 * max(wrong.sum(), found.sum())
    assert finder.noise_rate_ == pytest.approx(wrong.mean(), abs=0.03)
    low, high = finder.noise_rate_interval_
    assert low < wrong.mean() < high
    np.testing.assert_allclose(finder.noise_matrix_.sum(axis=1), 1.0)
    # 3 looks like 8 and 9 more than like 6.
    assert finder.noise_matrix_[3, 6] < 0.3 * finder.noise_matrix_[3, [8, 9]].max()
    random = LabelIssueFinder(noise="random").fit(X, given)
    assert np.ptp(random.noise_matrix_[~np.eye(10, dtype=bool)]) < 1e-12


@pytest.mark.slow
def test_flips_from_class_to_class_are_found_with_few_samples_a_class():
    rng = np.random.default_rng(0)
    true = np.repeat(np.arange(40), 15)
    features = rng.normal(scale=0.6, size=(40, 24))[true] + rng.normal(scale=0.5, size=(600, 24))
    rate, other = rng.uniform(0, 0.4, 40), (np.arange(40) + rng.integers(1, 40, 40)) % 40
    given = np.where(rng.random(600) < rate[true], other[true], true)
    finder = LabelIssueFinder().fit(features, given)
    found, wrong = finder.issues_["is_issue"], given != true
    assert (found & wrong).sum() > 0.8 * wrong.sum()
    assert (found & wrong).sum() > 0.8 * found.sum()
    assert finder.noise_rate_ == pytest.approx(wrong.mean(), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_class_dependent_noise_that_flexible_base_models_have_learned(seed):
    X, y = make_blobs(1200, 8, centers=6, cluster_std=2.0, random_state=seed)
    wrong = np.random.default_rng(seed).random(1200) < 0.15
    finder = LabelIssueFinder().fit(X, np.where(wrong, (y + 1) % 6, y))
    found = finder.issues_["is_issue"].astype(bool)
    assert found[wrong].mean() > 0.95
    assert wrong[found].mean() > 0.95
    assert finder.noise_rate_ == pytest.approx(wrong.mean(), abs=0.01)


@pytest.mark.slow
def test_clean_labels_are_left_alone():
    finder = LabelIssueFinder(_scorer()).fit(X, Y)
    assert finder.issues_["is_issue"].mean() < 0.01
    assert finder.noise_rate_interval_[0] < 0.005


@pytest.mark.slow
def test_probabilities_mean_what_they_say():
    given, flipped = flip_labels(Y, fraction=0.2, random_state=1)
    p = LabelIssueFinder(_scorer(), noise="random").fit(X, given).issues_["p_label_correct"]
    for low, high in [(0.0, 0.1), (0.1, 0.9), (0.9, 1.0)]:
        inside = (p >= low) & (p <= high)
        assert (~flipped[inside]).mean() == pytest.approx(p[inside].mean(), abs=0.15)


@pytest.mark.slow
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
    expected = -by_hand[np.arange(len(test)), given[test]]
    assert spearmanr(own, expected)[0] > 0.99  # pooled with how frequent classes are


# Ten features tell the digits poorly.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model predicts", "ignore:.*rows of X equal")
def test_a_classifier_is_fitted_once_for_a_fold_and_a_round(monkeypatch):
    fitted = []
    fit = GaussianNB.fit
    monkeypatch.setattr(
        GaussianNB, "fit", lambda *args, **kw: fitted.append(1) or fit(*args, **kw)
    )
    given, _ = flip_labels(Y, fraction=0.2, random_state=0)
    LabelIssueFinder(GaussianNB(), cv=3, n_refits=1).fit(X[:, 20:30], given)
    # And once on all samples, for `estimator_`.
    assert len(fitted) == 7


@pytest.mark.filterwarnings("ignore:The folds of cv leave out")
def test_folds_that_do_not_leave_out_every_sample_are_refused():
    finder = LabelIssueFinder(GaussianNB(), cv=[(np.arange(10), np.arange(10, 20))])
    with pytest.raises(ValueError, match=r"^cv must leave out every sample, so that its label"):
        finder.fit(X[:30], Y[:30])


@pytest.mark.slow
def test_the_only_sample_of_a_class_is_an_issue():
    given = WORDS[Y].astype(object)
    given[9] += " "
    finder = LabelIssueFinder(_scorer()).fit(X, given)
    issue = finder.issues_[9]
    assert issue["p_label_correct"] < 1e-6
    assert issue["suggested_label"] == WORDS[Y[9]]
    assert issue["difficulty"] > 100
    assert np.isnan(finder.class_noise_rate_[list(finder.classes_).index(given[9])])


@pytest.mark.slow
def test_text_is_labels_as_good_as_numbers():
    given, _ = flip_labels(Y, fraction=0.1, random_state=0)
    numbers = LabelIssueFinder(_scorer()).fit(X, given).issues_
    words = LabelIssueFinder(_scorer()).fit(X, WORDS[given]).issues_
    np.testing.assert_allclose(words["p_label_correct"], numbers["p_label_correct"], atol=1e-6)
    assert (words["suggested_label"] == WORDS[numbers["suggested_label"]]).all()


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*rows of X equal")
def test_difficulty_and_margin_are_those_of_the_pool():
    finder = LabelIssueFinder(RelativeMahalanobisScorer(), n_refits=0).fit(X[:, 20:30], Y)
    others = np.arange(len(X)) != 5
    scorer = RelativeMahalanobisScorer().fit(X[others, 20:30], Y[others])
    pooled = scorer.transform(X[5:6, 20:30])[0]
    assert pooled.argmin() != Y[5]
    issues = finder.issues_
    assert issues["margin"][5] > 0
    own = np.exp(-issues["difficulty"])
    assert ((own > 0) & (own <= 1)).all()
    # The log-loss of the pooled belief, of which the margin is a part.
    assert (issues["difficulty"] >= 0.5 * issues["margin"] - 1e-9).all()
    no_margin = issues["margin"] == 0
    assert (own[no_margin] >= 1 / 10 - 1e-9).all()


@pytest.mark.slow
def test_weight_zero_is_removal_and_only_ratios_of_weights_infer():
    given, _ = flip_labels(Y[:400], fraction=0.1, random_state=0)
    scorer = RelativeMahalanobisScorer(shrinkage=0.2)
    finder = LabelIssueFinder(scorer, noise="random")
    half = np.arange(400) % 2 == 0
    without = finder.fit(X[:400][half], given[half])
    p, rate = without.issues_["p_label_correct"], without.noise_rate_
    weighted = finder.fit(X[:400], given, sample_weight=half.astype(float))
    np.testing.assert_allclose(weighted.issues_["p_label_correct"][half], p, atol=1e-6)
    assert weighted.noise_rate_ == pytest.approx(rate, abs=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_ten_of_each_are_no_more_evidence_than_one():
    given, _ = flip_labels(Y[:400], fraction=0.1, random_state=0)
    widths = []
    for weight in (None, np.full(400, 10.0), np.full(400, 1 / 400)):
        finder = LabelIssueFinder(GaussianNB(), noise="random")
        # Features of digits depend on one another: .62 of the issues are wrong, not .90.
        with pytest.warns(SkcalibWarning, match="29% are those of most neighbors"):
            finder.fit(X[:400], given, sample_weight=weight)
        widths.append(np.diff(finder.noise_rate_interval_))
    np.testing.assert_allclose(widths, np.broadcast_to(widths[0], (3, 1)), rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "part"), [(None, 1.0), (_scorer(), 0.2), (GaussianNB(), 1.0)]
)
def test_duplicates_do_not_predict_one_another(part, estimator):
    given, flipped = flip_labels(Y[:500], fraction=0.15, random_state=0)
    rows = np.append(np.arange(500), np.arange(int(500 * part)))
    alone = LabelIssueFinder(estimator).fit(X[:500], given)
    with pytest.warns(SkcalibWarning, match=r"^\d+ of the \d+ rows of X equal an earlier"):
        finder = LabelIssueFinder(estimator).fit(X[rows], given[rows])
    assert finder.n_duplicates_ == int(500 * part)
    assert alone.n_duplicates_ == 0
    found = finder.issues_["is_issue"]
    assert (found[:500] & flipped).sum() >= (alone.issues_["is_issue"] & flipped).sum() - 5
    np.testing.assert_array_equal(found[500:], found[: len(rows) - 500])
    low, high = finder.noise_rate_interval_
    assert low <= flipped[rows].mean() <= high


@pytest.mark.slow
def test_equal_rows_with_unlike_labels_are_different_samples():
    given, _ = flip_labels(Y[:500], fraction=0.15, random_state=0)
    rows, labels = (
        np.append(np.arange(500), np.arange(20)),
        np.append(given, (given[:20] + 1) % 10),
    )
    finder = LabelIssueFinder().fit(X[rows], labels)
    assert finder.n_duplicates_ == 0
    # The right label of the two is the more probable one.
    p = finder.issues_["p_label_correct"]
    right = given[:20] == Y[:20]
    assert np.mean(p[:20][right] > p[500:][right]) > 0.9


@pytest.mark.slow
def test_rows_that_repeat_by_nature_keep_their_frequencies():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 8, (2500, 3)).astype(float)  # 512 rows, five of each
    true = (features.sum(axis=1) + rng.normal(size=2500) > 10.5).astype(int)
    given, flipped = flip_labels(true, fraction=0.1, random_state=0)
    with pytest.warns(SkcalibWarning, match="rows of X equal"):
        finder = LabelIssueFinder().fit(features, given)
    p = finder.issues_["p_label_correct"]
    assert roc_auc_score(flipped, -p) > 0.9
    low, high = finder.noise_rate_interval_
    assert low <= flipped.mean() <= high
    # A classifier that takes no weights is fitted to the distinct rows.
    with pytest.warns(SkcalibWarning, match="rows of X equal"):
        LabelIssueFinder(KNeighborsClassifier(15)).fit(features, given)


@pytest.mark.slow
def test_near_duplicates_do_not_predict_one_another():
    given, flipped = flip_labels(Y[:500], fraction=0.2, random_state=0)
    noise = np.random.default_rng(0).normal(scale=0.1 * X.std(), size=(500, X.shape[1]))
    twice = np.concatenate([X[:500], X[:500] + noise])
    with pytest.warns(
        SkcalibWarning,
        match=r"^\d+ samples have a near-duplicate, .* same unexp",
    ):
        finder = LabelIssueFinder().fit(twice, np.tile(given, 2))
    found = finder.issues_["is_issue"] & np.tile(flipped, 2)
    assert found.sum() > 0.8 * 2 * flipped.sum()
    low, high = finder.noise_rate_interval_
    assert low <= flipped.mean() <= high


@pytest.mark.parametrize("seed", [0, 2])
def test_near_duplicates_are_found_where_many_classes_overlap(seed):
    X, y = make_blobs(250, 3, centers=10, cluster_std=8.0, random_state=seed)
    given, _ = flip_labels(y, fraction=0.2, random_state=seed)
    noise = np.random.default_rng(seed).normal(scale=0.05 * X.std(axis=0), size=X.shape)
    assert find_near_duplicates(X, given, None) is None
    groups = find_near_duplicates(np.concatenate([X, X + noise]), np.tile(given, 2), None)
    assert np.mean(groups[:250] == groups[250:]) > 0.9


@pytest.mark.slow
def test_checks_are_drawn_in_proportion_to_weight():
    weight = np.append(np.repeat([0.0, 1.0, 3.0], 100), 200.0)
    proba = compute_inclusion(weight, 20)
    assert proba.sum() == pytest.approx(20)
    assert proba[-1] == 1  # as a part of all it would be drawn more than surely
    rng = np.random.RandomState(0)
    count = np.zeros(301)
    for _ in range(3000):
        count[chosen := draw_samples(proba, rng)] += 1
        assert len(np.unique(chosen)) == 20
    assert not count[:100].any()
    np.testing.assert_allclose(count / 3000, proba, atol=0.03)


@pytest.mark.slow
def test_the_interval_of_weighted_checks_holds_the_weighted_rate():
    # Heavy samples are wrong more often: unweighted checks would answer half the rate.
    rng = np.random.default_rng(0)
    weight = rng.choice([1.0, 5.0], 4000)
    wrong = rng.random(4000) < np.where(weight > 1, 0.25, 0.02)
    rate, n_holds = np.average(wrong, weights=weight), 0
    log_odds = np.full(4000, 2.2)
    state = np.random.RandomState(0)
    for _ in range(80):
        proba = compute_inclusion(weight, 100)
        checked = draw_samples(proba, state)
        found = estimate_rate(log_odds, weight, checked, wrong[checked], 1.0 / proba[checked])
        low, high = found.interval
        n_holds += low <= rate <= high
    assert n_holds >= 0.9 * 80


@pytest.mark.slow
def test_groups_of_any_kind_are_groups():
    given, _ = flip_labels(Y[:300], fraction=0.1, random_state=0)
    numbers = np.arange(300) // 3
    text = np.array([f"patient {i}" for i in numbers], dtype=object)
    text[:3] = None
    columns = [[i // 10, str(i % 10)] for i in numbers]
    expected = LabelIssueFinder(GaussianNB()).fit(X[:300], given, groups=numbers).issues_
    for groups in (text, columns):
        finder = LabelIssueFinder(GaussianNB()).fit(X[:300], given, groups=groups)
        assert (
            np.abs(finder.issues_["p_label_correct"] - expected["p_label_correct"]).mean() < 0.06
        )


@pytest.mark.slow
def test_verified_labels_are_no_issues():
    given, flipped = flip_labels(Y, fraction=0.1, random_state=0)
    verified = np.zeros(len(Y), dtype=bool)
    verified[np.flatnonzero(~flipped)[:200]] = True
    verified[np.flatnonzero(flipped)[0]] = True  # who verifies is right
    finder = LabelIssueFinder(_scorer()).fit(X, given, verified=verified)
    assert (finder.issues_["p_label_correct"][verified] == 1).all()
    assert not finder.issues_["is_issue"][verified].any()
    for wrong in (verified.astype(int), verified[:-1]):
        with pytest.raises(ValueError, match=r"^verified must be boolean and of shape"):
            finder.fit(X, given, verified=wrong)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model predicts")
def test_a_refit_helps_where_labels_are_bad():
    rng = np.random.default_rng(0)
    right, scorer = [], RelativeMahalanobisScorer(shrinkage="auto")
    for seed in range(3):
        centers = 0.8 * rng.normal(size=(20, 30))
        data, true = make_blobs(300, centers=centers, cluster_std=1.0, random_state=seed)
        given, _ = flip_labels(true, fraction=0.4, random_state=seed)
        for n_refits in (0, 1):
            finder = LabelIssueFinder(scorer, noise="random", n_refits=n_refits)
            finder.fit(data, given)
            right.append((finder.issues_["suggested_label"] == true).mean())
    assert np.mean(right[1::2]) > np.mean(right[::2]) + 0.02 > 0.6


@pytest.mark.slow
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


@pytest.mark.slow
def test_estimator_is_fitted_to_the_suggested_labels():
    given, _ = flip_labels(Y, fraction=0.2, random_state=0)
    finder = LabelIssueFinder(_scorer(), noise="random", n_refits=1).fit(X, given)
    first = LabelIssueFinder(_scorer(), noise="random", n_refits=0).fit(X, given)
    expected = _scorer().fit(X, first.issues_["suggested_label"])
    np.testing.assert_allclose(finder.estimator_[-1].means_, expected[-1].means_)


@pytest.mark.slow
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
    plain = find_label_issues(_scorer(), X, given, as_frame=True)
    np.testing.assert_array_equal(plain.index, plain["sample"])  # not the rank
    # The obvious repair goes to the samples that it names.
    repaired = pd.Series(given).copy()
    wrong = plain[plain["is_issue"]]
    repaired[wrong.index] = wrong["suggested_label"]
    assert (repaired == Y).mean() > (given == Y).mean()
    series = find_label_issues(_scorer(), X, pd.Series(given, index=frame.index), as_frame=True)
    assert list(series.index) == list(table.index)


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


@pytest.mark.slow
def test_weights_for_a_classifier_without_them_are_refused():
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(ValueError, match="estimator must have the parameter 'sample_weight'"):
        LabelIssueFinder(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(len(X)))
    finder = LabelIssueFinder(LogisticRegression(max_iter=10_000), cv=2, n_refits=0)
    weighted = finder.fit(X[:200], Y[:200], sample_weight=np.full(200, 1.0)).noise_rate_
    assert weighted == pytest.approx(finder.fit(X[:200], Y[:200]).noise_rate_, abs=1e-3)


@pytest.mark.slow
def test_probabilities_are_a_mean_of_those_before_and_after_the_refit(monkeypatch):
    centers = 0.8 * np.random.default_rng(0).normal(size=(20, 30))
    data, true = make_blobs(200, centers=centers, random_state=0)
    given, _ = flip_labels(true, fraction=0.3, random_state=0)
    scorer = RelativeMahalanobisScorer(shrinkage="auto")
    options = {"noise": "random", "n_refits": 1}
    mean = LabelIssueFinder(scorer, **options).fit(data, given)
    first = LabelIssueFinder(scorer, noise="random", n_refits=0).fit(data, given).label_proba_
    monkeypatch.setattr("skcalib.labels._em.FIRST_FIT_WEIGHT", 0.0)
    last = LabelIssueFinder(scorer, **options).fit(data, given).label_proba_
    assert np.abs(first - last).max() > 0.01
    # Ten samples a class: the first counts for a third.
    np.testing.assert_allclose(mean.label_proba_, first / 3 + 2 * last / 3, atol=1e-4)
    low, high = mean.noise_rate_interval_
    assert low < mean.noise_rate_ < high


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
@pytest.mark.filterwarnings("ignore:The features hardly predict:skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("total", [1.0, 1e-290])
def test_weights_that_do_not_count_samples_are_refused(total):
    X, y = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(ValueError, match="sample_weight must count samples"):
        LabelIssueFinder().fit(X, y, sample_weight=np.full(60, total / 60))
    # Folds do not need counts.
    LabelIssueFinder(GaussianNB()).fit(X, y, sample_weight=np.full(60, total / 60))


PROBA = np.random.default_rng(0).dirichlet(np.ones(3), size=300)


@pytest.mark.slow
def test_verified_labels_narrow_the_interval_by_what_is_left():
    given, flipped = flip_labels(Y, fraction=0.2, random_state=0)
    plain = LabelIssueFinder(_scorer(), n_refits=0, noise="random").fit(X, given)
    # Most samples are added again, verified and right (a little moved, so that they are no
    # copies): the rate is that of all.
    moved = X[~flipped] + np.random.default_rng(0).normal(size=X[~flipped].shape)
    data, labels = np.concatenate([X, moved]), np.concatenate([given, Y[~flipped]])
    known = np.arange(len(data)) >= len(X)
    more = LabelIssueFinder(_scorer(), n_refits=0, noise="random")
    more.fit(data, labels, verified=known)
    share = len(X) / len(data)
    assert more.noise_rate_ == pytest.approx(share * plain.noise_rate_, rel=0.1)
    width = np.diff(more.noise_rate_interval_)[0]
    assert width == pytest.approx(share * np.diff(plain.noise_rate_interval_)[0], rel=0.2)


@pytest.mark.slow
def test_probabilities_need_no_estimator():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 600)
    proba = np.exp(3.0 * np.eye(3)[true] + rng.normal(size=(600, 3)))
    proba /= proba.sum(axis=1, keepdims=True)
    given, flipped = flip_labels(true, fraction=0.2, random_state=0)
    finder = LabelIssueFinder("precomputed").fit(proba, given)
    issue = finder.issues_["is_issue"]
    assert (issue & flipped).sum() > 0.8 * max(flipped.sum(), issue.sum())
    assert finder.noise_rate_ == pytest.approx(0.2, abs=0.05)
    assert finder.base_models_ == {"precomputed": 1.0}
    table = find_label_issues("precomputed", proba, given)
    np.testing.assert_array_equal(np.sort(table["p_label_correct"]), table["p_label_correct"])


@pytest.mark.slow
def test_probabilities_take_text_labels_of_any_dtype():
    names = np.array(["ant", "bee", "cow"])
    given = PROBA.argmax(axis=1)
    assert np.array_equal(np.unique(given), np.arange(3))
    expected = LabelIssueFinder("precomputed").fit(PROBA, given).issues_
    for labels in (names[given], names[given].astype(object), list(names[given])):
        issues = LabelIssueFinder("precomputed").fit(PROBA, labels).issues_
        np.testing.assert_array_equal(issues["label"], names[given])
        np.testing.assert_array_equal(issues["p_label_correct"], expected["p_label_correct"])
        suggested = names[expected["suggested_label"]]
        np.testing.assert_array_equal(issues["suggested_label"], suggested)


@pytest.mark.slow
def test_probabilities_that_are_taken_for_features_warn():
    given = PROBA.argmax(axis=1)
    with pytest.warns(SkcalibWarning, match="estimator='precomputed'"):
        LabelIssueFinder(RelativeMahalanobisScorer(shrinkage=0.5)).fit(PROBA, given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelIssueFinder("precomputed").fit(PROBA, given)


@pytest.mark.slow
def test_a_list_of_base_models_is_pooled():
    given, flipped = flip_labels(Y, fraction=0.2, random_state=0)
    several = [_scorer(), GaussianNB(), make_pipeline(PCA(20, random_state=0), GaussianNB())]
    finder = LabelIssueFinder(several, cv=3, n_refits=0).fit(X, given)
    assert list(finder.base_models_) == ["RelativeMahalanobisScorer", "GaussianNB", "GaussianNB_2"]
    assert sum(finder.base_models_.values()) == pytest.approx(1)
    issue = finder.issues_["is_issue"]
    assert (issue & flipped).sum() > 0.9 * max(flipped.sum(), issue.sum())


@pytest.mark.slow
def test_nested_pipelines_are_scorers_too():
    nested = make_pipeline(StandardScaler(), make_pipeline(PCA(20), RelativeMahalanobisScorer()))
    given, flipped = flip_labels(Y, fraction=0.1, random_state=0)
    issue = LabelIssueFinder(nested).fit(X, given).issues_["is_issue"]
    assert (issue & flipped).sum() > 0.8 * max(flipped.sum(), issue.sum())


@cache
def _pickled_finder(**options):
    given, _ = flip_labels(Y, fraction=0.2, random_state=0)
    return pickle.dumps(LabelIssueFinder(_scorer(), n_refits=0, **options).fit(X, given))


def _checked(n_checks=60, **options):
    given, flipped = flip_labels(Y, fraction=0.2, random_state=0)
    finder = pickle.loads(_pickled_finder(**options))
    rows = finder.draw_samples_to_check(n_checks, random_state=1)
    return finder, rows, given, flipped


@pytest.mark.slow
def test_checks_are_drawn_uniformly_and_repeatably():
    finder, rows, *_ = _checked()
    np.testing.assert_array_equal(rows, finder.draw_samples_to_check(60, random_state=1))
    assert len(np.unique(rows)) == 60
    drawn = [finder.draw_samples_to_check(90, random_state=s) for s in range(100)]
    count = np.bincount(np.concatenate(drawn), minlength=len(X))
    # Of 100 draws of a tenth; five standard deviations.
    assert count.max() < 10 + 5 * 3
    with pytest.raises(ValueError, match="n_samples must be an int from 2 to the 900 samples"):
        finder.draw_samples_to_check(901)


@pytest.mark.slow
def test_a_draw_of_what_has_been_checked_is_told():
    finder, rows, given, _ = _checked()
    finder.update_with_checks(rows, given[rows])
    with pytest.warns(SkcalibWarning, match=r"All 60 samples .* pass them as exclude="):
        again = finder.draw_samples_to_check(60, random_state=1)
    np.testing.assert_array_equal(again, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more = finder.draw_samples_to_check(60, random_state=1, exclude=rows)
    assert not np.isin(more, rows).any()


@pytest.mark.slow
def test_checks_settle_checked_samples_and_moves_the_others():
    finder, rows, given, flipped = _checked()
    model = finder.issues_["p_label_correct"].copy()
    assert finder.n_checks_ == 0
    finder.update_with_checks(rows, Y[rows])
    assert finder.n_checks_ == 60
    issues, proba = finder.issues_, finder.label_proba_
    np.testing.assert_array_equal(issues["p_label_correct"][rows], ~flipped[rows])
    np.testing.assert_array_equal(issues["suggested_label"][rows], Y[rows])
    np.testing.assert_array_equal(issues["is_issue"], issues["p_label_correct"] < 0.5)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    others = np.setdiff1d(np.arange(len(X)), rows)
    others = others[(model[others] > 1e-3) & (model[others] < 0.999)]
    assert spearmanr(model[others], issues["p_label_correct"][others])[0] > 0.999
    low, high = finder.noise_rate_interval_
    assert low <= flipped.mean() <= high
    np.testing.assert_array_equal(proba[np.arange(len(X)), given], issues["p_label_correct"])


# Few samples do not settle it: doubt that all share would explain the labels nearly as well.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The 15 issues may all be right")
@pytest.mark.parametrize(("n_samples", "seed"), [(150, 1), (300, 0), (600, 1)])
def test_flips_between_classes_that_are_far_apart_are_repaired_and_none_invented(n_samples, seed):
    # Judges that have seen no wrong label could explain them by doubt that all samples share.
    centers = [(0, 0), (10, 0), (0, 10)]
    X, y = make_blobs(n_samples, centers=centers, random_state=seed)
    given = flip_labels(y, fraction=0.1, random_state=seed)[0]
    issues = LabelIssueFinder().fit(X, given).issues_
    repaired = np.where(issues["is_issue"], issues["suggested_label"], given)
    assert np.mean(repaired == y) > 0.98
    clean = LabelIssueFinder().fit(X, y)
    assert not clean.issues_["is_issue"].any()
    assert clean.caveats_ == ()


@pytest.mark.slow
def test_a_second_update_replaces_the_first():
    finder, rows, *_ = _checked()
    once, other = pickle.loads(pickle.dumps(finder)), finder.draw_samples_to_check(30)
    once.update_with_checks(rows, Y[rows])
    twice = finder.update_with_checks(other, Y[other]).update_with_checks(rows, Y[rows])
    np.testing.assert_allclose(twice.label_proba_, once.label_proba_, atol=1e-6)
    assert twice.noise_rate_interval_ == pytest.approx(once.noise_rate_interval_)


@pytest.fixture(scope="module")
def unchecked():
    return _checked()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([0, 0], [1, 2], "positions must be distinct and from 0 to 899"),
        ([0, 900], [1, 2], "positions must be distinct"),
        ([0.5, 1.0], [1, 2], "positions must be at least two integers"),
        ([], [], "positions must be at least two integers, got none: nothing was checked"),
        (np.array([], dtype=int), [], "got none: nothing was checked"),
        ([3], [1], r"positions must be at least two integers, got shape \(1,\)"),
        ([0, 1], ["", " "], "got 2 blanks: nobody has answered yet"),
        ([0, 1], [None, None], "got 2 missing values, each of which says"),
        ([0, 1], [np.nan, np.nan], "got 2 missing values"),
        ([0, 1], np.full(2, np.nan), "got 2 missing values"),
        ([0, 1], [1, 11], "true_labels"),
        ([0, 1], [1, 2, 3], "true_labels must have one label for each"),
    ],
)
def test_bad_checks_are_refused_and_change_nothing(rows, labels, message, unchecked):
    finder = unchecked
    before = finder.label_proba_.copy()
    with pytest.raises(ValueError, match=message):
        finder.update_with_checks(rows, labels)
    np.testing.assert_array_equal(finder.label_proba_, before)
    assert finder.n_checks_ == 0


@pytest.mark.slow
def test_the_function_takes_checks():
    finder, rows, given, _ = _checked()
    finder.update_with_checks(rows, Y[rows])
    table = find_label_issues(_scorer(), X, given, n_refits=0, checks=(rows, Y[rows]))
    p = finder.issues_["p_label_correct"]
    np.testing.assert_allclose(table["p_label_correct"], np.sort(p))
    for checks in ([], rows):
        with pytest.raises(ValueError, match="checks must be a pair, positions"):
            find_label_issues(_scorer(), X, given, checks=checks)
    with pytest.raises(ValueError, match="got none: nothing was checked"):
        find_label_issues(_scorer(), X, given, n_refits=0, checks=([], []))


@pytest.mark.slow
def test_log_odds_keep_the_ranking_that_rounding_loses():
    # Probabilities of single precision: most are 1, and the labels can be ranked all the same.
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 3000)
    proba = np.exp(9.0 * np.eye(3)[true] + 3.0 * rng.normal(size=(3000, 3)))
    proba = (proba / proba.sum(axis=1, keepdims=True)).astype(np.float32)
    finder = LabelIssueFinder("precomputed").fit(proba, true)
    p = finder.issues_["p_label_correct"]
    assert p.dtype == np.float64
    assert len(np.unique(p)) > 2000
    rows = finder.draw_samples_to_check(100, random_state=0)
    finder.update_with_checks(rows, true[rows])
    others = np.setdiff1d(np.arange(3000), rows)
    after = finder.issues_["p_label_correct"][others]
    assert len(np.unique(after)) > 1900
    assert spearmanr(p[others], after)[0] > 0.9999


@pytest.mark.slow
def test_the_most_suspicious_ones_are_known_and_say_nothing_of_the_rate():
    finder, _, _, flipped = _checked()
    low, high = finder.noise_rate_interval_
    worst = np.argsort(finder.issues_["p_label_correct"])[:100]
    with pytest.warns(
        SkcalibWarning, match=r"more suspicious than a random draw would be \(z = -"
    ):
        finder.update_with_checks(worst, Y[worst])
    assert finder.n_checks_ == 0
    assert not finder.is_trustworthy_
    assert any("no random draw" in d or "than a random draw" in d for d in finder.caveats_)
    np.testing.assert_array_equal(finder.issues_["p_label_correct"][worst], ~flipped[worst])
    assert finder.noise_rate_ == pytest.approx(0.2, abs=0.03)
    assert finder.noise_rate_interval_[0] == max(low, flipped[worst].sum() / len(Y))
    assert finder.noise_rate_interval_[1] <= high
    best = np.argsort(-finder.issues_["p_label_correct"])[:100]
    with pytest.warns(SkcalibWarning, match="less suspicious than a random draw"):
        finder.update_with_checks(best, Y[best])
    # Drawn besides, they count, and the worst ones are known.
    held = 0
    for seed in range(10):
        rows = finder.draw_samples_to_check(80, exclude=worst, random_state=seed)
        assert not np.isin(rows, worst).any()
        both = np.concatenate([worst, rows])
        low, high = finder.update_with_checks(both, Y[both]).noise_rate_interval_
        held += low <= flipped.mean() <= high
        assert finder.n_checks_ == 180
    assert finder.is_trustworthy_
    assert held >= 8
    # Without `exclude`, the draw alone counts.
    rows = finder.draw_samples_to_check(80, random_state=3)
    both = np.union1d(worst, rows)
    finder.update_with_checks(both, Y[both])
    assert finder.n_checks_ == 80
    assert (finder.issues_["p_label_correct"][worst] == ~flipped[worst]).all()


@pytest.mark.slow
def test_random_checks_of_anybody_count():
    finder, *_ = _checked()
    finder = pickle.loads(pickle.dumps(finder))
    for seed in range(20):
        rows = np.random.default_rng(seed).choice(len(Y), 100, replace=False)
        assert finder.update_with_checks(rows, Y[rows]).n_checks_ == 100


@pytest.mark.slow
def test_an_informative_draw_counts_by_its_probabilities():
    finder, _, _, flipped = _checked()
    held = 0
    for seed in range(30):
        rows = finder.draw_samples_to_check(100, design="informative", random_state=seed)
        low, high = finder.update_with_checks(rows, Y[rows]).noise_rate_interval_
        assert finder.n_checks_ == 100
        held += low <= flipped.mean() <= high
    assert held >= 26
    with pytest.raises(ValueError, match=r"^design must be 'random' or 'informative', got 'best'"):
        finder.draw_samples_to_check(design="best")
    with pytest.raises(ValueError, match="exclude must be distinct"):
        finder.draw_samples_to_check(exclude=[900])


@pytest.mark.slow
def test_two_draws_together_are_one():
    finder, *_, flipped = _checked()
    first = finder.draw_samples_to_check(60, design="informative", random_state=0)
    finder.update_with_checks(first, Y[first])
    second = finder.draw_samples_to_check(60, exclude=first, random_state=0)
    assert not np.isin(second, first).any()
    both = np.concatenate([second, first])
    low, high = finder.update_with_checks(both, Y[both]).noise_rate_interval_
    assert finder.n_checks_ == 120
    assert low <= flipped.mean() <= high


@pytest.mark.slow
def test_none_of_the_classes_is_an_answer_and_a_blank_is_none():
    finder, rows, given, flipped = _checked()
    answers = Y[rows].astype(float)
    answers[:2] = np.nan
    with pytest.warns(SkcalibWarning, match="2 of the 60 answers are missing values"):
        finder.update_with_checks(rows, answers)
    junk = rows[:2]
    assert (finder.issues_["p_label_correct"][junk] == 0).all()
    assert finder.issues_["is_issue"][junk].all()
    np.testing.assert_array_equal(finder.issues_["suggested_label"][junk], given[junk])
    assert (finder.label_proba_[junk] == 0).all()
    wrong = (flipped[rows] | (np.arange(60) < 2)).mean()
    assert finder.noise_rate_ == pytest.approx(wrong, abs=0.05)
    with pytest.warns(SkcalibWarning, match="1 of the 60 answers"):  # labels of numpy, and None
        finder.update_with_checks(rows, [None, *Y[rows[1:]]])
    assert (finder.label_proba_[rows[0]] == 0).all()
    words = LabelIssueFinder(_scorer(), n_refits=0).fit(X, WORDS[given])
    rows = words.draw_samples_to_check(60, random_state=1)
    for missing in (None, np.nan):
        with pytest.warns(SkcalibWarning, match="1 of the 60 answers"):
            words.update_with_checks(rows, [missing, *WORDS[Y[rows[1:]]]])
        assert words.issues_["p_label_correct"][rows[0]] == 0
    with pytest.raises(ValueError, match="got a blank in 1 of 60; leave these positions out"):
        words.update_with_checks(rows, [" ", *WORDS[Y[rows[1:]]]])
    with pytest.warns(SkcalibWarning, match="3 of the 60 samples that were drawn have no answer"):
        words.update_with_checks(rows[3:], WORDS[Y[rows[3:]]])
    assert words.n_checks_ == 57
    assert any("have no answer" in doubt for doubt in words.caveats_)


@pytest.mark.slow
def test_how_many_more_checks():
    finder, rows, *_ = _checked()
    # Before the first check: the interval of so many is about as narrow.
    plan = finder.n_more_checks(0.1)
    assert finder.n_more_checks(0.2) < plan < finder.n_more_checks(0.05) < len(Y)
    for seed in range(2):
        first = finder.draw_samples_to_check(plan, random_state=seed)
        low, high = finder.update_with_checks(first, Y[first]).noise_rate_interval_
        assert 0.06 < high - low < 0.14
    finder, rows, *_ = _checked()
    finder.update_with_checks(rows, Y[rows])
    low, high = finder.noise_rate_interval_
    assert finder.n_more_checks(high - low) == 0
    more = finder.n_more_checks(0.5 * (high - low))
    assert 60 < more < 240
    later = finder.draw_samples_to_check(60 + more, random_state=5)
    low_then, high_then = finder.update_with_checks(later, Y[later]).noise_rate_interval_
    assert high_then - low_then < 0.75 * (high - low)
    assert finder.n_more_checks(1e-9) == len(Y) - 60 - more
    with pytest.raises(ValueError, match="width must be between 0 and 1"):
        finder.n_more_checks(0)


@pytest.mark.slow
def test_every_step_is_printed(capsys):
    X, y = load_wine(return_X_y=True)
    LabelIssueFinder().fit(X, y)
    assert not capsys.readouterr().out
    LabelIssueFinder([GaussianNB(), RMDScorer()], n_refits=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    pattern = r"\[LabelIssueFinder\] \.* (.*), total= +(\d+\.\d)s"
    steps, seconds = zip(*[re.fullmatch(pattern, line).groups() for line in lines])
    assert list(steps) == [
        "fit: GaussianNB",
        "fit: RelativeMahalanobisScorer",
        "fit: how labels go wrong",
        "probabilities of the labels",
    ]
    assert all(float(number) >= 0 for number in seconds)


@pytest.mark.slow
def test_interrupted_checks_change_nothing(monkeypatch):
    X, y = load_wine(return_X_y=True)
    finder = LabelIssueFinder(GaussianNB()).fit(X, y)
    finder.update_with_checks(np.arange(0, 100, 2), y[:100:2])
    proba, p_correct = finder.label_proba_.copy(), finder.issues_["p_label_correct"].copy()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(finder, "_set_class_rates", interrupted)
    state = vars(finder).copy()
    with pytest.raises(KeyboardInterrupt):
        finder.update_with_checks(np.arange(80), np.r_[2, y[1:80]])
    assert vars(finder).keys() == state.keys()
    assert all(vars(finder)[name] is state[name] for name in state)
    np.testing.assert_array_equal(finder.label_proba_, proba)
    np.testing.assert_array_equal(finder.issues_["p_label_correct"], p_correct)


@pytest.mark.slow
def test_checks_of_choice_beside_most_of_a_draw_are_known_and_no_more():
    X, y = load_digits(return_X_y=True)
    given, flipped = flip_labels(y, fraction=0.2, random_state=0)
    finder = LabelIssueFinder(RMDScorer()).fit(X, given)
    rows = finder.draw_samples_to_check(100, random_state=0)
    suspects = np.setdiff1d(np.flatnonzero(finder.issues_["is_issue"]), rows)[:60]
    both = np.concatenate([rows[:-1], suspects])
    # One without an answer does not make a choice of all.
    with pytest.warns(SkcalibWarning, match="1 of the 100 samples that were drawn have no answer"):
        finder.update_with_checks(both, y[both])
    assert finder.n_checks_ == 99
    low, high = finder.noise_rate_interval_
    assert low <= flipped.mean() <= high
    # A few of a draw among checks of choice are no draw.
    with pytest.warns(SkcalibWarning, match="more suspicious than a random draw"):
        finder.update_with_checks(both[90:], y[both[90:]])


@pytest.mark.slow
def test_frames_as_output_of_transformers_change_nothing():
    expected = LabelIssueFinder(_scorer()).fit(X[:300], Y[:300]).issues_
    with config_context(transform_output="pandas"):
        found = LabelIssueFinder(_scorer()).fit(X[:300], Y[:300]).issues_
    for column in ("p_label_correct", "novelty"):
        np.testing.assert_allclose(found[column], expected[column], rtol=1e-9)
