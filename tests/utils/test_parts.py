"""Helpers of many packages, each by its definition and at the edge of what it takes."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from skcalib.labels._finder import compute_effective_weights
from skcalib.report._data import warn_of_table_twice
from skcalib.utils import SkcalibWarning
from skcalib.utils._arrays import (
    check_mask,
    check_numbers,
    check_weights,
    count_unit,
    is_missing,
    scale_weights,
    warn_if_normalized,
)
from skcalib.utils._labels import (
    as_label_matrix,
    as_labels,
    draw_independent_rows,
    encode_groups,
    format_labels,
    merge_classes,
    shorten,
)
from skcalib.utils._proba import (
    add_unseen,
    as_two_columns,
    check_predictions,
    expand_soft_labels,
    holds_proba,
    label_log_loss,
    match_soft_labels,
)


def told(call, *arguments):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments)
    assert all(issubclass(warning.category, SkcalibWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


class TestWeights:
    @pytest.mark.parametrize("largest", [5e-324, 1e-300, 0.9, 1.0, 1.5, 2.0, 3.0, 1.7e308])
    def test_scaled_ones_lose_no_digit(self, largest):
        weight = np.array([0.0, 0.3, 1.0]) * largest
        scaled, unit = scale_weights(weight)
        assert 1 <= scaled.max() < 2
        np.testing.assert_array_equal(scaled * unit, weight)
        assert np.log2(unit) == round(np.log2(unit))
        assert scale_weights(None) == (None, 1.0)

    def test_units_beyond_which_no_metric_changes(self):
        for unit in (2.0**-100, 0.5, 1.0, 2.0**100):
            assert count_unit(unit) == unit
            assert count_unit(unit / 2) == max(unit / 2, 2.0**-100)
            assert count_unit(unit * 2) == min(unit * 2, 2.0**100)

    def test_effective_ones_sum_to_the_effective_number(self):
        weight = np.random.default_rng(0).gamma(1.0, size=50)
        found = compute_effective_weights(weight)
        assert found.sum() == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
        np.testing.assert_allclose(found / weight, found[0] / weight[0])
        np.testing.assert_allclose(compute_effective_weights(np.full(7, 1e200)), 1.0)

    def test_a_sum_of_less_than_half_of_the_samples_is_told(self):
        weight = np.full(8, 0.5)
        assert told(warn_if_normalized, np.append(weight, 0.0)) == []  # 0 weighs no sample
        weight[0] = 0.49
        assert "sums to 3.99 for 8 samples" in told(warn_if_normalized, weight)[0]

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([1.0, 2.0], r"shape \(3,\), got shape \(2,\)"),
            ([[1.0], [2.0], [3.0]], r"shape \(3,\), got shape \(3, 1\)"),
            ([1.0, 0.0, -0.5], "not negative, got -0.5 in row 2"),
            ([1.0, np.inf, -1.0], "finite and not negative, got inf in row 1"),
            ([np.nan, 1.0, 1.0], "got nan in row 0"),
            ([0.0, 0.0, 0.0], "must not be zero everywhere"),
        ],
    )
    def test_bad_ones_are_named(self, weight, message):
        with pytest.raises(ValueError, match=message):
            check_weights(weight, 3)
        assert check_weights([0, 0, 1], 3).tolist() == [0, 0, 1]


def test_what_is_missing():
    entries = [None, np.nan, pd.NaT, pd.NA, 0, "", False, "nan", np.inf]
    found = is_missing(np.array(entries, dtype=object))
    assert found.tolist() == [True] * 4 + [False] * 5


class TestGroups:
    def test_combinations_of_columns_are_groups(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.integers(0, k, 60) for name, k in zip("abc", (2, 5, 3))})
        names, codes = encode_groups(frame, 60)
        rows = list(frame.itertuples(index=False, name=None))
        assert len(names) == len(set(rows))
        for row, code in zip(rows, codes):
            assert names[code] == "a={}, b={}, c={}".format(*row)
        assert sorted(set(rows)) == [rows[codes.tolist().index(k)] for k in range(len(names))]

    def test_a_table_that_is_there_several_times_is_told(self):
        rng = np.random.default_rng(0)
        for n, times, expected in ((20, 2, "twice"), (20, 3, "3 times"), (19, 2, ""), (20, 1, "")):
            proba, codes = rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, n)
            rows = rng.permutation(np.tile(np.arange(n), times))
            found = told(warn_of_table_twice, codes[rows], proba[rows])
            assert len(found) == bool(expected)
            if expected:
                assert f"is there {expected}: {n} of the {n * times} are distinct" in found[0]
            # One row more, or one label that differs: no copy of a table.
            more = np.append(rows, rows[0])
            assert told(warn_of_table_twice, codes[more], proba[more]) == []
            other = codes[rows]
            other[0] = (other[0] + 1) % 3
            assert told(warn_of_table_twice, other, proba[rows]) == []


class TestTexts:
    def test_a_message_shows_as_many_names_as_fit(self):
        for n, length in [
            (1, 3),
            (10, 3),
            (11, 3),
            (12, 10),
            (12, 13),
            (12, 30),
            (3, 47),
            (3, 80),
        ]:
            names = [f"{k:02}".ljust(length, "x") for k in range(n)]
            listed, _, rest = format_labels(names)[1:-1].partition(" and ")
            items = [shorten(name) for name in names]
            n_shown = len(listed.split(", ")) if listed else 0
            assert listed == ", ".join(items[:n_shown])
            assert len(listed) <= 150
            assert n_shown == min(n, 10) or len(", ".join(items[: n_shown + 1])) > 150
            assert rest == (f"{n - n_shown} more" if n > n_shown else "")

    def test_a_long_name_loses_its_end(self):
        for length in (47, 48):  # with two quotes, 49 and 50
            assert shorten("x" * length) == repr("x" * length)
        assert shorten("x" * 49) == "'" + "x" * 46 + "..."


class TestLabels:
    def test_whole_floats_in_the_range_of_int64(self):
        ends = np.array([-(2.0**63), 2.0**62, np.nextafter(2.0**63, 0)])
        np.testing.assert_array_equal(as_labels(ends, name="y").astype(float), ends)
        for beyond in (2.0**63, np.nextafter(-(2.0**63), -np.inf)):
            with pytest.raises(ValueError, match=r"64-bit integers, got .* in row 1"):
                as_labels([0.0, beyond], name="y")
        assert as_labels(np.array([2**63 - 1], dtype=np.uint64), name="y").dtype == np.int64
        assert as_labels(np.array([2**63], dtype=np.uint64), name="y").dtype == np.uint64

    def test_a_matrix_of_labels(self):
        np.testing.assert_array_equal(as_label_matrix([[1.0, 2.0]], name="y"), [[1, 2]])
        np.testing.assert_array_equal(as_label_matrix([["a", "b"]], name="y"), [["a", "b"]])
        for bad in ([1, 2], [[]], [[[1]]]):
            with pytest.raises(ValueError, match="y must be 2-dimensional and not empty"):
                as_label_matrix(bad, name="y")
        with pytest.raises(ValueError, match=r"y\[1\] must hold .* got 0.5 in row 0"):
            as_label_matrix([[1.0, 2.0], [0.5, 1.0]], name="y")
        with pytest.raises(TypeError, match="of one type, integers or strings, got both"):
            as_label_matrix(np.array([["a", "b"], [1, 2]], dtype=object), name="y")

    def test_classes_of_two_fits(self):
        one, other = np.array([3, 1]), np.array([2, 3])
        assert merge_classes(one, other, name="y").tolist() == [1, 2, 3]
        assert merge_classes(one, other[:0], name="y").tolist() == [1, 3]
        with pytest.raises(ValueError, match=r"y must hold labels of the type of those before"):
            merge_classes(one, np.array(["a"]), name="y")


class TestProba:
    def test_four_samples_are_spread_over_the_classes(self):
        rng = np.random.default_rng(0)
        for n, k in ((7, 3), (1, 2), (40, 5)):
            counts = rng.multinomial(n, np.full(k, 1 / k))
            expected = (counts + 4 / k) / (n + 4)
            np.testing.assert_allclose(add_unseen(counts[None] / n, n)[0], expected)
        np.testing.assert_allclose(add_unseen(np.array([1.0, 0.25]), 8), [10 / 12, 4 / 12])

    def test_the_loss_of_a_label_is_finite(self):
        proba = np.array([[0.25, 0.75, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
        for dtype in (np.float32, np.float64):
            found = label_log_loss(proba.astype(dtype), np.array([1, 0, 0]))
            np.testing.assert_allclose(found, [-np.log(0.75), 36.0436534, 0.0], atol=1e-7)

    def test_scores_that_could_be_probabilities(self):
        good = np.array([[0.2, 0.8], [1.0, 0.0]])
        assert holds_proba(good)
        for bad in (good * 1.01, good - 0.1, good[:, :1] * [1, -1], good * np.nan):
            assert not holds_proba(bad)


class TestShares:
    def test_means_over_rows_are_means_over_samples(self):
        rng = np.random.default_rng(0)
        shares = rng.dirichlet(np.ones(3), 20)
        shares[:9] = np.eye(3)[rng.integers(0, 3, 9)]
        weight, loss = rng.random(20), rng.random((20, 3))
        for given in (None, weight):
            of = np.ones(20) if given is None else given
            rows = expand_soft_labels(shares, given)
            assert len(rows.samples) == np.count_nonzero(shares)
            assert (rows.weight > 0).all()
            found = np.average(loss[rows.samples, rows.codes], weights=rows.weight)
            assert found == pytest.approx(np.average((shares * loss).sum(axis=1), weights=of))
        predictions = check_predictions(shares, loss / loss.sum(axis=1)[:, None], weight)
        of_rows, samples = predictions.as_rows()
        np.testing.assert_array_equal(of_rows.codes, np.nonzero(shares)[1])
        np.testing.assert_array_equal(of_rows.proba, predictions.proba[samples])
        columns = rng.integers(0, 3, 20)
        np.testing.assert_array_equal(
            predictions.of_columns(columns), shares[np.arange(20), columns]
        )
        np.testing.assert_array_equal(predictions.of_class(2, slice(3, 9)), shares[3:9, 2])
        with pytest.raises(ValueError, match=r"got soft labels of shape \(20, 3\)"):
            _ = predictions.codes
        plain = check_predictions([0, 2, 1], np.eye(3))
        assert plain.of_columns(np.array([0, 1, 1])).tolist() == [True, False, True]

    def test_two_sides(self):
        np.testing.assert_array_equal(
            as_two_columns(np.array([0.25, 1.0])), [[0.75, 0.25], [0, 1]]
        )
        assert as_two_columns(np.array([True, False])).tolist() == [1, 0]

    def test_columns_follow_their_names(self):
        shares = np.array([[0.5, 0.3, 0.2]])
        found, classes = match_soft_labels(shares, ["c", "a", "b"], np.array(["a", "b", "c"]), 3)
        assert found.tolist() == [[0.3, 0.2, 0.5]]
        assert classes.tolist() == ["a", "b", "c"]
        assert match_soft_labels(shares, None, None, 3)[1].tolist() == [0, 1, 2]
        assert match_soft_labels(shares, ["a", "b", "c"], None, 3)[1].tolist() == ["a", "b", "c"]
        for names, classes, message in (
            (["c", "a", "b"], None, "labels must be given where the columns of y_true"),
            (["a", "b", "d"], np.array(["a", "b", "c"]), "must have columns that are named by"),
        ):
            with pytest.raises(ValueError, match=message):
                match_soft_labels(shares, names, classes, 3)
        with pytest.raises(ValueError, match="a fraction for every class of y_proba, 4, got 3"):
            match_soft_labels(shares, None, None, 4)


def test_arrays_of_other_dimensions_and_values_are_refused():
    assert check_numbers([1, 2], "a", ndim=(1, 2)).tolist() == [1, 2]
    for bad in (1.0, np.zeros((1, 1, 1)), [], np.zeros((0, 3))):
        with pytest.raises(ValueError, match="a must be 1- or 2-dimensional and not empty"):
            check_numbers(bad, "a", ndim=(1, 2))
    with pytest.raises(ValueError, match="a must be finite"):
        check_numbers([1.0, np.inf], "a", ndim=(1,))
    assert check_mask([True, False], (2,), "m").tolist() == [True, False]
    for bad in ([True], [1, 0], [[True, False]]):
        with pytest.raises(ValueError, match=r"m must be boolean and of shape \(2,\)"):
            check_mask(bad, (2,), "m")


def test_independent_rows_are_one_of_every_group_in_proportion_to_the_weights():
    assert draw_independent_rows(5) == slice(None)
    weight = np.tile([0.0, 0.3, 1.5, 3.0], 20_000)
    rows = draw_independent_rows(len(weight), weight=weight)
    assert (np.diff(rows) > 0).all()
    part = np.bincount(rows % 4, minlength=4) / len(rows)
    np.testing.assert_allclose(part, [0, 1 / 16, 5 / 16, 10 / 16], atol=0.01)
    assert len(draw_independent_rows(9, weight=np.full(9, 0.7))) == 9  # equal weights: all rows
    assert len(draw_independent_rows(9, weight=np.zeros(9))) == 0
    groups = np.random.default_rng(0).permutation(np.repeat([0, 1, 4], [1, 5, 94]))
    rows = draw_independent_rows(100, groups)
    assert sorted(groups[rows]) == [0, 1, 4]
    # Groups of four: the group counts as much as its samples, and the sample by its weight.
    rows = draw_independent_rows(len(weight), np.arange(len(weight)) // 4, weight)
    assert len(np.unique(rows // 4)) == len(rows) == 20_000
    part = np.bincount(rows % 4, minlength=4) / len(rows)
    np.testing.assert_allclose(part, [0, 1 / 16, 5 / 16, 10 / 16], atol=0.01)


def test_groups_are_counted_as_a_counter_does():
    values = np.random.default_rng(0).choice(list("abc"), 50)
    names, codes = encode_groups(values, 50)
    assert dict(zip(names, np.bincount(codes))) == Counter(values.tolist())
