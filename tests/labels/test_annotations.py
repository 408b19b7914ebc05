"""Votes of several people through the finder."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import shuffle

from skcalib.labels import (
    LabelCleaningClassifier,
    LabelIssueFinder,
    find_label_issues,
    votes_from_counts,
    votes_from_long,
)

# Many matrices are read here without a fit.
from skcalib.labels._annotations import read_votes
from skcalib.utils import SkcalibWarning


def crowd(true, n_each=3, n_annotators=12, seed=0, classes=None):
    """Votes of annotators of different skill, NaN where nobody was asked."""
    rng = np.random.default_rng(seed)
    classes = np.unique(true) if classes is None else np.asarray(classes)
    skill = rng.beta(6, 2.5, n_annotators)
    votes = np.full((len(true), n_annotators), np.nan)
    for row, label in enumerate(true):
        for who in rng.choice(n_annotators, n_each, replace=False):
            others = classes[classes != label]
            votes[row, who] = label if rng.uniform() < skill[who] else rng.choice(others)
    return votes, skill


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return tuple(array[:400] for array in shuffle(X, y, random_state=0))


@pytest.fixture(scope="module")
def fitted(digits):
    X, y = digits
    votes, skill = crowd(y)
    return LabelIssueFinder().fit(X, votes=votes), votes, skill


@pytest.mark.slow
def test_features_and_votes_are_right_more_often_than_a_majority(digits, fitted):
    _, y = digits
    finder, votes, _ = fitted
    counts = np.stack([(votes == k).sum(axis=1) for k in range(5)], axis=1)
    correct = finder.label_proba_.argmax(axis=1) == y
    assert correct.mean() > (counts.argmax(axis=1) == y).mean() + 0.02
    # People who err together are expected; these do not.
    assert -0.04 < finder.label_proba_.max(axis=1).mean() - correct.mean() < 0.02
    assert (finder.issues_["label"] == finder.label_proba_.argmax(axis=1)).all()
    low, high = finder.noise_rate_interval_
    assert low <= (~correct).mean() <= high


@pytest.mark.slow
def test_base_models_fitted_to_votes_and_base_models_are_better():
    X, y = (array[:400] for array in shuffle(*load_digits(return_X_y=True), random_state=0))
    votes, _ = crowd(y, n_each=2)
    loss = []
    for n_refits in (0, 1):
        proba = LabelIssueFinder(n_refits=n_refits).fit(X, votes=votes).label_proba_
        loss.append(-np.log(proba[np.arange(400), y]).mean())
    assert loss[1] < 0.9 * loss[0]


@pytest.mark.slow
def test_annotators_are_ranked_and_their_intervals_hold(fitted):
    finder, votes, skill = fitted
    table = finder.annotators_
    assert (table["n_votes"] == (~np.isnan(votes)).sum(axis=0)).all()
    assert np.corrcoef(table["accuracy"], skill)[0, 1] > 0.9
    holds = (table["accuracy_low"] <= skill) & (skill <= table["accuracy_high"])
    assert holds.sum() >= 10


@pytest.mark.slow
def test_every_vote_has_the_probability_of_its_class(fitted):
    finder, votes, _ = fitted
    said = ~np.isnan(votes)
    assert (np.isnan(finder.vote_p_correct_) == ~said).all()
    row, who = np.argwhere(said)[7]
    of_class = finder.label_proba_[row, int(votes[row, who])]
    assert finder.vote_p_correct_[row, who] == pytest.approx(of_class)
    assert (finder.issues_["n_votes"] == 3).all()
    agreed = (votes[row] == finder.issues_["label"][row]).sum() / 3
    assert finder.issues_["agreement"][row] == pytest.approx(agreed)


@pytest.mark.slow
def test_a_long_list_and_a_frame_equal_the_matrix(digits, fitted):
    pd = pytest.importorskip("pandas")
    X, _ = digits
    finder, votes, _ = fitted
    rows, who = np.nonzero(~np.isnan(votes))
    order = np.random.default_rng(0).permutation(len(rows))
    long = votes_from_long(rows[order], who[order], votes[rows, who].astype(int)[order])
    by_list = LabelIssueFinder().fit(X, votes=long)
    by_frame = LabelIssueFinder().fit(X, votes=pd.DataFrame(votes))
    for other in (by_list, by_frame):
        assert other.label_proba_ == pytest.approx(finder.label_proba_, abs=1e-9)
    assert by_list.vote_p_correct_ == pytest.approx(
        finder.vote_p_correct_[rows[order], who[order]], abs=1e-9
    )


@pytest.mark.slow
def test_what_is_masked_is_no_vote(digits, fitted):
    X, _ = digits
    finder, votes, _ = fitted
    masked = np.ma.masked_array(np.nan_to_num(votes).astype(int), np.isnan(votes))
    again = clone(finder).fit(X, votes=masked)
    np.testing.assert_array_equal(again.classes_, finder.classes_)
    np.testing.assert_allclose(again.label_proba_, finder.label_proba_, atol=1e-9)


@pytest.mark.slow
def test_texts_are_labels_as_numbers_are(digits, fitted):
    X, _ = digits
    finder, votes, _ = fitted
    names = np.array(["a", "b", "c", "d", "e"], dtype=object)
    texts = np.where(np.isnan(votes), None, names[np.nan_to_num(votes).astype(int)])
    by_text = LabelIssueFinder().fit(X, votes=texts)
    assert by_text.classes_.tolist() == names.tolist()
    assert by_text.label_proba_ == pytest.approx(finder.label_proba_, abs=1e-9)


@pytest.mark.slow
def test_y_is_judged_and_is_no_evidence(digits, fitted):
    X, y = digits
    finder, votes, _ = fitted
    wrong = np.where(np.arange(400) < 40, (y + 1) % 5, y)
    judged = LabelIssueFinder().fit(X, wrong, votes=votes)
    assert judged.label_proba_ == pytest.approx(finder.label_proba_, abs=1e-9)
    found = judged.issues_["is_issue"]
    assert found[:40].mean() > 0.9
    assert found[40:].mean() < 0.05
    assert (judged.issues_["label"] == wrong).all()
    # The log-loss of the base models' prediction, of which the margin is a part.
    margin, difficulty = judged.issues_["margin"], judged.issues_["difficulty"]
    assert margin.max() > 0
    assert (difficulty >= 0.5 * margin - 1e-9).all()


@pytest.mark.slow
def test_one_vote_for_every_sample_is_a_label(digits):
    X, y = digits
    votes, _ = crowd(y, n_each=1)
    labels = np.nansum(votes, axis=1).astype(int)
    by_votes = LabelIssueFinder().fit(X, votes=votes)
    by_labels = LabelIssueFinder().fit(X, labels)
    assert by_votes.label_proba_ == pytest.approx(by_labels.label_proba_)
    assert by_votes.noise_rate_ == by_labels.noise_rate_
    assert len(by_votes.annotators_) == 12
    assert len(by_votes.suggest_votes(5)) == 5


@pytest.mark.slow
def test_samples_without_votes_are_judged_by_the_others(digits):
    X, y = digits
    votes, _ = crowd(y)
    votes[::8] = np.nan
    finder = LabelIssueFinder().fit(X, votes=votes)
    assert (finder.label_proba_[::8].argmax(axis=1) == y[::8]).mean() > 0.9
    assert (finder.issues_["n_votes"][::8] == 0).all()
    assert np.isnan(finder.issues_["agreement"][::8]).all()


@pytest.mark.slow
def test_probabilities_at_hand_are_a_judge(digits, fitted):
    X, y = digits
    _, votes, _ = fitted
    model = LogisticRegression(C=0.01, max_iter=500).fit(X[:200], y[:200])
    finder = LabelIssueFinder("precomputed").fit(model.predict_proba(X), votes=votes)
    assert (finder.label_proba_.argmax(axis=1) == y).mean() > 0.95
    assert list(finder.base_models_) == ["precomputed"]


def test_votes_that_help_most_are_those_on_which_people_differ(digits):
    _, y = digits
    votes, _ = crowd(y)
    finder = LabelIssueFinder().fit(None, votes=votes)
    rows = finder.suggest_votes(50)
    assert len(np.unique(rows)) == 50
    assert finder.issues_["agreement"][rows].mean() < finder.issues_["agreement"].mean() - 0.2


@pytest.mark.slow
def test_the_gain_of_one_more_vote_is_the_rise_of_the_fraction_right():
    # Four draws of 300 samples: six votes on each, of which three are hidden.
    expected, risen = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        true, skill = rng.integers(0, 3, 300), rng.uniform(0.5, 0.9, 12)
        asked = rng.random((300, 12)).argsort(axis=1).argsort(axis=1)
        slip = (true[:, None] + rng.integers(1, 3, (300, 12))) % 3
        said = np.where(rng.random((300, 12)) < skill, true[:, None], slip)
        finder = LabelIssueFinder().fit(None, votes=np.where(asked < 3, said, np.nan))
        rows, gain = finder.suggest_votes(100, return_gain=True)
        assert (rows == finder.suggest_votes(100)).all()
        assert (np.diff(gain) <= 0).all()
        more = np.full(300, 3)
        more[rows] = 4
        after = LabelIssueFinder().fit(None, votes=np.where(asked < more[:, None], said, np.nan))
        right = [(f.issues_["label"] == true).mean() for f in (finder, after)]
        expected.append(gain.sum() / 300)
        risen.append(right[1] - right[0])
    assert np.mean(expected) == pytest.approx(np.mean(risen), abs=0.02)
    assert np.mean(risen) > 0.02


@pytest.mark.slow
def test_checks_correct_what_the_votes_say(digits):
    X, y = digits
    votes, _ = crowd(y)
    finder = LabelIssueFinder().fit(None, votes=votes)
    rows = finder.draw_samples_to_check(60, random_state=0)
    finder.update_with_checks(rows, y[rows])
    low, high = finder.noise_rate_interval_
    assert low <= (finder.issues_["label"] != y).mean() <= high
    said = ~np.isnan(votes[rows[0]])
    of_votes = finder.vote_p_correct_[rows[0], said]
    assert of_votes.tolist() == (votes[rows[0], said] == y[rows[0]]).tolist()
    assert not np.isin(finder.suggest_votes(20), rows).any()
    assert X.shape[0] == len(finder.issues_)


@pytest.mark.slow
@pytest.mark.parametrize("n_votes", [2, 4])
def test_people_of_one_mind_are_believed(n_votes):
    y = np.arange(60) % 3
    with pytest.warns(UserWarning, match="No two votes on a sample differ"):
        finder = LabelIssueFinder().fit(None, votes=np.repeat(y[:, None], n_votes, axis=1))
    assert (finder.label_proba_.argmax(axis=1) == y).all()


def test_an_annotator_with_one_vote_is_average(digits):
    _, y = digits
    votes, _ = crowd(y)
    lone = np.full((400, 1), np.nan)
    lone[3] = y[3]
    finder = LabelIssueFinder().fit(None, votes=np.hstack([votes, lone]))
    last = finder.annotators_[-1]
    assert last["n_votes"] == 1
    mean = np.nanmean(finder.vote_p_correct_)
    assert abs(last["accuracy"] - mean) < 0.1
    assert last["accuracy_low"] < 0.6
    assert last["accuracy_high"] > 0.9


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([1, 0, 1], r"votes must have shape \(n_samples, n_annotators\)"),
        ([[0, 1], [1, np.nan]], "votes must have a row for each of the 3 samples of X, got 2"),
        ([[np.nan], [None], [None]], "at least one vote, got missing values alone"),
        ([["a", ""], ["b", "a"], ["a", "b"]], "None or NaN where nobody voted, got a blank"),
        ([[0, 0], [0, 0], [0, 0]], "at least two classes"),
        ([[0, 0.5], [1, 1], [0, 0]], "votes of annotator 1 must hold class labels"),
        ([["a", 1], ["a", 1], ["b", 0]], "one type"),
        ({"Ann": [0, 1, 0]}, "got dict"),
    ],
)
def test_votes_that_cannot_be_read(votes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LabelIssueFinder().fit(np.zeros((3, 2)), votes=votes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [0, 1]}, "groups must have one entry for every sample, 3, got 2"),
        ({"y": ["a", "b", "a"]}, r"votes must hold labels of the type of y, \['a', 'b'\]"),
    ],
)
def test_what_does_not_fit_the_votes(options, message):
    with pytest.raises(ValueError, match=message):
        LabelIssueFinder().fit(np.eye(3), votes=[[0, 1], [1, 1], [0, 0]], **options)


def test_classes_of_votes_without_a_column():
    with pytest.raises(ValueError, match=r"each class in votes, .* got 2 columns and 3 classes"):
        LabelIssueFinder("precomputed").fit(np.full((3, 2), 0.5), votes=[[0, 2], [1, 1], [0, 0]])


def test_long_lists_that_cannot_be_read():
    with pytest.raises(ValueError, match="once on a sample, got 'Ann' on sample 'b' 2 times"):
        votes_from_long(["a", "b", "b"], ["Ann", "Ann", "Ann"], [0, 1, 0])
    with pytest.raises(ValueError, match="got 'Bob' on sample 'b' 2 times"):
        votes_from_long(list("aabb"), ["Ann", "Bob", "Bob", "Bob"], [0, 1, 0, 0])
    with pytest.raises(ValueError, match="annotators must have one entry for each of the 2"):
        votes_from_long([0, 1], ["Ann"], [0, 1])
    with pytest.raises(ValueError, match="samples must be in index, got 7"):
        votes_from_long([0, 7], ["Ann", "Bob"], [0, 1], index=range(3))
    with pytest.raises(ValueError, match="annotators must have a name for every vote"):
        votes_from_long([0, 1], ["Ann", None], [0, 1])


def test_a_frame_with_another_index_is_refused(digits):
    pd = pytest.importorskip("pandas")
    X, y = digits
    votes = pd.DataFrame(crowd(y)[0])
    with pytest.raises(ValueError, match="votes must have the index of X and y"):
        LabelIssueFinder().fit(pd.DataFrame(X), votes=votes.iloc[::-1])


def test_a_long_list_is_sliced_by_rows():
    votes = votes_from_long(
        [2, 0, 0, 3], ["a", "b", "a", "a"], ["x", "y", "x", "y"], index=range(4)
    )
    some = votes[np.array([3, 0, 0])]
    assert some.shape == (3, 2)
    assert some._sample.tolist() == [0, 1, 1, 2, 2]
    assert some._label.tolist() == ["y", "y", "x", "y", "x"]
    assert repr(votes) == "LongVotes(4 votes of 2 annotators on 4 samples)"


@pytest.mark.slow
@pytest.mark.parametrize("action", ["soft", "relabel", "drop", "weight"])
def test_a_classifier_learns_what_the_votes_say(digits, action):
    X, y = digits
    votes, _ = crowd(y)
    rng = np.random.default_rng(1)
    given = np.where(rng.uniform(size=400) < 0.4, rng.integers(5, size=400), y)
    plain = LogisticRegression(C=1e-3, max_iter=500)
    train, test = np.arange(300), np.arange(300, 400)
    finder = LabelIssueFinder(make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=500)))
    cleaning = LabelCleaningClassifier(clone(plain), finder, action=action)
    score = cleaning.fit(X[train], given[train], votes=votes[train]).score(X[test], y[test])
    assert score > plain.fit(X[train], given[train]).score(X[test], y[test])
    assert score > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("form", ["matrix", "list"])
def test_votes_are_sliced_with_the_rows_of_cross_validation(digits, form):
    X, y = digits
    votes, _ = crowd(y)
    rows, who = np.nonzero(~np.isnan(votes))
    if form == "list":
        votes = votes_from_long(rows, who, votes[rows, who].astype(int), index=range(400))
    with config_context(enable_metadata_routing=True):
        finder = LabelIssueFinder(LogisticRegression(C=0.1, max_iter=500))
        cleaning = LabelCleaningClassifier(LogisticRegression(C=0.1, max_iter=500), finder)
        cleaning.set_fit_request(votes=True)
        cleaning.estimator.set_fit_request(sample_weight=True)
        model = make_pipeline(MinMaxScaler(), cleaning)
        found = cross_validate(
            model, X, y, cv=2, params={"votes": votes}, return_estimator=True, error_score="raise"
        )
    assert found["test_score"].min() > 0.9  # against y
    for fitted in found["estimator"]:
        inner = fitted[-1].finder_
        assert len(inner.issues_) == 200
        assert inner.annotators_["n_votes"].sum() == 600


@pytest.mark.slow
def test_samples_of_weight_0_bring_no_votes(digits):
    X, y = digits
    votes, _ = crowd(y)
    weight = (np.arange(400) < 300).astype(float)
    finder = LabelIssueFinder(LogisticRegression(C=0.1, max_iter=500))
    cleaning = LabelCleaningClassifier(LogisticRegression(C=0.1, max_iter=500), finder)
    cleaning.fit(X / 16, y, sample_weight=weight, votes=votes)
    assert len(cleaning.finder_.issues_) == 300
    assert cleaning.finder_.annotators_["n_votes"].sum() == 900


@pytest.mark.slow
def test_the_table_of_issues_takes_votes(digits):
    X, y = digits
    votes, _ = crowd(y)
    given = np.where(np.arange(400) % 20 == 0, (y + 1) % 5, y)
    issues = find_label_issues(None, X, given, votes=votes)
    finder = LabelIssueFinder().fit(X, given, votes=votes)
    order = issues["sample"]
    assert (np.diff(issues["p_label_correct"]) >= 0).all()
    for name in ("label", "p_label_correct", "n_votes", "agreement"):
        np.testing.assert_array_equal(issues[name], finder.issues_[name][order])
    assert np.mean(given[order[:20]] != y[order[:20]]) > 0.9
    alone = find_label_issues(None, None, votes=votes)
    assert (alone["label"] == alone["suggested_label"]).all()


def test_the_table_of_issues_is_named_by_the_index_of_votes():
    pd = pytest.importorskip("pandas")
    votes = pd.DataFrame([[0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1]], index=list("abcd"))
    issues = find_label_issues(None, None, [0, 1, 0, 1], votes=votes, as_frame=True)
    assert issues.index[0] == "c"


@pytest.mark.slow
def test_one_vote_for_every_sample_is_its_label(digits):
    X, y = digits
    given = np.where(np.arange(400) % 10 == 0, (y + 1) % 5, y)
    votes = np.full((400, 3), np.nan)
    votes[np.arange(400), np.arange(400) % 3] = given
    known = np.arange(400) % 7 == 1
    known &= given == y
    labels = LabelIssueFinder().fit(X, given, verified=known)
    finder = LabelIssueFinder().fit(X, given, votes=votes, verified=known)
    np.testing.assert_array_equal(finder.label_proba_, labels.label_proba_)
    assert finder.noise_rate_ == labels.noise_rate_
    # Other labels than the votes are judged by the votes.
    with pytest.warns(SkcalibWarning, match="No sample has two votes"):
        judged = LabelIssueFinder().fit(X, y, votes=votes)
    assert (judged.issues_["label"] == y).all()
    assert judged.annotators_["accuracy"].mean() < 1


@pytest.mark.slow
@pytest.mark.parametrize("by", ["votes", "probabilities"])
def test_annotators_are_judged_by_the_samples_that_count(by):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    votes = np.where(rng.random((200, 4)) < [0.9, 0.8, 0.7, 0.6], y[:, None], (y[:, None] + 1) % 3)
    votes = np.where(rng.random((200, 4)) < 0.3, np.nan, votes)
    votes[:60] = rng.integers(0, 3, (60, 4))  # of weight 0, whatever they say
    proba = softmax(rng.normal(size=(200, 3)) + 2 * np.eye(3)[y], axis=1)
    weight = (np.arange(200) >= 60).astype(float)

    def judged(rows, **options):
        X = None if by == "votes" else proba[rows]
        finder = LabelIssueFinder(None if X is None else "precomputed")
        return finder.fit(X, votes=votes[rows], **options).annotators_

    found, expected = judged(slice(None), sample_weight=weight), judged(slice(60, None))
    for name in ("accuracy", "accuracy_low", "accuracy_high"):
        np.testing.assert_allclose(found[name], expected[name], atol=0.01)
    assert (found["n_votes"] > expected["n_votes"]).all()  # all that were given are counted


@pytest.mark.slow
def test_a_marker_of_no_vote_is_told_and_an_opinion_is_not():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    votes = np.where(rng.random((60, 3)) < 0.8, y[:, None], rng.integers(0, 3, (60, 3)))
    marked = np.where(rng.random((60, 3)) < 0.3, -1, votes)
    with pytest.warns(
        SkcalibWarning, match=r"^votes has labels -1 and 0 to 2, .* replace it by NaN"
    ):
        told = LabelIssueFinder().fit(None, votes=marked)
    assert told.classes_.tolist() == [-1, 0, 1, 2]
    with pytest.warns(SkcalibWarning, match=r"^votes has labels -1"):
        LabelIssueFinder().fit(None, y, votes=marked)  # no class of y
    # A class of y, or negative, neutral and positive.
    LabelIssueFinder().fit(None, np.where(y == 2, -1, y), votes=np.where(marked == 2, -1, marked))
    LabelIssueFinder().fit(None, votes=votes - 1)
    LabelIssueFinder().fit(None, votes=np.where(marked == -1, np.nan, marked))


@pytest.mark.slow
def test_copies_with_their_votes_are_no_further_evidence(digits, fitted):
    X, y = digits
    alone, votes, _ = fitted
    jitter = 0.1 * X.std(axis=0) * np.random.default_rng(0).normal(size=(2, *X.shape))
    thrice, said = np.concatenate([X, *(X + jitter)]), np.tile(votes, (3, 1))
    with pytest.warns(
        SkcalibWarning, match="80. samples have a near-duplicate with the same votes"
    ):
        finder = LabelIssueFinder().fit(thrice, votes=said)
    right = finder.issues_["label"] == np.tile(y, 3)
    assert (
        right.mean() > (alone.issues_["label"] == y).mean() - 0.02
    )  # .2 less if they predict each other
    assert finder.label_proba_.max(axis=1).mean() < right.mean() + 0.02
    for end in ("accuracy_low", "accuracy", "accuracy_high"):
        assert finder.annotators_[end] == pytest.approx(alone.annotators_[end], abs=0.06)
    assert (finder.annotators_["n_votes"] == 3 * alone.annotators_["n_votes"]).all()


@pytest.mark.slow
def test_duplicates_on_which_others_have_voted_are_evidence(digits, fitted, recwarn):
    X, y = digits
    jitter = 0.1 * X.std(axis=0) * np.random.default_rng(0).normal(size=X.shape)
    twice = np.concatenate([X, X + jitter])
    finder = LabelIssueFinder().fit(twice, votes=np.concatenate([fitted[1], crowd(y, seed=7)[0]]))
    assert not [w for w in recwarn if "near-duplicate" in str(w.message)]
    right = finder.issues_["label"] == np.tile(y, 2)
    assert right.mean() >= (fitted[0].issues_["label"] == y).mean()


@pytest.mark.slow
def test_equal_rows_on_which_people_agree_may_be_other_samples(recwarn):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(300, 4)).astype(float)
    y = (X.sum(axis=1) > 4).astype(int)
    votes = np.where(rng.uniform(size=(300, 3)) < 0.8, y[:, None], 1 - y[:, None])
    finder = LabelIssueFinder(LogisticRegression()).fit(X, votes=votes)
    assert finder.n_duplicates_ > 200
    assert finder._voted.model.evidence.weight.tolist() == [1.0] * 300
    assert not [w for w in recwarn if "near-duplicate" in str(w.message)]


def test_boolean_votes_stay_boolean():
    votes = [[True, True, None], [False, False, True], [True, None, True], [False, False, False]]
    finder = LabelIssueFinder().fit(None, votes=votes)
    assert finder.classes_.dtype == bool
    assert finder.issues_["label"].tolist() == [True, False, True, False]
    finder = LabelIssueFinder().fit(None, [1, 0, 1, 0], votes=votes)
    assert finder.issues_["suggested_label"].tolist() == [1, 0, 1, 0]


@pytest.mark.slow
def test_numbers_of_votes_are_read_or_refused():
    true = np.repeat([0, 1, 2], 30)
    counts = np.random.default_rng(0).multinomial(5, 0.1 + 0.7 * np.eye(3)[true])
    with pytest.raises(ValueError, match=r"votes must hold labels.* votes_from_counts\(votes\)"):
        LabelIssueFinder().fit(None, votes=counts)
    votes = votes_from_counts(counts, ["a", "b", "c"])
    assert votes.shape == (90, 5)
    finder = LabelIssueFinder().fit(None, votes=votes)
    assert finder.issues_["n_votes"].tolist() == [5] * 90
    fraction = counts[np.arange(90), np.searchsorted(["a", "b", "c"], finder.issues_["label"])] / 5
    assert finder.issues_["agreement"] == pytest.approx(fraction)


def test_labels_that_people_give_are_no_numbers_of_votes():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_classes, n_annotators, n = rng.integers(2, 8), rng.integers(2, 12), rng.integers(10, 99)
        true = rng.choice(n_classes, n, p=rng.dirichlet(np.ones(n_classes)))
        said = rng.integers(n_classes, size=(n, n_annotators))
        votes = np.where(rng.random(said.shape) < rng.uniform(0.4, 1), true[:, None], said)
        if len(np.unique(votes)) > 1:
            read_votes(votes, None)


@pytest.mark.parametrize(
    ("counts", "labels", "message"),
    [
        ([[1, -1]], None, "whole numbers from 0"),
        ([[0.5, 0.5]], None, "whole numbers from 0"),
        ([[0, 0]], None, "at least one vote"),
        ([[1, 2]], ["a", "a"], "labels must be distinct"),
        ([1, 2], None, "shape"),
    ],
)
def test_numbers_that_are_none_of_votes_are_an_error(counts, labels, message):
    with pytest.raises(ValueError, match=message):
        votes_from_counts(counts, labels)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* samples on which all votes agree")
def test_the_rate_of_a_textbook_population_is_in_its_interval():
    held = 0
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        y, right = rng.integers(2, size=400), rng.beta(6, 2.5, 20)
        votes = np.full((400, 20), np.nan)
        for row, label in enumerate(y):
            for who in rng.choice(20, 3, replace=False):
                votes[row, who] = label if rng.random() < right[who] else 1 - label
        finder = LabelIssueFinder().fit(None, votes=votes)
        low, high = finder.noise_rate_interval_
        held += low <= (finder.issues_["label"] != y).mean() <= high
    assert held >= 11  # 11.4 are expected; a lower end of tempered votes alone: 7
