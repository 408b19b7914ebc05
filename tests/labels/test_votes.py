import numpy as np
import pytest
from scipy.special import softmax

from skcalib.labels._votes import VoteModel, Votes, _Passes, _split, evidence_of


def simulated(seed=0, n=600, n_classes=4, n_annotators=30, n_each=3):
    """Annotators of different skill, and two judges who know something of the classes."""
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
    evidence = evidence_of(scores, votes, np.ones(n), np.full(n, -1))
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
        pooled = sum(np.exp(w) * s[i] for w, s in zip(p.judges, evidence.scores))
        hard = 1 / (1 + np.exp(-(p.hard[0] + p.hard[1] * evidence.hardness[i])))
        chance = 0.0
        for z, pi in enumerate((1 - hard, hard)):
            q = softmax((np.exp(p.hard_judges[0]) if z else 1.0) * pooled + p.offset)
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
    alone = evidence_of([], votes, np.ones(600), np.full(600, -1))
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
