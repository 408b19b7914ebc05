import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import beta

from skcalib.labels._vote_model import (
    Others,
    VoteModel,
    Votes,
    _LeftOut,
    _of_others,
    _Passes,
    _posterior,
    _split,
    leave_out_votes,
    make_evidence,
)


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


def test_gradient_is_that_of_finite_differences():
    votes, evidence, _, _ = simulated(n=40, n_classes=3, n_annotators=5, n_each=2)
    evidence = evidence._replace(weight=np.random.default_rng(1).uniform(0.5, 2, 40))
    model, passes = VoteModel(votes, evidence), _Passes(votes, evidence)
    x = np.concatenate(model.center)
    x = x + 0.3 * np.random.default_rng(2).normal(size=len(x))
    gradient = np.concatenate(passes.likelihood(_split(x, model.center))[1])
    for i in range(len(x)):
        step = np.zeros_like(x)
        step[i] = 1e-6
        up, down = (passes.likelihood(_split(x + s * step, model.center))[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-5)


def test_likelihood_is_that_of_a_loop():
    votes, evidence, _, _ = simulated(n=12, n_classes=3, n_annotators=4, n_each=2)
    p = VoteModel(votes, evidence).center
    p = p._replace(annotators=np.array([0.4, -0.3, 0.1, 0.0]), classes=np.array([0.2, 0.0, -0.5]))
    total = 0.0
    for i in range(12):
        pooled = sum(np.exp(w) * s[i] for w, s in zip(p.base_models, evidence.scores))
        hard = 1 / (1 + np.exp(-(p.hard[0] + p.hard[1] * evidence.hardness[i])))
        chance = 0.0
        for z, pi in enumerate((1 - hard, hard)):
            q = softmax((np.exp(p.hard_base_models[0]) if z else 1.0) * pooled + p.offset)
            for k in range(3):
                product = q[k]
                for a, label in zip(
                    votes.annotator[votes.sample == i], votes.label[votes.sample == i]
                ):
                    odds = p.skill[0] + p.annotators[a] + p.classes[k] - z * np.exp(p.harder[0])
                    right = 1 / (1 + np.exp(-odds))
                    product *= right if label == k else (1 - right) / 2  # C is uniform here
                chance += pi * product
        total += np.log(chance)
    assert _Passes(votes, evidence).likelihood(p)[0] == pytest.approx(total, rel=1e-10)


def test_the_consensus_is_right_more_often_than_a_majority_and_as_often_as_it_says():
    votes, evidence, true, skill = simulated()
    model = VoteModel(votes, evidence).fit()
    proba = model.posterior()
    assert proba.sum(axis=1) == pytest.approx(np.ones(600))
    counts = votes.counts() + 1e-3 * np.random.default_rng(0).uniform(size=(600, 4))
    correct = proba.argmax(axis=1) == true
    assert correct.mean() > (counts.argmax(axis=1) == true).mean() + 0.02
    # People who err together are expected; these do not.
    assert -0.04 < proba.max(axis=1).mean() - correct.mean() < 0.02
    assert np.corrcoef(model.parameters.annotators, skill)[0, 1] > 0.7


def test_votes_alone_are_enough():
    votes, _, true, _ = simulated(n_each=5)
    alone = make_evidence([], votes, np.ones(600), np.full(600, -1))
    proba = VoteModel(votes, alone).fit().posterior()
    assert (proba.argmax(axis=1) == true).mean() > 0.9


def test_a_known_class_is_certain_and_one_more_vote_on_it_gains_nothing():
    votes, evidence, true, _ = simulated(n=100)
    known = np.where(np.arange(100) < 10, true, -1)
    model = VoteModel(votes, evidence._replace(known=known)).fit()
    assert model.posterior()[:10][np.arange(10), true[:10]] == pytest.approx(np.ones(10))
    gain = model.gain_of_a_vote()
    assert gain[:10] == pytest.approx(np.zeros(10), abs=1e-9)
    assert (gain > -1e-9).all()
    assert gain[10:].max() > 0.01


def test_what_is_left_out_is_the_posterior_of_the_other_votes():
    votes, evidence, _, _ = simulated(n=30, n_classes=3, n_annotators=6)
    model = VoteModel(votes, evidence).fit()
    named, elsewhere, hard, _ = leave_out_votes(model, model.posterior())
    for gone in (0, 17, 52):
        kept = np.arange(len(votes.sample)) != gone
        fewer = votes._replace(
            sample=votes.sample[kept], annotator=votes.annotator[kept], label=votes.label[kept]
        )
        joint = _Passes(fewer, evidence).joint(
            model.parameters, model.vote_power, model.score_power
        )[:, votes.sample[gone]]
        posterior = np.exp(joint - logsumexp(joint))
        label = votes.label[gone]
        assert named[:, gone] == pytest.approx(posterior[:, label])
        confusion = model.parameters.confusion.reshape(3, 3).copy()
        np.fill_diagonal(confusion, -np.inf)
        says = softmax(confusion, axis=1)[:, label]
        assert elsewhere[:, gone] == pytest.approx(posterior @ says)
        assert hard[gone] == pytest.approx(posterior[1].sum())


def test_votes_are_foretold_by_the_others_and_by_what_these_said():
    votes, evidence, _, _ = simulated(n=20, n_classes=3, n_annotators=6)
    model, exponents, alpha = VoteModel(votes, evidence).climb(), (0.7, 0.8), 1.5
    total = 0.0
    for gone in range(len(votes.sample)):
        kept = np.arange(len(votes.sample)) != gone
        row, label = votes.sample[gone], votes.label[gone]
        fewer = votes._replace(
            sample=votes.sample[kept], annotator=votes.annotator[kept], label=votes.label[kept]
        )
        joint = _Passes(fewer, evidence).joint(model.parameters, *exponents)[:, row]
        p, z = model.parameters, np.arange(2)[:, None]
        odds = p.skill + p.annotators[votes.annotator[gone]] + p.classes - z * np.exp(p.harder)
        confusion = p.confusion.reshape(3, 3).copy()
        np.fill_diagonal(confusion, -np.inf)
        says = softmax(confusion, axis=1)[:, label] / (1 + np.exp(odds))
        says[:, label] = 1 / (1 + np.exp(-odds[:, label]))
        chance = (np.exp(joint - logsumexp(joint)) * says).sum()
        # An urn: alpha new opinions, and the other votes.
        others = votes.label[(votes.sample == row) & kept]
        total += np.log((alpha * chance + (others == label).sum()) / (alpha + len(others)))
    passes, point = _LeftOut(votes, evidence, model.parameters), np.array([0.7, 0.8, 0.4])
    value, gradient = passes.likelihood(*point)  # one of 1 + alpha is the other vote
    assert value == pytest.approx(total, rel=1e-10)
    for i, step in enumerate(1e-6 * np.eye(3)):
        up, down = (passes.likelihood(*(point + s * step))[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_votes_that_repeat_others_are_no_new_evidence():
    votes, evidence, true, _ = simulated(n=1500)
    label, rng = votes.label.reshape(-1, 3).copy(), np.random.default_rng(3)
    for column in (1, 2):
        repeats = rng.uniform(size=len(label)) < 0.5
        label[repeats, column] = label[repeats, column - 1]
    model = VoteModel(votes._replace(label=label.ravel()), evidence).fit()
    alone = VoteModel(votes, evidence).fit()
    assert model.vote_power < 0.7 * alone.vote_power
    proba = model.posterior()
    right = (proba.argmax(axis=1) == true).mean()
    assert right > 0.83  # .79 if every vote is a person with an opinion
    assert proba.max(axis=1).mean() - right < 0.05


def test_samples_of_which_everybody_said_the_same_are_alike():
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


def test_what_checks_say_is_certain_whoever_voted():
    votes, evidence, true, _ = simulated(n=40)
    model = VoteModel(votes, evidence).fit()
    named, _, _, _ = leave_out_votes(model, np.eye(4)[true])
    assert named.sum(axis=0) == pytest.approx(1.0 * (votes.label == true[votes.sample]))


def known_samples(n_votes, n_right):
    """Votes on samples that are known, none of them hard, and what the others say of them."""
    who = np.repeat(np.arange(len(n_votes)), n_votes)
    right = np.concatenate([np.arange(n) < m for n, m in zip(n_votes, n_right)])
    votes = Votes(np.arange(len(who)), who, 1 - right, len(who), len(n_votes), 2)
    named, wrong = (np.stack([part, np.zeros(len(who))]) for part in (1.0 * right, 1.0 - right))
    return votes, Others(named, wrong, np.zeros(len(who)), 1.0)


def test_where_the_truth_is_known_the_interval_is_that_of_a_beta_distribution():
    n_votes, n_right = np.array([30, 3, 40_000]), np.array([24, 3, 30_000])
    votes, told = known_samples(n_votes, n_right)
    grid = _posterior(votes, told, 0.7, np.ones(len(votes.label)))
    for q in (0.025, 0.5, 0.975):
        exact = beta.ppf(q, n_right + 3.5, n_votes - n_right + 1.5)
        assert grid.at(q) == pytest.approx(exact, abs=4e-3)


def test_a_doubt_that_all_annotators_share_widens_their_intervals():
    n_votes, n_right = np.full(10, 40), np.full(10, 30)
    votes, told = known_samples(n_votes, n_right)
    once = np.ones(len(votes.label))
    low, high = _of_others(votes, told, np.full(10, 0.74), 0.74, once)
    lower, higher = _of_others(votes, told, np.full(10, 0.64), 0.74, once)
    assert (higher - lower > high - low + 0.05).all()
    assert (lower <= 0.64).all()
    assert (higher >= high).all()
