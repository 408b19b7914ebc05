"""A calibrator that was read from its JSON predicts the same; broken texts are refused."""

import itertools
import json
import random
import warnings

import numpy as np
import pytest

from skcalib import posthoc
from skcalib.metrics import expected_calibration_error
from skcalib.posthoc import PostHocCalibrator, TemperatureScaling
from tests.metrics.test_states import mutations
from tests.posthoc._sample import sample
from tests.posthoc.test_formula import MAPS, fitted, softmax

pytestmark = pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")


def again(calibrator):
    return PostHocCalibrator.from_json(calibrator.to_json())


def check_equal(calibrator, X):
    found = again(calibrator)
    assert type(found) is type(calibrator)
    assert found.to_json() == calibrator.to_json()
    assert repr(found) == repr(calibrator)
    for rows in (X, X[:7].astype(np.float32), X[:1]):
        one, other = found.predict_proba(rows), calibrator.predict_proba(rows)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(found.predict(rows), calibrator.predict(rows))


@pytest.mark.parametrize("name", MAPS)
def test_a_calibrator_is_read_back_to_the_last_bit(name):
    logits, y = sample(400)
    proba = softmax(logits)
    proba[:40] = np.eye(4)[y[:40]]
    check_equal(fitted(name, proba, y, input="proba"), proba)
    labels = np.array(["a", "b", "c", "d"], dtype=object)[y]
    check_equal(fitted(name, logits.astype(np.float32), labels), logits)
    single = logits[:, 1] - logits[:, 0]
    check_equal(fitted(name, single, y > 1), single)
    if name != "PriorShift":
        check_equal(fitted(name, 1000 * logits, y, input="scores"), 1000 * logits)


def test_parameters_and_attributes():
    logits, y = sample(400)
    chosen = [("beta", posthoc.BetaCalibration(parameters="am")), ("own", TemperatureScaling())]
    check_equal(posthoc.StackedCalibration(chosen).fit(logits, y), logits)
    check_equal(posthoc.StackedCalibration([]).fit(logits, y), logits)
    scaling = TemperatureScaling(criterion="ece", bounds=(0.1, 10.0), grid=np.arange(1.0, 4.0))
    check_equal(scaling.fit(logits, y), logits)
    named = TemperatureScaling(criterion=expected_calibration_error).fit(logits, y)
    assert again(named).criterion == "ece"
    # Of no class but one: standard errors that are NaN.
    sigmoid = posthoc.SigmoidCalibration(classes=[0, 1, 2, 3, 4])
    sigmoid.fit(np.column_stack([logits, logits[:, 0] - 50]), y)
    assert np.isnan(again(sigmoid).intercept_se_[3])
    # What was passed to fit alone, and may be private, is not in the text.
    shift = posthoc.PriorShift(training_scores=logits[:200]).fit(logits[200:])
    assert "training_scores" not in shift.to_json()
    assert again(shift).training_scores is None
    np.testing.assert_array_equal(again(shift).predict_proba(logits), shift.predict_proba(logits))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(logits, columns=list("abcd"))
    of_frame = again(TemperatureScaling().set_output(transform="pandas").fit(frame, y))
    assert list(of_frame.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(
        of_frame.predict_proba(frame), TemperatureScaling().fit(logits, y).predict_proba(logits)
    )


class Halved(PostHocCalibrator):
    def _fit(self, scores, y, sample_weight):
        self.temperature_ = self.keep(2.0)

    @staticmethod
    def keep(value):
        return value

    def _predict_proba(self, scores):
        return softmax(self._as_logits(scores) / 2)

    def _formula(self):
        return {"kind": "linear", "temperature": 2.0, "coef": 1.0, "intercept": 0, "least": None}


def test_own_classes():
    logits, y = sample(100)
    text = Halved().fit(logits, y).to_json()
    found = Halved.from_json(text)
    assert type(found) is Halved
    assert found.temperature_ == 2.0
    with pytest.raises(ValueError, match="there is no class 'Halved' below PostHocCalibrator"):
        PostHocCalibrator.from_json(text)
    with pytest.raises(ValueError, match="there is no class 'Halved' below TemperatureScaling in"):
        TemperatureScaling.from_json(text)

    class OfObjects(Halved):
        keep = staticmethod(lambda value: object())

    with pytest.raises(ValueError, match="it holds the map alone"):
        OfObjects.from_json(OfObjects().fit(logits, y).to_json())


DEEP = '{"format": "skcalib.calibrator 2", "calibrator": '


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "null", "1", '"x"', "{}", "\0", "NaN", None, b"{}", 3, "9" * 5000),
        *("[" * 100_000, '{"a":' * 50_000, '{"format": "skcalib.calibrator 1"}'),
        *('{"format": "skcalib.calibrator 3"}', '{"format": "skcalib.calibrator 2"}'),
        DEEP + "[" * 900 + "]" * 900 + "}",
        DEEP + '{"class": "TemperatureScaling", "fitted": {}, "params": {"x": '
        '{"tuple": ' * 300 + "1" + "}" * 302,
    ],
    ids=lambda text: str(text)[:8],
)
def test_text_of_another_kind(text):
    with pytest.raises(ValueError, match=r"^text must be what to_json of a calib") as caught:
        PostHocCalibrator.from_json(text)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["map", "temperature"], 7.5, "its map is not that of its calibrator"),
        (["map", "temperature"], float("nan"), "its map is not that of its calibrator"),
        (["calibrator", "fitted", "temperature_"], float("nan"), "must be in the types|Out of"),
        (["calibrator", "fitted", "predict_proba"], 1, "'predict_proba' is no attribute"),
        (["calibrator", "fitted", "__class__"], "x", "'__class__' is no attribute"),
        (["calibrator", "params", "n_bins"], -1, "The 'n_bins' parameter of TemperatureScaling"),
        (["calibrator", "class"], "os.system", "there is no class 'os.system'"),
        (["calibrator", "class"], "GroupwiseCalibration", ""),
        (["calibrator", "fitted", "n_features_in_"], 10**9, "there must be a column for every"),
        (["calibrator", "fitted", "classes_", "shape"], [10**12], ""),
    ],
)
def test_what_is_wrong_with_a_text(path, value, message):
    logits, y = sample(100)
    state = json.loads(TemperatureScaling().fit(logits, y).to_json())
    inner = state
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ValueError, match=f"^text must be what .*{message}") as caught:
        PostHocCalibrator.from_json(json.dumps(state))
    assert len(str(caught.value)) <= 500


@pytest.mark.slow
def test_mutated_texts_are_refused_or_serve():
    logits, y = sample(200)
    rng, refused = random.Random(0), 0
    for name in MAPS:
        state = json.loads(fitted(name, logits, y).to_json())
        for broken in itertools.islice(mutations(state, rng), 60):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    found = PostHocCalibrator.from_json(json.dumps(broken))
                except ValueError as error:
                    message = str(error)
                    assert message.startswith("text must be what to_json of a calibrator returned")
                    assert len(message) <= 500
                    refused += 1
                else:
                    proba = found.predict_proba(logits[:20])
                    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    assert refused > 40 * len(MAPS)
