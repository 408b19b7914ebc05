"""Sentences of the page, from results made by hand: what they say, and where levels end."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from skcalib.report import _compare, _recommendation, _sections, _summary, _tests
from skcalib.report._document import Section
from skcalib.report._tests import GroupTest, MeanTest

RANGE = [0.2, 0.6]


def mean(predicted=0.5, value=0.5, low=0.4, high=0.6, *, of="positive", pvalue=0.5, within=None):
    observed = {"value": value, "low": low, "high": high}
    return MeanTest(of, predicted, observed, pvalue, 0.1, 0.01, within)


def entry(kind="overall", name="overall", *, n=1000, pvalue=0.5, largest=0.03, **more):
    """What is found of some samples; by default nothing is off, and nothing could hide."""
    tolerance = 0.05 if kind == "overall" else 0.1
    found = GroupTest(
        kind,
        name,
        n,
        [mean(pvalue=pvalue)],
        column="site" if kind == "group" else None,
        pvalue=pvalue,
        significant=pvalue <= 0.01,
        max_undetected_error=largest,
        tolerance=tolerance,
        calibrated=pvalue > 0.01 and largest <= tolerance,
    )
    return replace(found, **more)


def group(name, **more):
    return entry("group", name, **more)


def off(name, error, pvalue=0.001, kind="group", **more):
    tests = [mean(0.5, 0.5 - error, 0.45 - error, 0.55 - error, pvalue=pvalue)]
    return entry(kind, name, pvalue=pvalue, largest=error + 0.05, tests=tests, **more)


def off_overall(error, **more):
    return off("overall", error, kind="overall", **more)


def page(tested):
    """The results of a page with these tests."""
    return {"group_tests": [asdict(x) for x in tested]}


def words(tested, kind, *, n_classes=2, gain=None):
    data = SimpleNamespace(classes=range(n_classes), label=str)
    found = _tests._write_summary(tested, data, kind, gain)
    return {name: text.replace("\xa0", " ") for name, text in found.items()}


GAIN = {"before": 0.5, "after": 0.25}
BY = "from 0.500 to 0.250, on samples left out."
A, B, C, D = (group(name) for name in "abcd")
FEW = [group("few", largest=0.3, n=7), group("fewer", largest=0.4, n=1)]


@pytest.mark.parametrize(
    ("tested", "kind", "options", "headline"),
    [
        ([entry()], "ignorant", {}, "The model shows no knowledge of these labels: labels of"),
        (
            [entry()],
            "costly",
            {"gain": GAIN},
            f"Calibration takes away most of the log-loss: {BY}",
        ),
        ([off_overall(0.1)], "overstated", {}, "The model overstates class 1: it"),
        (
            [entry(), A, off("b", 0.15)],
            "parts",
            {},
            "Overall no error shows, but do not trust the model for site = b (off by 15 points).",
        ),
        (
            [off_overall(0.01, negligible=True), off("b", 0.12), off("c", 0.15)],
            "parts",
            {},
            "Overall the error is small, but do not trust the model for site = b and site = c "
            "(off by up to 15 points).",
        ),
        # The clearest comes first.
        (
            [entry(), off("a", 0.15, 0.002), off("b", 0.12, 0.001)],
            "parts",
            {},
            "Overall no error shows, but do not trust the model for site = b and site = a",
        ),
        (
            [
                entry(largest=0.09),
                off("b", 0.01, negligible=True),
                off("c", 0.02, negligible=True),
                A,
            ],
            "negligible",
            {},
            "The probabilities are off by more than chance, but by no more than 7.0 points",
        ),
        (
            [entry()],
            "gain",
            {"gain": GAIN},
            f"The averages are right, but there is an error: calibration brings the log-loss {BY}",
        ),
        (
            [entry(largest=0.08), *FEW],
            "undecided",
            {},
            "Too few samples to decide: an error of 8.0 points could hide.",
        ),
        (
            [entry(largest=0.08)],
            "undecided",
            {"n_classes": 3},
            "Too few samples to decide: an error of 8.0 points of the predicted class could hide.",
        ),
        ([entry(), A, FEW[0]], "undecided", {}, "No error shows, but 1 of 2 groups has too few"),
        ([entry(), A, *FEW], "undecided", {}, "No error shows, but 2 of 3 groups have too few"),
        (
            [entry(), entry("class", "x", largest=0.2), A],
            "undecided",
            {"n_classes": 3},
            "No error shows, but 1 of 2 groups and classes has too few samples to decide.",
        ),
        ([entry(), A], "calibrated", {}, "No error shows, and none above 3.0 points could hide."),
        (
            [entry()],
            "calibrated",
            {"n_classes": 3},
            "No error shows, and none above 3.0 points of the predicted class could hide.",
        ),
    ],
)
def test_headlines(tested, kind, options, headline):
    assert words(tested, kind, **options)["headline"].startswith(headline)


SAYS = "It says 50.0 % for class 1 on average, and 50.0 % belong to it (40.0 to 60.0 %)"


@pytest.mark.parametrize(
    ("tested", "parts", "missing"),
    [
        ([entry()], ["no error above 3.0 points could hide overall."], ["up to", "strongest"]),
        ([entry(largest=0.08)], ["an error of up to 8.0 points could hide overall."], ["strong"]),
        # Of those that cannot be told, the one where most could hide.
        (
            [entry(), *FEW],
            ["With 1 000 samples, an error of up to 3.0 points could hide overall, and up to "
             "40 points for site = fewer (1 sample)."],
            ["no error above"],
        ),
        ([entry(), FEW[0], A], ["and up to 30 points for site = few (7 samples)."], []),
        (
            [entry(), A, group("b", pvalue=0.1)],
            ["The clearest sign of an error shows for site = b. By chance, 100 of 1 000 "
             "calibrated models show an error as clear as this in one of the 3 comparisons"],
            [],
        ),
        (
            [entry(pvalue=0.02)],
            ["The clearest sign of an error shows over all samples. By chance, 20 of"],
            ["in one of"],
        ),
        ([entry(), A, group("b", pvalue=0.101)], [], ["clearest"]),
        (
            [entry(), off("b", 0.15, 0.0005)],
            [": that may be chance.", "For site = b it says 50 % for class 1 on average, and 35 % "
             "belong to it (30 to 40 %): that is not.",
             "fewer than 1 of 1 000 calibrated models show"],
            ["strongest", "no error above"],
        ),
        (
            [off_overall(0.2), off("b", 0.15)],
            ["It says 50 % for class 1 on average, and 30 % belong to it (25 to 35 %). By chance,",
             "in one of the 2 comparisons of this page. Also off by more than chance: site = b "
             "(off by 15 points)."],
            ["could hide"],
        ),
        ([off_overall(0.2), A], [], ["Also off"]),
    ],
)  # fmt: skip
def test_explanations(tested, parts, missing):
    kind = "overstated" if tested[0].significant else "undecided"
    text = words(tested, kind)["explanation"]
    for part in parts:
        assert part in text
    for part in missing:
        assert part not in text


@pytest.mark.parametrize(
    ("n", "names"),
    [(1, "site = a"), (2, "site = a and site = b"), (3, "site = a, site = b and site = c")],
)
def test_up_to_three_are_named(n, names):
    assert _tests.join_names([A, B, C][:n], 9) == names
    assert _tests.join_names([A, B, C, D], 9) == "4 of 9 groups"
    assert _tests.join_names([entry("class", "x")] * 4, 5) == "4 of 5 classes"


@pytest.mark.parametrize(
    ("pvalue", "text"),
    [
        (0.501, "most calibrated models"),
        (0.5, "500 of 1 000 calibrated models"),
        (0.001, "1 of 1 000 calibrated models"),
        (0.0009, "fewer than 1 of 1 000 calibrated models"),
    ],
)
def test_p_values_as_models(pvalue, text):
    assert _tests.count_models(pvalue).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("of", "found", "text"),
    [
        (
            entry(),
            mean(of="answers"),
            "It says 50 % on average and is right 52 % of the time (48",
        ),
        (A, mean(of="answers"), "For site = a it says 50 % on average and is right 52 % of the"),
        (
            A,
            mean(),
            "For site = a it says 50 % for class x on average, and 52 % belong to it (48 to 56 %)",
        ),
        (
            entry("class", "bee"),
            mean(of="answers"),
            "When it answers bee, it says 50 % and is right 52 % of the time (48 to 56 %)",
        ),
        (
            entry("class", "bee"),
            mean(of="class"),
            "It says 50 % for class bee on average, and 52 % of the samples belong to it",
        ),
        (
            entry(),
            mean(of="positive", within=RANGE),
            "Where it says 20 to 60 % for class x, 50 % on average, 52 % belong to it (48 to 56",
        ),
        (
            A,
            mean(of="answers", within=RANGE),
            "For site = a, where it says 20 to 60 %, 50 % on average, 52 % are right (48 to 56 %)",
        ),
        (
            entry("class", "bee"),
            mean(of="answers", within=RANGE),
            "For the answer bee, where it says 20 to 60 %, 50 % on average, 52 % are right (48",
        ),
        (
            entry("class", "bee"),
            mean(of="class", within=RANGE),
            "Where it says 20 to 60 % for class bee, 50 % on average, 52 % belong to it (48 to 56",
        ),
    ],
)
def test_sentences_on_a_test(of, found, text):
    ends = {"value": 0.52, "low": 0.48, "high": 0.56}
    found = replace(found, observed=ends)
    sentence = _tests._describe_test(of, found, "class x").replace("\xa0", " ")
    assert sentence.startswith(text)
    again = _tests.describe_worst(replace(of, tests=[found]), "class x").replace("\xa0", " ")
    assert again == sentence[0].lower() + sentence[1:]


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.2, 0.6), "20 to 60 %"),
        ((0.201, 0.204), "20.1 to 20.4 %"),
        ((0.2001, 0.2004), "20.01 to 20.04 %"),
        ((0.12345, 0.123451), "12.3 %"),
    ],
)
def test_ranges_of_probabilities_have_ends_that_differ(ends, text):
    found = _tests._format_range(mean(within=ends))
    assert found.replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("tests", "pvalue", "worst"),
    [
        # A significant average goes before a range, even if the range is clearer.
        ([mean(pvalue=0.002), mean(pvalue=0.001, within=RANGE)], 0.004, 0),
        ([mean(pvalue=0.2), mean(pvalue=0.001, within=RANGE)], 0.004, 1),
        # Multiplied by 4, as the smallest was, .0025 is just 0.01.
        ([mean(pvalue=0.0025), mean(pvalue=0.001, within=RANGE)], 0.004, 0),
        ([mean(pvalue=0.0026), mean(pvalue=0.001, within=RANGE)], 0.004, 1),
        ([mean(pvalue=0.3), mean(of="answers", pvalue=0.2)], 0.4, 1),
    ],
)
def test_which_test_is_reported(tests, pvalue, worst):
    assert _tests._find_worst(entry(tests=tests, pvalue=pvalue)) is tests[worst]


@pytest.mark.parametrize(
    ("largest", "high", "pvalue", "negligible"),
    [
        (0.05, 0.6, 0.001, True),
        (0.051, 0.6, 0.001, False),
        # A range may be off by twice as much; one that is not significant does not count.
        (0.04, 0.61, 0.001, False),
        (0.04, 0.61, 0.9, True),
    ],
)
def test_negligible_errors_are_within_the_tolerance(largest, high, pvalue, negligible):
    tests = [mean(pvalue=0.001), mean(0.5, 0.5, 0.45, high, pvalue=pvalue, within=RANGE)]
    found = entry(tests=tests, pvalue=0.004, largest=largest)
    assert _tests._is_negligible(found) is negligible


@pytest.mark.parametrize(
    ("kind", "predicted", "of", "tolerance"),
    [
        ("overall", 0.5, "positive", 0.05),
        ("overall", 0.5, "answers", 0.05),
        ("overall", 0.04, "answers", 0.05),
        ("overall", 0.04, "positive", 0.01),
        ("overall", 0.96, "positive", 0.01),
        ("group", 0.04, "positive", 0.02),
        ("class", 0.5, "answers", 0.1),
    ],
)
def test_rare_classes_have_a_smaller_tolerance_and_parts_a_larger_one(
    kind, predicted, of, tolerance
):
    found = entry(kind, tests=[mean(predicted, of=of)])
    assert _tests._find_tolerance(found, 0.05) == pytest.approx(tolerance)


@pytest.mark.parametrize(
    ("tested", "gain", "kind"),
    [
        ([entry()], None, "calibrated"),
        ([entry()], {"before": 0.5, "after": 0.249}, "costly"),
        ([entry()], {"before": 0.5, "after": 0.25}, "gain"),
        ([off_overall(0.1)], {"before": 0.5, "after": 0.4}, "overstated"),
        ([off_overall(-0.1)], None, "understated"),
        ([entry(), A, off("b", 0.1)], {"before": 0.5, "after": 0.4}, "parts"),
        (
            [entry(), A, off("b", 0.1, negligible=True)],
            {"before": 0.5, "after": 0.4},
            "negligible",
        ),
        ([off_overall(0.1, negligible=True), A], None, "negligible"),
        ([entry(), A, FEW[0]], None, "undecided"),
        ([entry(largest=0.051)], None, "undecided"),
    ],
)
def test_the_first_kind_that_holds_decides(tested, gain, kind):
    assert _tests._choose_kind(tested, gain) == kind


def test_a_chart_has_all_samples_first_and_of_many_the_clearest():
    parts = [group(f"{k}", pvalue=0.5 - 0.01 * k, n=k) for k in range(12)]
    results = page([entry(), *parts])
    rows = _tests.make_chart_rows(results, "group")
    assert [row["name"] for row in rows] == ["overall", *(f"site = {k}" for k in range(12))]
    assert [row["n"] for row in rows] == [1000, *range(12)]
    more = [*parts, off("off", 0.1, 0.009), off("less", 0.1, 0.01)]
    rows = _tests.make_chart_rows(page([entry(), *more]), "group")
    expected = [
        "overall",
        "site = off",
        "site = less",
        *(f"site = {k}" for k in range(11, -1, -1)),
    ]
    assert [row["name"] for row in rows] == expected
    assert [row["relevant"] for row in rows] == [False, True, True, *[False] * 12]
    # A class that is no answer has no bar.
    never = entry("class", "x", tests=[mean(of="class")])
    rows = _tests.make_chart_rows(page([entry(), A, never]), "class")
    assert [row["name"] for row in rows] == ["overall"]


def test_the_table_of_tests():
    tested = [
        entry(),
        group("few", largest=0.3, pvalue=0.02, n=7),
        off("b", 0.15),
        off("c", 0.02, negligible=True),
        entry("class", "x", tests=[mean(of="class")]),
    ]
    results = page(tested) | {"overview": {"classes": ["no", "yes"]}}
    table, note = _tests.make_test_table(results, "group", 4)
    rows = [[cell.replace("\xa0", " ") for cell in row] for row in table.rows]
    assert rows[0] == [
        "overall", "1 000", "50.00 %", "50.00 %", "40.00 to 60.00 %", "3.0 points", "0.500",
        "fits",
    ]  # fmt: skip
    assert rows[1][1:2] + rows[1][-3:] == ["7", "30 points", "0.020", "too few to decide"]
    assert rows[2][-1].startswith("off: for site = b it says 50 % for class yes on average")
    assert rows[3][-1].startswith("off, by little: for site = c it says")
    assert len(rows) == 4
    assert len(_tests.make_test_table(results, "group", 3)[0].rows) == 3
    classes = _tests.make_test_table(results, "class", 9)[0].rows
    assert [row[0] for row in classes] == ["overall", "class x"]
    assert classes[1][2:5] == ["-", "-", "-"]
    assert "of 100 calibrated models, 1 has a p-value of 0.01 or less" in note.text


def test_a_chart_of_more_than_twenty_says_how_many_it_leaves_out():
    for n_groups, left in ((20, ""), (21, " 1 more are"), (25, " 5 more are")):
        tested = [entry(), *(group(f"{k}") for k in range(n_groups))]
        results = page(tested) | {"overview": {"n_classes": 2, "classes": ["a", "b"]}}
        chart = _sections.make_chart(results)
        assert len(chart.rows) == 21
        assert chart.caption.endswith(
            f"At the right: samples.{left}" + " in the tables below." * bool(left)
        )
        assert "how many are class b (dot), by group" in chart.heading
        assert "holds its ring" not in chart.caption
    inside = group("i", pvalue=0.001)
    classes = [entry("class", "x"), replace(inside, kind="class")]
    results |= page([entry(), *classes])
    results["overview"]["n_classes"] = 3
    chart = _sections.make_chart(results)
    assert "how many are right (dot), by class of the answer" in chart.heading
    assert "If a colored bar holds its ring, the error is another" in chart.caption
    results |= page([entry()])
    assert _sections.make_chart(results) is None


def errors(value=0.02, low=0.01, high=0.03):
    of = {"value": value, "low": low, "high": high}
    return {"views": {"top_label": {"errors": {"expected_calibration_error": of}}}}


@pytest.mark.parametrize(
    ("overall", "answer", "tone"),
    [
        (entry(), "yes", "good"),
        (entry(largest=0.08), "unclear", "open"),
        (off_overall(0.1), "no", "bad"),
        (off_overall(-0.01, negligible=True), "within 4.0 points", "good"),
    ],
)
def test_the_tile_of_all_samples(overall, answer, tone):
    results = page([overall]) | {"calibration": errors()}
    tile = _summary._make_error_tile(results)
    assert (tile.answer, tile.tone) == (answer, tone)
    assert tile.detail.startswith("calibration error 2.0 points, 99 % interval 1.0 to 3.0; ")
    assert tile.detail.endswith(f"{_tests.count_models(overall.pvalue)} are as far off by chance")


@pytest.mark.parametrize(
    ("parts", "question", "answer", "detail", "tone"),
    [
        ([A, B], "For every group?", "yes", "no average is off by more than 3.0 points", "good"),
        (
            [A, group("b", largest=0.07)],
            "For every group?",
            "yes",
            "no average is off by more than 7.0 points",
            "good",
        ),
        (
            [entry("class", "x"), FEW[0]],
            "For every group and class?",
            "unclear",
            "1 of 2 groups and classes has too few samples: an error above 10 points could hide",
            "open",
        ),
        (
            [replace(FEW[0], tolerance=0.02), replace(FEW[1], tolerance=0.04), A],
            "For every group?",
            "unclear",
            "2 of 3 groups have too few samples: an error above 4.0 points could hide",
            "open",
        ),
        (
            [entry("class", "x"), off("y", 0.1, kind="class")],
            "For every class?",
            "no: 1 of 2 classes off",
            "class y; the rest fit",
            "bad",
        ),
        ([off("y", 0.1)], "For every group?", "no: 1 of 1 groups off", "site = y", "bad"),
        (
            [off("y", 0.1), off("z", 0.01, negligible=True), A],
            "For every group?",
            "no: 1 of 3 groups off",
            "site = y; the rest off by little, or fit",
            "bad",
        ),
        (
            [off("y", 0.1), FEW[0], A],
            "For every group?",
            "no: 1 of 3 groups off",
            "site = y; 1 more with too few samples to decide",
            "bad",
        ),
        (
            [off(x, 0.1) for x in "abc"] + [D],
            "For every group?",
            "no: 3 of 4 groups off",
            "site = a, site = b and site = c; the rest fit",
            "bad",
        ),
        (
            [off(x, 0.1) for x in "abcd"],
            "For every group?",
            "no: 4 of 4 groups off",
            "named below",
            "bad",
        ),
    ],
)
def test_the_tile_of_parts(parts, question, answer, detail, tone):
    tile = _summary._make_parts_tile([entry(), *parts])
    assert (tile.question, tile.answer, tile.detail, tile.tone) == (question, answer, detail, tone)


def test_the_tile_of_accuracy():
    overview = {
        "accuracy": {"value": 0.8, "low": 0.75, "high": 0.85},
        "largest_class": {"label": "ant", "value": 0.4},
    }
    tile = _summary._make_accuracy_tile(overview)
    assert tile.answer.replace("\xa0", " ") == "80.0 %"
    assert tile.detail.replace("\xa0", " ") == (
        "99 % interval 75.0 to 85.0; always answering ant is right 40.0 % of the time"
    )


def promised(**options):
    promise = {"risk": 0.05, "kept": True, "threshold": 0.9, "coverage": 0.62, **options}
    return {"promise": promise, "error_rate": 0.2}


@pytest.mark.parametrize(
    ("selective", "after", "question", "answer", "detail", "advice"),
    [
        (
            {"promise": None, "error_rate": 0.2},
            None,
            "How often is it wrong?",
            "20.0 %",
            "of all samples; declining promises no lower",
            None,
        ),
        (
            promised(),
            None,
            "If it may decline, at most 5 % wrong",
            "62 % answered",
            "of the samples: those with a confidence above 0.9000. Kept on new samples of the "
            "same kind, with 99 % certainty",
            "Decline below a confidence of 0.9000 to be wrong in at most 5 % of the answers, with "
            "99 % certainty, instead of 20.0 %; 62 % of the samples are answered then.",
        ),
        (
            promised(risk=0.005, kept=False),
            None,
            "If it may decline, at most 0.5 % wrong",
            "not promised",
            "the samples are too few to show that a threshold keeps",
            None,
        ),
        (
            promised(),
            {"selective": promised(risk=0.01, threshold=0.8)},
            "Once calibrated, if it may decline, at most 1 % wrong",
            "62 % answered",
            "of the samples: those with a calibrated confidence above 0.8000.",
            "Then decline below a calibrated confidence of 0.8000 to be wrong in at most 1 % of "
            "the answers, with 99 % certainty, instead of 20.0 %; 62 % of the samples are "
            "answered then. One half calibrated, the other gave the threshold.",
        ),
    ],
)
def test_declining(selective, after, question, answer, detail, advice):
    results = {"selective": selective, "after_calibration": after}
    tile, advised = _summary._make_declining_tile(results), _summary._advise_on_declining(results)
    assert tile.question.replace("\xa0", " ") == question
    assert tile.answer.replace("\xa0", " ") == answer
    assert tile.detail.replace("\xa0", " ").startswith(detail)
    text = None if advised is None else (advised.what + advised.why).replace("\xa0", " ")
    assert text == advice


def advised(function, tested, after=None):
    results = {
        **page(tested),
        "after_calibration": after,
        "overview": {"classes": ["no", "yes"]},
    }
    return function(results)


def test_advice_on_parts_comes_before_or_after_a_calibrator():
    tested = [entry(), A, off("b", 0.1), entry("class", "x"), off("y", 0.1, kind="class")]
    groups, classes = advised(_summary._advise_on_parts, tested)
    assert groups.what == "Do not rely on the probabilities of site = b"
    assert "skcalib.posthoc.GroupwiseCalibration" in groups.why
    assert classes.what == "Do not rely on the probabilities of class y"
    assert classes.why == ": look for the cause, and test again."
    four = [entry(), A, *(off(x, 0.1) for x in "abcd"), entry("class", "x")]
    assert advised(_summary._advise_on_parts, four)[0].what.endswith("of 4 of 5 groups")
    # What is off by little needs no advice.
    assert advised(_summary._advise_on_parts, [entry(), off("b", 0.01, negligible=True)]) == []
    overall = off_overall(0.1)
    assert advised(_summary._advise_on_parts, [overall, off("b", 0.1)]) == []
    later = advised(_summary._advise_on_parts_later, [overall, A, off("b", 0.1)])
    assert later.what == "Then test the groups again"
    assert later.why == ": site = b is off now, and may need a calibrator of their own."
    later = advised(_summary._advise_on_parts_later, [overall, *(off(x, 0.1) for x in "ab")])
    assert later.why.startswith(": site = a and site = b are off now")
    assert advised(_summary._advise_on_parts_later, [overall, A]) is None
    assert advised(_summary._advise_on_parts_later, tested) is None
    # After a calibrator, the parts are those of calibrated samples; the clearest leads.
    after = page([entry(), off("b", 0.1, 0.002), off("c", 0.2, 0.001), D])
    assert advised(_summary._advise_on_parts, tested, after) == []
    later = advised(_summary._advise_on_parts_later, [overall, A], after)
    assert later.what == "Then look at site = c and site = b again"
    text = ": after calibration, on samples left out, for site = c it says 50 % for class yes"
    assert later.why.replace("\xa0", " ").startswith(text)
    assert ". Look for the cause, or calibrate every group by itself" in later.why
    assert advised(_summary._advise_on_parts_later, tested, page([entry(), A])) is None


@pytest.mark.parametrize(
    ("tested", "what", "why"),
    [
        # 2.576 and 1.645 standard errors of .1, of 1000 samples, are to be below .05.
        (
            [entry(largest=0.1)],
            "it",
            "about 71 000 samples instead of 1 000 show",
        ),
        (
            [entry(), A, FEW[0]],
            "site = few",
            "about 120 samples instead of 7 show it",
        ),
        # Here .4 is larger than the standard error makes it: times 1 + 1.2 / 3.37.
        ([entry(), A, *FEW], "its groups", "about 29 samples instead of 1 show it"),
        ([entry(), *FEW, entry("class", "x", largest=0.2)], "its groups and classes", "about 29"),
    ],
)
def test_how_many_samples_decide(tested, what, why):
    advice = advised(_summary._advise_on_size, tested)
    assert advice.what == f"Collect more samples before you rely on {what}"
    assert advice.why.replace("\xa0", " ").startswith(f": if the probabilities are right, {why}")
    assert advice.why.endswith("show it, with probability 0.9.")


@pytest.mark.parametrize(
    "tested",
    [[entry(), A], [off_overall(0.1), FEW[0]], [entry(), off("b", 0.1)]],
)
def test_more_samples_help_only_where_something_is_undecided(tested):
    assert advised(_summary._advise_on_size, tested) is None


@pytest.mark.parametrize(
    ("sizes", "n_all", "joined"),
    [([9, 9], 20, True), ([10, 9], 20, False), ([9, 9], 19, False)],
)
def test_columns_of_small_groups_alone_are_to_be_joined(sizes, n_all, joined):
    tested = [entry(n=n_all), *(group(f"{n}", n=n) for n in sizes), entry("class", "x", n=3)]
    advice = _summary._advise_on_small_groups(tested)
    assert [x.what for x in advice] == ["Join the values of site"] * joined
    assert all(x.why.startswith(": none of its 2 groups has 10 samples.") for x in advice)


@pytest.mark.parametrize(
    ("table", "n_issues", "what"),
    [
        (None, 0, "Labels: not assessed. That takes features."),
        ([], 0, "Labels: no suspects, by the features."),
        ([1], 1, "Check 1 suspected label: by the features, 2.0 % of the labels are wrong "
                 "(1.0 to 3.0). Shown below."),
        ([1, 2], 2, "Check 2 suspected labels: by the"),
    ],
)  # fmt: skip
def test_advice_on_labels(table, n_issues, what):
    issues = {
        "table": table,
        "reason": "that takes features",
        "source": "the features",
        "n_issues": n_issues,
        "noise_rate": 0.02,
        "noise_rate_interval": (0.01, 0.03),
    }
    advice = _summary._advise_on_labels(issues)
    assert (advice.what + advice.why).replace("\xa0", " ").startswith(what)


def row(log_loss, difference):
    return {
        "log_loss": log_loss,
        "expected_calibration_error": 0.1 * log_loss,
        "log_loss_difference": {"value": difference, "low": -1, "high": 1},
        "name": "Stacked",
        "accuracy": 0.8,
    }


@pytest.mark.parametrize(
    ("found", "kind", "what", "why"),
    [
        (
            {"table": None, "reason": "that takes 50"},
            "",
            "No calibrator was tried",
            ": that takes",
        ),
        (
            {"ignorant": True},
            "ignorant",
            "Check that the rows are in the order of the labels",
            ":",
        ),
        (
            {"best": "Stacked"},
            "overconfident",
            "Calibrate it",
            ": Stacked brings the log-loss from 0.500 to 0.400, calibration error from 0.050 to "
            "0.040, on samples that it was not fitted on. The code is below.",
        ),
        ({}, "overconfident", "Calibration may help a little", ": Stacked brings the log-loss"),
        ({"change": 0.0}, "parts", "No calibrator for all samples repairs it", ": Stacked brings"),
        ({"change": 0.0}, "calibrated", "Leave the probabilities as they are", ": Stacked brings"),
        ({"change": 0.1}, "undecided", "Leave the probabilities as they are", ": Stacked brings"),
    ],
)
def test_advice_on_calibration(found, kind, what, why):
    change = found.pop("change", -0.1)
    calibrators = {
        "table": [row(0.5, 0.0), row(0.4, change), row(0.9, 0.2)],
        "ignorant": False,
        "best": None,
        "auto": "Stacked",
        **found,
    }
    advice = _recommendation.advise({"calibrators": calibrators, "summary": {"kind": kind}})
    assert advice.what == what
    assert advice.why.startswith(why)


def test_the_section_on_calibrators():
    found = {"table": [row(0.5, 0.0), row(0.4, -0.1)], "auto": "Stacked", "code": "x = 1"}
    results = {"calibrators": found, "method": {"n_folds": 5}}
    section = _recommendation.make_section(results)
    assert isinstance(section, Section)
    assert [line[-1] for line in section.blocks[0].rows] == ["-", "-0.100 (-1.000 to 1.000)"]
    assert "on 5 folds of these samples" in section.blocks[1].text
    assert section.blocks[2].text == "x = 1"
    found["code"] = ""
    assert len(_recommendation.make_section(results).blocks) == 2


def compared(*differences, kinds=None):
    """The comparison of model "first" with others, of which each has a difference."""
    names = ["first", *(f"model {k}" for k in range(1, len(differences) + 1))]
    kinds = kinds or ["calibrated"] * len(names)
    models = {name: {"summary": {"kind": kind}} for name, kind in zip(names, kinds)}
    found = {"models": models, "differences": dict(zip(names[1:], differences)), "paired": True}
    return {"comparison": found}


def change(low, high, *, loss=(-0.1, 0.1), **more):
    error = {"value": (low + high) / 2, "low": low, "high": high, **more}
    of_loss = {"value": sum(loss) / 2, "low": loss[0], "high": loss[1]}
    return {"expected_calibration_error": error, "log_loss": of_loss}


@pytest.mark.parametrize(
    ("differences", "kinds", "text"),
    [
        (
            [change(-0.1, 0.1)],
            None,
            "No difference in calibration shows between first and model 1.",
        ),
        ([change(0.0, 0.1)], None, "No difference in calibration shows"),
        ([change(0.1, 0.2)], None, "model 1 is worse calibrated than first."),
        ([change(-0.2, -0.1)], None, "model 1 is better calibrated than first."),
        (
            [change(0.1, 0.2), change(-0.2, -0.1), change(0.2, 0.3)],
            None,
            "model 2 is better calibrated than first; model 1 and model 3 are worse calibrated "
            "than first.",
        ),
        (
            [change(-0.1, 0.1)] * 2,
            ["overconfident", "undecided", "calibrated"],
            "first is off by more than chance; whether the others are better calibrated, these "
            "samples cannot show.",
        ),
        (
            [change(-0.1, 0.1)] * 2,
            ["overconfident", "undecided", "parts"],
            "first and model 2 are off by more than chance;",
        ),
        (
            [change(-0.1, 0.1)],
            ["overconfident", "parts"],
            "No difference in calibration shows between first and model 1.",
        ),
        # The paired test has four of the five per cent, and speaks of errors of its direction.
        (
            [change(-0.1, 0.2, pvalue=0.039, sign=1)],
            None,
            "model 1 is worse calibrated than first.",
        ),
        ([change(-0.1, 0.2, pvalue=0.039, sign=-1)], None, "No difference in calibration shows"),
        ([change(-0.1, 0.2, pvalue=0.041, sign=1)], None, "No difference in calibration shows"),
    ],
)
def test_headlines_of_a_comparison(differences, kinds, text):
    assert _compare.write_headline(compared(*differences, kinds=kinds)).startswith(text)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"loss": (0.1, 0.3)}, "The log-loss of model 1 is higher by 0.200 (0.100 to 0.300)."),
        ({"loss": (-0.3, -0.1)}, "The log-loss of model 1 is lower by 0.200 (0.100 to 0.300)."),
        ({"loss": (0.0, 0.3)}, "The log-loss of model 1 differs by no more than chance."),
        (
            {"pvalue": 0.03, "sign": 1},
            "The log-loss of model 1 differs by no more than chance. Of pairs of equally well "
            "calibrated models, 3.0 % differ as clearly as model 1 and first in what "
            "recalibration gains.",
        ),
        ({"pvalue": 0.001, "sign": 1}, "models, 0.1 % differ"),
        ({"pvalue": 0.0009, "sign": 1}, "models, fewer than 0.1 % differ"),
    ],
)
def test_explanations_of_a_comparison(options, part):
    text = _compare.write_explanation(compared(change(-0.1, 0.1, **options))).replace("\xa0", " ")
    assert part in text
    assert np.isclose(text.count("The log-loss of"), 1)
