import numpy as np
import pytest
from scipy.special import digamma, logsumexp, softmax
from scipy.stats import beta

from skcalib.labels import LabelIssueFinder

# The likelihood has no public name; these tests compare it with loops over votes.
from skcalib.labels._vote_model import (
    VoteModel,
    Votes,
    _compute_posterior,
    _LeftOut,
    fit_votes,
    leave_out_votes,
    make_evidence,
)
from skcalib.utils import SkcalibWarning


def simulated(seed=0, n=600, n_classes=4, n_annotators=30, n_each=3):
    """Annotators of different skill, and two base models that know something of the classes."""
    rng = np.random.default_rng(seed)
    true = rng.integers(n_classes, size=n)
    skill = rng.beta(6, 2.5, n_annotators)
    who = np.array([rng.choice(n_annotators, n_each, replace=False) for _ in range(n)])
    right = rng.uniform(size=who.shape) < skill[who]
    said = np.where(
        right, true[:, None], (true[:, None] + rng.integers(1, n_classes, who.shape)) % n_classes
    )
    sample = np.repeat(np.arange(n), n_each)
    votes = Votes(sample, who.ravel(), said.ravel(), n, n_annotators, n_classes)
    scores = [1.5 * np.eye(n_classes)[true] + rng.normal(size=(n, n_classes)) for _ in range(2)]
    evidence = make_evidence(scores, votes, np.ones(n), np.full(n, -1))
    return votes, evidence, true, skill


def fitted(plain=False, **size):
    votes, evidence, _, _ = simulated(n=30, n_classes=3, n_annotators=6, **size)
    model = VoteModel(votes, evidence, plain=plain).climb()
    model.vote_power, model.score_power = 0.7, 0.8
    return model


def log_tables(model):
    """log T of all annotators, levels, classes and labels, by its definition."""
    votes, n_classes = model.votes, model.votes.n_classes
    c, counts = model.concentration, np.zeros((votes.n_annotators, n_classes, n_classes))
    for entry, (who, label) in enumerate(zip(model.who, model.label)):
        counts[who, :, label] = model.counts[entry]
    if model.plain:
        right = np.einsum("akk->a", counts)
        wrong = counts.sum(axis=(1, 2)) - right
        p = model.rows[0, 0]
        easy = np.empty_like(counts)
        easy[:] = (digamma(wrong + c * (1 - p)) - np.log(n_classes - 1))[:, None, None]
        easy[:, np.arange(n_classes), np.arange(n_classes)] = digamma(right + c * p)[:, None]
        easy -= digamma(right + wrong + c)[:, None, None]
    else:
        easy = digamma(counts + c * model.rows)
        easy -= digamma(counts.sum(axis=2) + c)[:, :, None]
    hard = np.log(model.informed * np.exp(easy) + (1 - model.informed) * model.frequency)
    return np.stack([easy, hard])


@pytest.mark.parametrize("plain", [True, False])
def test_posterior_is_that_of_a_loop(plain):
    model = fitted(plain)
    votes, tables = model.votes, log_tables(model)
    log_q, log_pi = model.pool.log_q_and_pi(model.evidence.scores)
    proba = model.joint(np.arange(30))
    for i in (0, 7, 29):
        joint = np.array([log_pi[z, i] + 0.8 * log_q[z, i] for z in range(2)])
        for who, label in zip(votes.annotator[votes.sample == i], votes.label[votes.sample == i]):
            joint += 0.7 * tables[:, who, :, label]
        assert proba[:, i] == pytest.approx(softmax(joint))


@pytest.mark.parametrize("plain", [True, False])
def test_votes_left_out_are_predicted_by_the_others(plain):
    model = fitted(plain)
    votes, tables = model.votes, log_tables(model)
    log_q, log_pi = model.pool.log_q_and_pi(model.evidence.scores)
    of, alpha = _LeftOut(model), 1.5
    value = of.log_likelihoods(0.7, 0.8, 0.4)[0]  # one of 1 + alpha is the other vote
    for vote in (0, 17, 52):
        i, label = votes.sample[vote], votes.label[vote]
        joint = log_pi[:, i, None] + 0.8 * log_q[:, i]
        others = np.flatnonzero((votes.sample == i) & (np.arange(len(votes.sample)) != vote))
        for k in others:
            joint = joint + 0.7 * tables[:, votes.annotator[k], :, votes.label[k]]
        posterior = np.exp(joint - logsumexp(joint))
        assert of.posterior(0.7, 0.8)[:, vote] == pytest.approx(posterior)
        chance = (posterior * of.t[:, vote]).sum()
        number = (votes.label[others] == label).sum()
        expected = np.log((alpha * chance + number) / (alpha + len(others)))
        assert value[vote] == pytest.approx(expected)


def test_gradient_of_votes_left_out_is_that_of_finite_differences():
    of, point = _LeftOut(fitted()), np.array([0.7, 0.8, 0.4])
    gradient = of.log_likelihoods(*point)[1]
    for i, step in enumerate(1e-6 * np.eye(3)):
        up, down = (of.log_likelihoods(*(point + s * step))[0].sum() for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-6, rel=1e-5)


@pytest.mark.slow
def test_the_consensus_is_right_more_often_than_a_majority_and_as_often_as_predicted():
    votes, evidence, true, _ = simulated()
    proba = fit_votes(votes, evidence).posterior()
    assert proba.sum(axis=1) == pytest.approx(np.ones(600))
    counts = votes.counts() + 1e-3 * np.random.default_rng(0).uniform(size=(600, 4))
    correct = proba.argmax(axis=1) == true
    assert correct.mean() > (counts.argmax(axis=1) == true).mean() + 0.02
    # People who err together are expected; these do not.
    assert -0.04 < proba.max(axis=1).mean() - correct.mean() < 0.02


def draw_votes(true, right, n_each, seed):
    """Votes of 20 people who are right with the probability of the class, else of any other."""
    rng, n = np.random.default_rng(seed), len(true)
    n_classes = len(right)
    votes = np.full((n, 20), np.nan)
    for i, label in enumerate(true):
        for who in rng.choice(20, n_each, replace=False):
            is_right = rng.uniform() < right[label]
            votes[i, who] = label if is_right else (label + rng.integers(1, n_classes)) % n_classes
    return votes


POPULATIONS = {
    "alike": ([0.5, 0.5], [0.75, 0.75], 5, 1000, 0.0),
    "hardly better than chance": ([0.5, 0.5], [0.6, 0.6], 3, 600, 0.0),
    "missed class": ([0.5, 0.5], [0.93, 0.5], 5, 600, 0.05),
    "rare class": ([0.95, 0.05], [0.85, 0.85], 5, 400, 0.0),
    "few samples": ([0.5, 0.5], [0.7, 0.7], 3, 50, 0.0),
    "four classes": ([0.25] * 4, [0.5] * 4, 5, 400, -0.01),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Annotators hardly agree beyond chance")
@pytest.mark.parametrize("population", POPULATIONS)
def test_votes_alone_never_lose_to_a_majority(population):
    frequency, right, n_each, n, gain = POPULATIONS[population]
    true = np.random.default_rng(1).choice(len(frequency), n, p=frequency)
    votes = draw_votes(true, right, n_each, 2)
    labels = LabelIssueFinder().fit(None, votes=votes).issues_["label"]
    counts = np.stack([(votes == k).sum(axis=1) for k in range(len(frequency))], axis=1)
    best = counts == counts.max(axis=1, keepdims=True)
    majority = (best[np.arange(n), true] / best.sum(axis=1)).mean()
    assert (labels == true).mean() >= majority + gain


@pytest.mark.slow
def test_classes_are_not_swapped_where_features_know_them_and_people_miss_one():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 300)
    votes = draw_votes(true, [0.93, 0.5], 5, 1)
    X = rng.normal(size=(300, 4))
    X[:, 0] += 2.0 * true
    labels = LabelIssueFinder().fit(X, votes=votes).issues_["label"]
    assert (labels == true).mean() > (np.nanmean(votes, axis=1) > 0.5).__eq__(true).mean() + 0.05


@pytest.mark.slow
def test_a_known_class_is_certain_and_one_more_vote_on_it_gains_nothing():
    votes, evidence, true, _ = simulated(n=100)
    known = np.where(np.arange(100) < 10, true, -1)
    model = fit_votes(votes, evidence._replace(known=known))
    assert model.posterior()[:10][np.arange(10), true[:10]] == pytest.approx(np.ones(10))
    gain = model.gain_of_a_vote()
    assert gain[:10] == pytest.approx(np.zeros(10), abs=1e-9)
    assert (gain > -1e-9).all()
    assert gain[10:].max() > 0.01


@pytest.mark.slow
def test_votes_that_repeat_others_are_no_new_evidence():
    votes, evidence, true, _ = simulated(n=1000)
    label, rng = votes.label.reshape(-1, 3).copy(), np.random.default_rng(3)
    for column in (1, 2):
        repeats = rng.uniform(size=len(label)) < 0.5
        label[repeats, column] = label[repeats, column - 1]
    model = fit_votes(votes._replace(label=label.ravel()), evidence)
    alone = fit_votes(votes, evidence)
    assert model.vote_power < 0.7 * alone.vote_power
    proba = model.posterior()
    right = (proba.argmax(axis=1) == true).mean()
    assert right > 0.83  # .79 if every vote is a person with an opinion
    assert proba.max(axis=1).mean() - right < 0.05


def test_samples_with_equal_votes_by_the_same_people_are_alike():
    votes, _, _, _ = simulated(n=400, n_classes=2, n_annotators=5, n_each=2)
    votes = votes.used(np.arange(400) % 7 > 0)  # some have no vote
    said = [[] for _ in range(400)]
    for row, who, label in zip(votes.sample, votes.annotator, votes.label):
        said[row].append((who, label))
    names = {}
    expected = np.array([names.setdefault(tuple(sorted(part)), len(names)) for part in said])
    found = votes.alike()
    assert len(np.unique(found)) == len(names) < 60
    assert len(np.unique(np.stack([found, expected]), axis=1).T) == len(names)


def test_what_checks_find_is_certain_whoever_voted():
    votes, evidence, true, _ = simulated(n=40)
    model = fit_votes(votes, evidence)
    named, _ = leave_out_votes(model, np.eye(4)[true])
    assert named == pytest.approx(1.0 * (votes.label == true[votes.sample]))


def test_where_the_truth_is_known_the_interval_is_that_of_a_beta_distribution():
    n_votes, n_right = np.array([30, 3, 40_000]), np.array([24, 3, 30_000])
    who = np.repeat(np.arange(3), n_votes)
    right = np.concatenate([np.arange(n) < m for n, m in zip(n_votes, n_right)])
    votes = Votes(np.arange(len(who)), who, 1 - right, len(who), 3, 2)
    grid = _compute_posterior(votes, (1.0 * right, 1.0 - right), 0.7, 5.0, np.ones(len(who)))
    for q in (0.025, 0.5, 0.975):
        exact = beta.ppf(q, n_right + 3.5, n_votes - n_right + 1.5)
        assert grid.at(q) == pytest.approx(exact, abs=4e-3)


@pytest.mark.slow
def test_people_who_guess_are_a_caveat():
    votes = np.random.default_rng(0).integers(0, 3, (200, 4))
    with pytest.warns(SkcalibWarning, match="Annotators hardly agree beyond chance"):
        finder = LabelIssueFinder().fit(None, votes=votes)
    assert "Krippendorff's alpha is" in finder.caveats_[0]


@pytest.mark.slow
def test_a_unanimous_vote_that_is_overruled_is_a_caveat():
    # Two people, who are wrong wherever the others show it, voted alone on the last samples.
    true = np.repeat([0, 1], 100)
    votes = np.stack([true] * 7 + [1 - true] * 2, axis=1).astype(float)
    alone = np.array([[np.nan] * 7 + [k, k] for k in (0.0, 1.0)])
    with (
        pytest.warns(SkcalibWarning, match="2 samples on which all votes agree have another"),
        pytest.warns(SkcalibWarning, match="^Annotator 7 seems to repeat the votes of 8"),
    ):
        finder = LabelIssueFinder().fit(None, votes=np.concatenate([votes, alone]))
    assert finder.issues_["label"][-2:].tolist() == [1, 0]
    assert len(finder.caveats_) == 2


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [0.0, 0.8, 1.0])
def test_a_person_who_copies_another_is_named_and_counts_for_less(repeated):
    rng, n = np.random.default_rng(303), 300
    true, hard = rng.integers(0, 2, n), rng.random(n) < 0.15
    skill = np.where(hard[:, None], 0.6, [0.86, 0.93, 0.9, 0.85, 0.83])
    votes = np.where(rng.random((n, 5)) < skill, true[:, None], 1 - true[:, None])
    votes[:, 4] = np.where(rng.random(n) < repeated, votes[:, 0], votes[:, 4])
    four = votes[:, :4].sum(axis=1)
    majority = np.where(four == 2, 0.5, (four > 2) == true).mean()
    if not repeated:
        finder = LabelIssueFinder().fit(None, votes=votes)
        assert len(finder.copying_pairs_) == 0
    else:
        with pytest.warns(SkcalibWarning, match="seems to repeat the votes of"):
            finder = LabelIssueFinder().fit(None, votes=votes)
        pair = finder.copying_pairs_[0]
        assert {int(pair["copier"]), int(pair["source"])} == {0, 4}
        assert pair["low"] <= pair["proba"] <= pair["high"]
        assert abs(pair["proba"] - repeated) < 0.1
    assert (finder.issues_["label"] == true).mean() >= majority - 0.01
    assert -np.log(finder.label_proba_[np.arange(n), true]).mean() < 0.25
    table, accuracy = finder.annotators_, (votes == true[:, None]).mean(axis=0)
    held = (table["accuracy_low"] <= accuracy) & (accuracy <= table["accuracy_high"])
    assert held.sum() >= 4


@pytest.mark.slow
def test_the_rate_of_wrong_labels_may_be_that_of_twice_as_many_shared_errors():
    # In a fifth of the samples votes say no more than their fractions; it may be in two fifths.
    rng, n = np.random.default_rng(5), 120
    true = rng.integers(0, 3, n)
    votes = np.where(rng.random((n, 5)) < 0.8, true[:, None], rng.integers(0, 3, (n, 5)))
    finder = LabelIssueFinder().fit(None, votes=votes)
    label = finder.issues_["label"]
    fraction = ((votes == label[:, None]).sum(axis=1) + 1 / 3) / 6
    own = finder.label_proba_[np.arange(n), label]
    twice = own + (fraction - own) * 0.2 / 0.8
    error = 1.96 * np.sqrt((twice * (1 - twice)).sum()) / n
    low, high = finder.noise_rate_interval_
    assert high == pytest.approx((1 - twice).mean() + error)
    assert low < finder.noise_rate_ < high


@pytest.mark.slow
@pytest.mark.parametrize(("part", "repeated"), [(0.3, 0.9), (1.0, 0.9), (1.0, 1.0)])
def test_of_four_people_who_copies_is_named_only_if_all_is_copied(part, repeated):
    # Two copy; unless all their votes are the same, the other two may do so as well.
    rng, n = np.random.default_rng(0), 400
    true = rng.integers(0, 5, n)
    votes = np.where(rng.random((n, 4)) < 0.85, true[:, None], rng.integers(0, 5, (n, 4)))
    votes[:, 1] = np.where(rng.random(n) < repeated, votes[:, 0], votes[:, 1])
    votes = np.where(np.arange(4) == 3, np.where(rng.random((n, 1)) < part, votes, np.nan), votes)
    if repeated < 1:
        assert len(LabelIssueFinder().fit(None, votes=votes).copying_pairs_) == 0
        return
    with pytest.warns(SkcalibWarning, match="seems to repeat the votes of"):
        finder = LabelIssueFinder().fit(None, votes=votes)
    pairs = finder.copying_pairs_
    assert [{int(pair["copier"]), int(pair["source"])} for pair in pairs] == [{0, 1}]
    assert pairs["high"][0] > 0.95


@pytest.mark.slow
def test_boolean_votes_stay_boolean_beside_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    true = X[:, 0] > 0
    votes = np.where(rng.random((90, 4)) < 0.85, true[:, None], ~true[:, None])
    first = LabelIssueFinder().fit(X, true, votes=votes)
    for y, given in ((true.astype(object), votes), (true, votes.astype(object))):
        found = LabelIssueFinder().fit(X, y, votes=given)
        assert found.classes_.tolist() == [False, True]
        assert found.issues_["suggested_label"].dtype == bool
        np.testing.assert_array_equal(found.issues_, first.issues_)
    numbers = LabelIssueFinder().fit(X, true.astype(int), votes=votes)
    assert numbers.classes_.tolist() == [0, 1]
    assert numbers.classes_.dtype.kind == "i"
    np.testing.assert_allclose(numbers.label_proba_, first.label_proba_)
    rows = first.draw_samples_to_check(20, random_state=0)
    assert first.update_with_checks(rows, true[rows]).n_checks_ == 20


@pytest.mark.slow
def test_a_majority_that_the_checks_prefer_is_a_caveat():
    # Three annotators near chance may outvote two who are nearly always right.
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 400)
    right = rng.random((400, 5)) < [0.97, 0.95, 0.55, 0.55, 0.55]
    votes = np.where(right, true[:, None], 1 - true[:, None])
    finder = LabelIssueFinder().fit(None, votes=votes)
    majority = (votes.sum(axis=1) > 2).astype(int)
    consensus = finder.label_proba_.argmax(axis=1)
    assert (consensus == true).mean() > (majority == true).mean() + 0.04
    rows = finder.draw_samples_to_check(90, random_state=0)
    finder.update_with_checks(rows, true[rows])
    assert not any("a majority of the votes" in text for text in finder.caveats_)
    differ = int((consensus[rows] != majority[rows]).sum())
    assert differ > 2
    with pytest.warns(SkcalibWarning, match="Of 90 checked samples with votes, the consensus is"):
        finder.update_with_checks(rows, majority[rows])
    text = finder.caveats_[-1]
    assert f"is right on {90 - differ} and a majority of the votes on 90:" in text
