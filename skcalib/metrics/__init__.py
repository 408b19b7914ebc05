"""Calibration, selective-prediction and out-of-distribution metrics."""

from ..utils._output import fill_docstrings
from ._accumulator import CalibrationAccumulator
from ._alignment import check_alignment
from ._calibration_error import (
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)
from ._compare import compare_calibration
from ._decisions import decision_curve, net_benefit
from ._decomposition import refined_log_loss, score_decomposition
from ._detection import fpr_at_tpr, misclassification_report, ood_report
from ._expected_cost import cost_summary, expected_cost
from ._groupwise import groupwise_calibration_error, multilabel_calibration_error
from ._intervals import calibration_error_interval, calibration_test
from ._monitor import CalibrationMonitor
from ._per_sample import (
    confidence_score,
    energy_score,
    generalized_brier_score,
    max_logit_score,
    predictive_entropy,
    probability_margin,
)
from ._prediction_powered import prediction_powered_interval
from ._registry import get_scorer, get_scorer_names
from ._reliability_curves import isotonic_reliability_curve, smooth_reliability_curve
from ._sample_size import samples_for_validation
from ._selective import (
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_coverage_curve,
)
from ._smooth import smooth_calibration_error
from ._validation import validation_summary

__all__ = [
    "CalibrationAccumulator",
    "CalibrationMonitor",
    "accuracy_at_coverage",
    "area_under_generalized_risk_coverage",
    "area_under_risk_coverage",
    "calibration_error_interval",
    "calibration_test",
    "check_alignment",
    "classwise_calibration_error",
    "compare_calibration",
    "confidence_score",
    "cost_summary",
    "coverage_at_risk",
    "debiased_calibration_error",
    "decision_curve",
    "energy_score",
    "excess_area_under_risk_coverage",
    "expected_calibration_error",
    "expected_cost",
    "fpr_at_tpr",
    "generalized_brier_score",
    "get_scorer",
    "get_scorer_names",
    "groupwise_calibration_error",
    "isotonic_reliability_curve",
    "ks_calibration_error",
    "max_logit_score",
    "maximum_calibration_error",
    "misclassification_report",
    "multilabel_calibration_error",
    "net_benefit",
    "ood_report",
    "prediction_powered_interval",
    "predictive_entropy",
    "probability_margin",
    "refined_log_loss",
    "reliability_curve",
    "risk_coverage_curve",
    "samples_for_validation",
    "score_decomposition",
    "smooth_calibration_error",
    "smooth_reliability_curve",
    "validation_summary",
]

fill_docstrings(globals())
