import json
from importlib import import_module

import numpy as np
import pytest

from benchmarks import ablations
from benchmarks._ablation import Loss, Rule, Study, switched_off
from benchmarks.ablations import compared, measured, page, results
from benchmarks.label_ablations import RULES, RULES_AFTER_FIT, RULES_OF_SCALES, with_copies
from benchmarks.label_sets import LabelSet, labels_of, some_of
from benchmarks.order_ablations import RULES as RULES_OF_ORDER
from benchmarks.order_ablations import part_known
from benchmarks.selective_ablations import CURVES, KINDS, drawn
from benchmarks.selective_ablations import RULES as RULES_OF_GUARANTEE
from benchmarks.vote_ablations import RULES as RULES_OF_VOTES
from benchmarks.vote_ablations import draw_readers


def test_a_rule_is_switched_off_for_a_while():
    rule = Rule("few", "how many are few", {"skcalib.labels._constants.FEW": 3})
    limits = import_module("skcalib.labels._constants")
    before = limits.FEW
    with switched_off(rule):
        assert limits.FEW == 3
    assert before == limits.FEW

    def interrupted():
        with switched_off(rule):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert before == limits.FEW


def test_every_rule_names_something_that_is_there():
    rules = [*RULES, *RULES_AFTER_FIT, *RULES_OF_SCALES, *RULES_OF_GUARANTEE, *RULES_OF_ORDER]
    rules += RULES_OF_VOTES
    for rule in rules:
        for path in rule.off:
            module, name = path.rsplit(".", 1)
            assert hasattr(import_module(module), name)


def test_how_much_of_what_they_imply_models_know():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 100_000)
    for share in (1.0, 0.4, 0.0):
        drawn_from = share * proba + (1 - share) * proba.mean(axis=0)
        y = (drawn_from.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1).clip(0, 2)
        assert part_known(proba, y) == pytest.approx(share, abs=0.02)


def test_sets_of_one_base_count_as_one():
    rng = np.random.default_rng(0)
    bases = ["a", "a", "b", "c", "c", "c"]
    whole, without = (
        [Loss(b, b != "a", {"loss": float(v)}) for b, v in zip(bases, rng.random(6))]
        for _ in range(2)
    )
    change = [y.values["loss"] - x.values["loss"] for x, y in zip(whole, without)]
    means = [np.mean(change[:2]), change[2], np.mean(change[3:])]
    row = compared(whole, without)
    assert row["all_loss"] == pytest.approx(
        [np.mean(means), np.std(means, ddof=1) / 3**0.5], abs=1e-5
    )
    assert row["kept_out_loss"][0] == pytest.approx(np.mean(means[1:]), abs=1e-5)
    assert row["sets"] == row["changed"] == 6


def test_rows_of_other_studies_are_kept(tmp_path):
    study = Study([], lambda folder: [Loss(b, True, {"loss": 1.0}) for b in ("a", "b")])
    path = tmp_path / "rows.json"
    known = [{"study": "a", "rule": "old"}, {"study": "b", "rule": "kept"}]
    rows = measured(tmp_path, {"a": study}, path, known)
    assert [(row["study"], row["rule"]) for row in rows] == [("b", "kept"), ("a", "")]
    assert json.loads(path.read_text()) == rows


def test_rows_of_a_study(tmp_path):
    limits = import_module("skcalib.labels._constants")
    rules = [Rule("few", "how many are few", {"skcalib.labels._constants.FEW": 9})]
    study = Study(
        rules, lambda folder: [Loss(b, True, {"loss": float(limits.FEW)}) for b in ("a", "b")]
    )
    first, second = results(tmp_path, {"labels": study})
    assert first["loss"] == limits.FEW
    assert second["all_loss"] == [9.0 - limits.FEW, 0.0]
    assert "how many are few" in page([first, second])


def test_copies_have_the_labels_of_their_originals_and_some_noise():
    rng = np.random.default_rng(0)
    X, given = rng.normal(size=(300, 4)) * [1, 10, 100, 1], rng.integers(0, 3, 300)
    of = with_copies(LabelSet("any", "near", X, given, rng.integers(0, 3, 300)))
    assert of.noise == "near, copies"
    assert len(of.X) == 300
    np.testing.assert_array_equal(of.X[::2], X[::2])
    for labels in (of.given, of.true):
        np.testing.assert_array_equal(labels[::2], labels[1::2])
    change = (of.X[1::2] - of.X[::2]).std(axis=0) / X.std(axis=0)
    np.testing.assert_allclose(change, 0.05, rtol=0.2)


def test_the_table_has_a_row_for_every_rule():
    rows = json.loads(ablations.RESULTS.read_text())
    for study, (rules, _) in ablations.list_studies().items():
        named = {row["rule"] for row in rows if row["study"] == study}
        assert named == {"", *(rule.name for rule in rules)}
    for path, studies in ablations.PAGES.items():
        assert path.read_text() == page([row for row in rows if row["study"] in studies])
    assert {row["study"] for row in rows} == {
        study for studies in ablations.PAGES.values() for study in studies
    }


@pytest.mark.parametrize("noise", ["random 20 %", "class to class", "hard samples", "near"])
def test_labels_are_wrong_as_often_as_they_should(noise):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 500)
    X, true = some_of(3.0 * np.eye(4)[y] + rng.normal(size=(500, 4)), y)
    given = labels_of(noise, X, true)
    assert 0.05 < np.mean(given != true) < 0.35
    assert set(given) <= set(true)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_samples_of_the_guarantee_are_wrong_as_often_as_said(curve, kind):
    confidence, correct, groups = drawn(
        kind, CURVES[curve], 0.1, 100_000, np.random.default_rng(0)
    )
    for low in np.arange(0, 1, 0.25):
        some = (low <= confidence) & (confidence < low + 0.25)
        assert 1 - correct[some].mean() == pytest.approx(
            CURVES[curve](confidence[some], 0.1).mean(), abs=0.02
        )
    assert (groups is None) == (kind.group_size == 1)
    if groups is not None:
        # Members of a group are wrong together: their mean varies more than that of others.
        apart = 1 - correct - CURVES[curve](confidence, 0.1)
        of_groups = np.bincount(groups, apart)
        assert of_groups @ of_groups > 1.2 * (apart @ apart)


@pytest.mark.parametrize("copied", [0.0, 0.5, 1.0])
def test_readers_copy_as_often_as_they_should(copied):
    of = draw_readers(copied, seed=0)
    right = (of.votes == of.y[:, np.newaxis]).mean(axis=0)
    np.testing.assert_allclose(right[:3], [0.8, 0.9, 0.88], atol=0.08)
    by_chance = 0.9 * (0.83**2 + 0.17**2 / 2) + 0.1 * (0.45**2 + 0.55**2 / 2)
    same = (of.votes[:, 0] == of.votes[:, 4]).mean()
    assert same == pytest.approx(copied + (1 - copied) * by_chance, abs=0.08)
    assert of.pairs == ({frozenset((0, 4))} if copied else set())
