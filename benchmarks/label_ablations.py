"""Three studies for benchmarks.ablations: the finder on sets with known wrong labels.

`labels` has the rules that decide what is fitted, also on sets of which half the samples come
twice, once with noise. `checks and caveats` has those that come after the fit; they are judged on
single judges and on labels of people, where most claims are off. `scales` has the one that warns
of columns of unequal scales.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._ablation import Loss, Rule, Study
from benchmarks.label_sets import NOISES, LabelSet, labels_of, of_people, some_of, tables
from benchmarks.labels_trust import JUDGES
from skcalib.labels import LabelIssueFinder, _finder
from skcalib.labels._base_models import judges_of, remarks_on
from skcalib.labels._em import doubts_of
from skcalib.labels._noise_model import no_flips

LABELS = "skcalib.labels."
EM, MODEL, MODELS, CHECKS, FINDER = (
    LABELS + f"_{m}." for m in ("em", "noise_model", "base_models", "checks", "finder")
)
# Every table comes once for each seed, with another way in which labels are wrong.
SEEDS = (0,)
COPIES = ", copies"
SMALLEST = 1e-3
N_CHECKS, FEW_CHECKS, DRAWS = 100, 20, 2
FACTORS, NEIGHBORS = (1.0, 30.0, 1e4), KNeighborsClassifier(15)
SOME_TABLES = "digits", "segment", "images", "generated 4", "sentences 5", "unequal"


def noisy_tables(folder: Path) -> Iterator[LabelSet]:
    """Yield every table with one way in which labels are wrong for each seed, in turn."""
    for place, (name, *table) in enumerate(tables(folder)):
        X, y = some_of(*table)
        for seed in SEEDS:
            noise = NOISES[(2 * place + seed) % len(NOISES)]
            yield LabelSet(name, noise, X, labels_of(noise, X, y, seed), y)


@cache
def sets_of_single_judges(folder: Path) -> list[LabelSet]:
    """Return every table twice for every seed; and labels of people.

    Once distances judge alone, once out-of-fold probabilities of one model. Some tables come once
    more, with features that tell nothing.
    """
    noisy = list(noisy_tables(folder))
    blind = [with_noise_features(of) for of in noisy if of.name in SOME_TABLES]
    return [one for of in noisy for one in with_one_judge(of)] + blind + list(of_people(folder))


def with_one_judge(of: LabelSet) -> list[LabelSet]:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=100, tol=1e-2))
    proba = cross_val_predict(model, of.X, of.given, cv=4, method="predict_proba")
    ready = of._replace(noise=f"{of.noise}, ready", X=proba, estimator="precomputed")
    return [of._replace(noise=f"{of.noise}, distances", estimator=JUDGES["distances"]), ready]


def with_noise_features(of: LabelSet) -> LabelSet:
    X = np.random.default_rng(0).standard_normal((len(of.X), 10))
    return of._replace(noise="noise features", X=X, estimator=JUDGES["distances"])


@cache
def sets(folder: Path) -> list[LabelSet]:
    chosen = [*noisy_tables(folder), *of_people(folder)]
    alone: dict[str, Any] = {"estimator": JUDGES["distances"]}  # a single judge invents most
    for of in chosen.copy():
        if of.noise == "published":
            chosen.append(of._replace(noise="published, distances", **alone))
        elif of.noise in NOISES and len(of.X) > 200:
            chosen.append(with_copies(of))
    return chosen


def with_copies(of: LabelSet) -> LabelSet:
    """Return half of the samples twice, once with some noise, as an augmented picture."""
    rows = np.repeat(np.arange(0, len(of.X), 2), 2)
    X = of.X[rows].astype(float)
    noise = np.random.default_rng(0).standard_normal(X[1::2].shape)
    X[1::2] += 0.05 * X.std(axis=0) * noise
    return of._replace(noise=f"{of.noise}{COPIES}", X=X, given=of.given[rows], true=of.true[rows])


class _Remembered:
    """A judge that remembers what it said of the same labels: no rule changes that."""

    def __init__(self, judge: Any, said: dict[bytes, Any]) -> None:
        self.judge, self.said = judge, said

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judge, name)

    def distances(self, labels: Any, classes: Any) -> Any:
        key = labels.tobytes()
        if key not in self.said:
            found = self.judge.distances(labels, classes)
            self.said[key] = found.filled() if hasattr(found, "filled") else found
        return self.said[key].copy()


_SAID: dict[int, dict[Any, dict[bytes, Any]]] = {}
_TWINS: dict[int, bool] = {}


def fitted(number: int, of: LabelSet) -> LabelIssueFinder:
    """Return the finder, whose judges say what they have said before."""
    said = _SAID.setdefault(number, {})

    def remembered(
        estimator: Any, X: Any, labels: Any, weight: Any, cv: Any, groups: Any, *, asked: bool
    ) -> dict[str, Any]:
        judges = judges_of(estimator, X, labels, weight, cv, groups, asked=asked)
        _TWINS[number] = groups is not None
        of_groups = None if groups is None else groups.tobytes()
        return {
            name: _Remembered(judge, said.setdefault((name, of_groups), {}))
            for name, judge in judges.items()
        }

    def kept(judged: Any, n_issues: int) -> tuple[str, ...]:
        _JUDGED[number] = judged, n_issues
        return doubts_of(judged, n_issues)

    _finder.judges_of, _finder.doubts_of = remembered, kept
    try:
        return LabelIssueFinder(of.estimator).fit(of.X, of.given)
    finally:
        _finder.judges_of, _finder.doubts_of = judges_of, doubts_of


def _log_loss(finder: LabelIssueFinder, of: LabelSet) -> float:
    wrong = of.wrong[of.known]
    p = np.clip(1.0 - finder.issues_["p_label_correct"][of.known], SMALLEST, 1.0 - SMALLEST)
    return float(-np.where(wrong, np.log(p), np.log(1.0 - p)).mean())


def _misses(finder: LabelIssueFinder, rate: float) -> bool:
    low, high = finder.noise_rate_interval_
    return not low - 1e-9 <= rate <= high + 1e-9


def _is_off(finder: LabelIssueFinder, of: LabelSet) -> bool:
    """Tell whether the issues claim to be wrong far more or less often than they are."""
    issue = finder.issues_["is_issue"] & of.known
    p = finder.issues_["p_label_correct"][issue]
    return issue.sum() >= 5 and abs(1.0 - p.mean() - of.wrong[issue].mean()) > 0.25


def of_fit(finder: LabelIssueFinder, doubts: tuple[str, ...], of: LabelSet) -> dict[str, float]:
    """Return the losses before checks."""
    issues, rate = finder.issues_, float(of.wrong[of.known].mean())
    repaired = np.where(issues["is_issue"], issues["suggested_label"], of.given)[of.known]
    is_missed, wrong = _misses(finder, rate), of.wrong[of.known]
    is_off = _is_off(finder, of) or is_missed
    p_correct = issues["p_label_correct"][of.known]
    return {
        "log_loss": _log_loss(finder, of),
        "ranking": 1.0 - roc_auc_score(~wrong, p_correct) if 0.0 < rate < 1.0 else 0.0,
        "missed": float(is_missed),
        "wrong_after": float(np.mean(repaired != of.true[of.known])),
        "rate_error": abs(finder.noise_rate_ - rate),
        "silent": float(is_off and not doubts),
        "false_doubt": float(bool(doubts) and rate == 0.0),
    }


def of_doubts(finder: LabelIssueFinder, doubts: tuple[str, ...], of: LabelSet) -> dict[str, float]:
    """Return how often doubts are missing and needless; blind is who finds few wrong labels."""
    wrong = of.wrong & of.known
    is_off = _is_off(finder, of) or _misses(finder, float(of.wrong[of.known].mean()))
    is_blind = wrong.sum() >= 20 and finder.issues_["is_issue"][wrong].mean() < 0.1
    return {
        "silent_off": float(is_off and not doubts),
        "silent_blind": float(is_blind and not doubts),
        "needless": float(bool(doubts) and not is_off and not is_blind),
    }


def of_checks(finder: LabelIssueFinder, of: LabelSet) -> dict[str, float]:
    """Return the losses after random and informative checks, of few and of chosen ones."""
    rows = np.flatnonzero(of.known)
    finder, rate = copy(finder), float(of.wrong[rows].mean())
    finder._draws, n_checks = [], min(N_CHECKS, len(rows) // 2)
    values: dict[str, list[float]] = {}

    def note(**losses: float) -> None:
        for name, value in losses.items():
            values.setdefault(name, []).append(float(value))

    def checked(some: Any) -> LabelIssueFinder:
        return finder.update_with_checks(some, of.true[some])

    for seed in range(DRAWS):
        for design in ("random", "informative"):
            checked(finder.draw_samples_to_check(n_checks, design=design, random_state=seed))
            note(checked_log_loss=_log_loss(finder, of), checked_missed=_misses(finder, rate))
            if design == "informative":
                note(informative_error=abs(finder.noise_rate_ - rate))
        at_random = np.random.default_rng(seed).permutation(rows)
        note(accused=checked(at_random[:n_checks]).n_checks_ == 0)
        checked(at_random[:FEW_CHECKS])
        note(early_log_loss=_log_loss(finder, of))
        note(silent_early=_is_off(finder, of) and not finder.caveats_)
    finder._draws = []
    worst = rows[np.argsort(finder._of_model[0][rows], kind="stable")]
    note(believed=checked(worst[:n_checks]).n_checks_ > 0)
    return {name: float(np.mean(v)) for name, v in values.items()}


_JUDGED: dict[int, Any] = {}
_FITTED: dict[int, Any] = {}


def losses(folder: Path) -> Iterator[Loss]:
    """Yield the losses of all sets before checks."""
    for number, of in enumerate(sets(folder)):
        finder = fitted(number, of)
        values = of_fit(finder, doubts_of(*_JUDGED[number]), of)
        has_copies = of.noise.endswith(COPIES)
        values["copies"] = float(_TWINS[number] != has_copies)
        yield Loss(base_of(of), of.kept_out, values)


def losses_after_fit(folder: Path) -> Iterator[Loss]:
    """Yield the losses of doubts and after checks, of fits that are made once."""
    for number, of in enumerate(sets_of_single_judges(folder), start=1000):
        if number not in _FITTED:
            finder = fitted(number, of)
            _FITTED[number] = finder, _JUDGED[number]
        finder, judged = _FITTED[number]
        values = of_doubts(finder, doubts_of(*judged), of)
        if of.known.all():
            values |= of_checks(finder, of)
        yield Loss(base_of(of), of.kept_out, values)


@cache
def sets_of_scales(folder: Path) -> list[tuple[LabelSet, float]]:
    """Return tables whose first column is as it is, or times so much, and what scaling is worth.

    Neighbors judge; the worth is in AUROC.
    """
    result = []
    for of in noisy_tables(folder):
        for factor in FACTORS if of.wrong.mean() > 0 else ():
            X = of.X.astype(float)
            X[:, 0] *= factor
            ranking = [
                roc_auc_score(~of.wrong, LabelIssueFinder(e).fit(X, of.given)._of_model[0])
                for e in (make_pipeline(StandardScaler(), NEIGHBORS), NEIGHBORS)
            ]
            result.append((of._replace(X=X), ranking[0] - ranking[1]))
    return result


def losses_of_scales(folder: Path) -> Iterator[Loss]:
    """Yield how often unequal scales do harm and are not told, and the other way round."""
    for of, worth in sets_of_scales(folder):
        told = bool(remarks_on(NEIGHBORS, of.X, of.given))
        untold = float(worth > 0.05 and not told)
        values = {"untold": untold, "needless": float(worth <= 0.05 and told)}
        yield Loss(base_of(of), of.kept_out, values)


def base_of(of: LabelSet) -> str:
    return of.name.split(",")[0]


def _rule(name: str, decides: str, value: Any, *constants: str) -> Rule:
    return Rule(name, decides, dict.fromkeys(constants, value))


def _no_twins(X: Any, codes: Any, groups: Any) -> Any:
    return None


def _none(*args: Any) -> list[str]:
    return []


def _of_last(first: Any, last: Any, kind: str) -> float:
    return no_flips(last.likelihood, last.choice.fits[kind]).log_likelihood


def _never(*args: Any) -> bool:
    return False


def _no_confusions(train: Any, test: Any, common: Any) -> Any:
    return np.full(len(test.codes), -np.inf)


RULES = [
    _rule("HIDDEN", "wrong labels that look like right ones", 0.0, EM + "HIDDEN"),
    _rule("WEIGHT_OF_FIRST", "mean with the first round", 0.0, EM + "WEIGHT_OF_FIRST"),
    _rule("AHEAD", "by how much flips have to be ahead", 0.0, EM + "AHEAD"),
    _rule("WEAK", "flips where judges are weak", 0.0, EM + "WEAK"),
    _rule("taken back", "refits that believe the labels again", _never, EM + "_takes_back"),
    _rule("near flips", "whether there are any", ("flips",), EM + "_KINDS"),
    _rule("matrix", "whether flips are between classes", ("near",), EM + "_KINDS"),
    _rule("SHRINKAGE", "how far a matrix is shrunk (here 20)", 20.0, MODEL + "SHRINKAGE"),
    _rule("LOG_ODDS", "how sure judges may be", 1e6, MODEL + "LOG_ODDS"),
    _rule(
        "confusions",
        "whether judges may confuse classes",
        _no_confusions,
        MODEL + "_confusions",
    ),
    _rule("judges of none", "those fitted to given labels", _of_last, EM + "_of_none"),
    _rule("twins", "whether there are any", _no_twins, FINDER + "with_twins"),
]
RULES_AFTER_FIT = [
    _rule("INTERCEPT", "prior of the line of checks", 1e3, CHECKS + "INTERCEPT"),
    _rule("LOG_SLOPE", "the same", 1e3, CHECKS + "LOG_SLOPE"),
    _rule("UNSEEN", "errors that no check has shown", 0.0, CHECKS + "UNSEEN"),
    _rule("FEWEST_CHECKS", "when checks end doubts", 2, FINDER + "FEWEST_CHECKS"),
    _rule("STANDARD_ERRORS", "which checks are random (here 2)", 2.0, FINDER + "STANDARD_ERRORS"),
    _rule("random or not", "whether that is asked", np.inf, FINDER + "STANDARD_ERRORS"),
    _rule("SURE", "doubt of any wrong label", 0.0, EM + "SURE"),
    _rule("WEAK, doubt", "doubt of weak judges", 0.0, EM + "WEAK"),
    _rule("KNOWN", "doubt of features", -np.inf, EM + "KNOWN"),
    _rule("misfits", "doubt of labels that neighbors defend", _none, EM + "of_misfits"),
]
RULES_OF_SCALES = [
    _rule(
        "LARGEST_RATIO", "warning of unequal scales", np.inf, LABELS + "_base_models.LARGEST_RATIO"
    ),
    _rule("LARGEST_RATIO", "the same (here 30)", 30.0, LABELS + "_base_models.LARGEST_RATIO"),
]
STUDY = Study(RULES, losses)
SCALES = Study(RULES_OF_SCALES, losses_of_scales)
AFTER_FIT = Study(RULES_AFTER_FIT, losses_after_fit)
