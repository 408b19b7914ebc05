"""Three studies for benchmarks.ablations: the finder on sets with known wrong labels.

`labels` has the rules that decide what is fitted, also on sets of which half the samples come
twice, once with noise. `checks and caveats` has those that come after the fit; they are measured
on single base models and on labels of people, where most estimates are biased. `scales` has the
one that warns of columns of unequal scales.
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
from skcalib.labels import LabelIssueFinder
from skcalib.labels._base_models import diagnose_features
from skcalib.labels._em import _estimate_p_any_wrong, diagnose

LABELS = "skcalib.labels."
EM, MODEL, CHECKS, FINDER = (LABELS + f"_{m}." for m in ("em", "noise_model", "checks", "finder"))
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
def sets_of_single_base_models(folder: Path) -> list[LabelSet]:
    """Return every table twice for every seed; and labels of people.

    Once with distances alone, once with out-of-fold probabilities of one model. Some tables come
    once more, with features of pure noise.
    """
    noisy = list(noisy_tables(folder))
    blind = [with_noise_features(of) for of in noisy if of.name in SOME_TABLES]
    return (
        [one for of in noisy for one in with_one_base_model(of)] + blind + list(of_people(folder))
    )


def with_one_base_model(of: LabelSet) -> list[LabelSet]:
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
    alone: dict[str, Any] = {"estimator": JUDGES["distances"]}  # a single one invents most
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
    """A base model that remembers its distances by the same labels: no rule changes them."""

    def __init__(self, base_model: Any, found: dict[bytes, Any]) -> None:
        self.base_model, self.found = base_model, found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base_model, name)

    def distances(self, labels: Any, classes: Any) -> Any:
        key = labels.tobytes()
        if key not in self.found:
            found = self.base_model.distances(labels, classes)
            self.found[key] = found.filled() if hasattr(found, "filled") else found
        return self.found[key].copy()


class RememberingFinder(LabelIssueFinder):
    """A finder whose base models remember their distances; it keeps its last EM state."""

    def _make_base_models(
        self, X: Any, labels: Any, weight: Any, group_ids: Any, *, has_groups: bool
    ) -> dict[str, Any]:
        models = super()._make_base_models(X, labels, weight, group_ids, has_groups=has_groups)
        self.has_near_duplicates = group_ids is not None
        key = None if group_ids is None else group_ids.tobytes()
        return {
            name: _Remembered(model, self.found.setdefault((name, key), {}))
            for name, model in models.items()
        }

    def _show(self, state: Any, *args: Any) -> None:
        super()._show(state, *args)
        self.state = state

    def caveats(self) -> tuple[str, ...]:
        """Return the caveats of the state, by the rules that are in force."""
        return diagnose(self.state, int(self.issues_["is_issue"].sum()))


_FOUND: dict[int, dict[Any, dict[bytes, Any]]] = {}


def fitted(number: int, of: LabelSet) -> RememberingFinder:
    """Return the finder, whose base models remember their distances on this set."""
    finder = RememberingFinder(of.estimator)
    finder.found = _FOUND.setdefault(number, {})
    return finder.fit(of.X, of.given)


def _log_loss(finder: LabelIssueFinder, of: LabelSet) -> float:
    wrong = of.wrong[of.known]
    p = np.clip(1.0 - finder.issues_["p_label_correct"][of.known], SMALLEST, 1.0 - SMALLEST)
    return float(-np.where(wrong, np.log(p), np.log(1.0 - p)).mean())


def _misses(finder: LabelIssueFinder, rate: float) -> bool:
    low, high = finder.noise_rate_interval_
    return not low - 1e-9 <= rate <= high + 1e-9


def _is_off(finder: LabelIssueFinder, of: LabelSet) -> bool:
    """Return whether issues are predicted to be wrong far more or less often than they are."""
    issue = finder.issues_["is_issue"] & of.known
    p = finder.issues_["p_label_correct"][issue]
    return issue.sum() >= 5 and abs(1.0 - p.mean() - of.wrong[issue].mean()) > 0.25


def of_fit(finder: LabelIssueFinder, caveats: tuple[str, ...], of: LabelSet) -> dict[str, float]:
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
        "silent": float(is_off and not caveats),
        "false_caveat": float(bool(caveats) and rate == 0.0),
    }


def of_caveats(
    finder: LabelIssueFinder, caveats: tuple[str, ...], of: LabelSet
) -> dict[str, float]:
    """Return how often caveats are missing and needless; a blind fit finds few wrong labels."""
    wrong = of.wrong & of.known
    is_off = _is_off(finder, of) or _misses(finder, float(of.wrong[of.known].mean()))
    is_blind = wrong.sum() >= 20 and finder.issues_["is_issue"][wrong].mean() < 0.1
    return {
        "silent_off": float(is_off and not caveats),
        "silent_blind": float(is_blind and not caveats),
        "needless": float(bool(caveats) and not is_off and not is_blind),
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


_FITTED: dict[int, tuple[RememberingFinder, int]] = {}


def losses(folder: Path) -> Iterator[Loss]:
    """Yield the losses of all sets before checks."""
    for number, of in enumerate(sets(folder)):
        finder = fitted(number, of)
        values = of_fit(finder, finder.caveats(), of)
        has_copies = of.noise.endswith(COPIES)
        values["copies"] = float(finder.has_near_duplicates != has_copies)
        yield Loss(base_of(of), of.kept_out, values)


def losses_after_fit(folder: Path) -> Iterator[Loss]:
    """Yield the losses of caveats and after checks, of fits that are made once."""
    for number, of in enumerate(sets_of_single_base_models(folder), start=1000):
        if number not in _FITTED:
            finder = fitted(number, of)
            _FITTED[number] = finder, int(finder.issues_["is_issue"].sum())
        finder, n_issues = _FITTED[number]
        values = of_caveats(finder, diagnose(finder.state, n_issues), of)
        if of.known.all():
            values |= of_checks(finder, of)
        yield Loss(base_of(of), of.kept_out, values)


@cache
def sets_of_scales(folder: Path) -> list[tuple[LabelSet, float]]:
    """Return tables whose first column is as it is, or times so much, and what scaling is worth.

    The base model is neighbors; the worth is in AUROC.
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
    """Yield how often unequal scales do harm without a warning, and the other way round."""
    for of, worth in sets_of_scales(folder):
        warned = bool(diagnose_features(NEIGHBORS, of.X, of.given))
        missing = float(worth > 0.05 and not warned)
        values = {"unwarned": missing, "needless": float(worth <= 0.05 and warned)}
        yield Loss(base_of(of), of.kept_out, values)


def base_of(of: LabelSet) -> str:
    return of.name.split(",")[0]


def _rule(name: str, decides: str, value: Any, *constants: str) -> Rule:
    return Rule(name, decides, dict.fromkeys(constants, value))


def _no_near_duplicates(X: Any, codes: Any, groups: Any) -> Any:
    return None


def _none(*args: Any) -> list[str]:
    return []


def _compare_last(first: Any, last: Any, kind: str) -> float:
    return _estimate_p_any_wrong(last, last, kind)


def _never(*args: Any) -> bool:
    return False


def _no_matrix_scaling(train: Any, test: Any, uniform: Any) -> Any:
    return np.full(len(test.codes), -np.inf)


RULES = [
    _rule("NONINFORMATIVE", "wrong labels that look like right ones", 0.0, EM + "NONINFORMATIVE"),
    _rule("FIRST_FIT_WEIGHT", "mean with the first fit", 0.0, EM + "FIRST_FIT_WEIGHT"),
    _rule("MIN_GAIN_Z", "by how much a kind of noise has to win", 0.0, EM + "MIN_GAIN_Z"),
    _rule("MIN_ACCURACY", "noise where base models are weak", 0.0, EM + "MIN_ACCURACY"),
    _rule(
        "reverted changes", "refits that restore most labels", _never, EM + "_reverts_most_changes"
    ),
    _rule("confusion-dependent", "whether noise may be", ("class-dependent",), EM + "_KINDS"),
    _rule("class-dependent", "whether noise may be", ("confusion-dependent",), EM + "_KINDS"),
    _rule("SHRINKAGE", "how far a matrix is shrunk (here 20)", 20.0, MODEL + "SHRINKAGE"),
    _rule("LOG_ODDS", "how sure base models may be", 1e6, MODEL + "LOG_ODDS"),
    _rule(
        "matrix scaling",
        "whether base models may confuse classes",
        _no_matrix_scaling,
        MODEL + "_fit_matrix_scaling",
    ),
    _rule(
        "first base models",
        "those compared without noise",
        _compare_last,
        EM + "_estimate_p_any_wrong",
    ),
    _rule(
        "near-duplicates",
        "whether there are any",
        _no_near_duplicates,
        FINDER + "find_near_duplicates",
    ),
]
RULES_AFTER_FIT = [
    _rule("INTERCEPT", "prior of the line of checks", 1e3, CHECKS + "INTERCEPT"),
    _rule("LOG_SLOPE", "the same", 1e3, CHECKS + "LOG_SLOPE"),
    _rule("PSEUDO_RESIDUAL", "errors that no check has shown", 0.0, CHECKS + "PSEUDO_RESIDUAL"),
    _rule("FEWEST_CHECKS", "when checks end caveats", 2, CHECKS + "FEWEST_CHECKS"),
    _rule("STANDARD_ERRORS", "which checks are random (here 2)", 2.0, CHECKS + "STANDARD_ERRORS"),
    _rule("random or not", "whether that is tested", np.inf, CHECKS + "STANDARD_ERRORS"),
    _rule("MIN_P_ANY_WRONG", "caveat: any wrong label?", 0.0, EM + "MIN_P_ANY_WRONG"),
    _rule("MIN_INFORMATION", "caveat: features", -np.inf, EM + "MIN_INFORMATION"),
    _rule("misfit", "caveat: labels like their neighbors'", _none, EM + "diagnose_misfit"),
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
