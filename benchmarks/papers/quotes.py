"""The claims of the papers in their own words, each with the rows that test it here.

A quotation stands with where it is printed, and for every row: the study, the start of the claim,
and the settings where these are not all. Figures, intervals and verdicts are those of the rows. A
quotation that nothing here can test says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from .claims import hardest, judged, written
from .printed import Printed
from .short import row_of
from .tables import NONE, csv_table

UNTESTED = "not tested here"
# What the rows are of, where the study is not of one kind of data.
DATA = {"human": "images", "severity": "images", "groups": "", "gra_toy": ""}


@dataclass(frozen=True)
class Quote:
    """What a paper says, where, the rows (study, start of the claim, settings), or why none."""

    words: str
    where: str
    rows: tuple[tuple[str, ...], ...] = ()
    reason: str = ""


def quote(words, where, *rows, reason=""):
    return Quote(words, where, tuple((*row, "")[:3] for row in rows), reason)


def table(studies, quotes):
    """Return the table of a paper: its words, its figures, ours with intervals, the verdicts."""
    rows = []
    for said in quotes:
        text = f"“{said.words}” ({said.where})"
        if said.reason:
            rows.append([text, NONE, said.reason, UNTESTED])
        for row in said.rows:
            claim, found = row_of(studies, *row)
            rows.append([text, of_paper(claim), here(studies, row[0], claim), found.verdict])
            text = ""
    header = ["the paper says", "it prints", "here [95 % interval]", "verdict"]
    return csv_table("", header, rows, widths="28 24 36 12")


def of_paper(claim):
    """Return the figures that the paper prints for the comparison, if any."""
    return claim.paper.text() if isinstance(claim.paper, Printed) else "no figure"


def here(studies, study, claim):
    """Return what was compared, on what data, and what came out in every setting."""
    found, data = judged(claim), studies[study].name.partition(", ")[2]
    if claim.reason:
        return f"{claim.text} {claim.reason[0].upper()}{claim.reason[1:]}."
    data = DATA.get(claim.part, data.replace("guides", "images")).capitalize()
    results = hardest(found)
    parts = "; ".join(f"{r.setting} {written(r, found)}" for r in results)
    if len(claim.rivals) > 1:
        parts += f"; hardest to beat: {', '.join(dict.fromkeys(r.rival for r in results))}"
    return f"{f'*{data}.* ' * bool(data)}{claim.text} {found.column.header}: {parts}"


LOSSES = ("label smoothing", "mixup", "focal")
DESCENTS = ("SGD", "GD")
RMD = (
    quote("the sample difficulty score (RMD) increases proportionally with the corruption and "
          "label noise severity", "Figure 1b",
          ("guides", "By a pre-trained guide, RMD rises"),
          ("guides", "By a pre-trained guide, it rises with every step"),
          ("rmd", "RMD rises with corruption")),
    quote("there is a high-level agreement on sample difficulty between RMD and human cognition",
          "Section 1, Figure 1a",
          ("guides", "By EfficientNet-Lite, RMD agrees"),
          ("guided_train", "By EfficientNet-Lite, RMD agrees"),
          ("rmd", "RMD agrees with human doubt more than Mahalanobis"),
          ("rmd", "RMD agrees with human doubt more than loss of the network")),
    quote("They all show the same trend, i.e., the error rate reduces along with the sample "
          "difficulty.", "Figure 7, as in Figure 2",
          ("guides", "By a pre-trained guide, errors get rarer"),
          ("guides", "Students that have not seen the images err less"),
          ("guided_train", "Students that have not seen the images err less"),
          ("rmd", "Errors get rarer from tenth")),
    quote("the error rate of ResNet18 and ResNet34 on the hardest data split rated by RMD is "
          "close to 90%, which significantly suppresses the performance of MD", "Appendix A",
          ("guides", "By a pre-trained guide, the hardest hundredth"),
          ("guides", "The hardest hundredth by RMD has more errors of students"),
          ("guided_train", "The hardest hundredth by RMD has more errors of students"),
          ("rmd", "The hardest hundredth by RMD")),
    quote("Our method considerably improves both accuracy and ECE over all baselines.",
          "Section 5.1, Table 2",
          ("rmd", "With weight decay in both, difficulty-aware regularization is more accurate"),
          ("rmd", "With weight decay in both, difficulty-aware regularization has the lower"),
          ("guides", "Guided by a pre-trained network, decay in both, the student is more"),
          ("guides", "Guided by a pre-trained network, decay in both, the student is better"),
          ("guided_train", "Guided by a pre-trained network, decay in both, the student is more"),
          ("guided_train", "Guided by a pre-trained network, decay in both, the student is bet"),
          ("rmd_images", "Without decay. Difficulty-aware regularization raises"),
          ("rmd_images", "Without decay. Difficulty-aware regularization lowers"),
          ("rmd_images", "It is more accurate than the six"),
          ("rmd_images", "It is better calibrated than the six")),
    quote("Compared to conventional ER with a constant weighting, our sample difficulty-aware "
          "instance-wise weighting leads to much more pronounced gains", "Section 5.1, Table 2",
          ("rmd", "With weight decay, it is better calibrated than uniform"),
          ("rmd", "With weight decay, it is more accurate than uniform"),
          ("guides", "Guided by a pre-trained network, it is better calibrated than entropy"),
          ("guided_train", "Guided by a pre-trained network, it is better calibrated than ent"),
          ("guides", "Guided by a pre-trained network, it is more accurate than entropy"),
          ("guided_train", "Guided by a pre-trained network, it is more accurate than entropy"),
          ("rmd_images", "It is better calibrated than entropy"),
          ("rmd_images", "It is more accurate than entropy")),
    quote("The proposed regularizer is obviously the top-performing one in all metrics on both "
          "CIFAR100 and ImageNet1k.", "Section 5.2, Table 3",
          ("rmd", "With weight decay in both, its confidence tells errors"),
          ("guides", "Guided by a pre-trained network, its confidence separates"),
          ("guided_train", "Guided by a pre-trained network, its confidence separates"),
          ("rmd_images", "Without decay. Its confidence tells errors"),
          *(("rmd", f"Its confidence tells errors better than that of {loss}")
            for loss in ("label smoothing", "focal", "entropy", "correctness ranking"))),
    quote("the uncertainty measures improved by our method lead to improvements in OOD detection",
          "Section 5.3, Table 4",
          ("rmd", "With weight decay in both, it detects out-of-distribution"),
          ("rmd", "With weight decay in both, it takes fewer out-of-distribution"),
          ("guided_train", "Guided by a pre-trained network, it detects"),
          ("rmd_images", "Without decay. It detects out-of-distribution")),
    quote("The proposed method achieves the lowest predictive confidence and highest entropy "
          "among all methods for misclassified samples", "Section 5.2, Figure 11",
          ("rmd", "Of five losses, its wrong predictions have the highest"),
          ("rmd", "Of five losses, its wrong predictions are the least")),
    quote("Compared to ER, the proposed method is less sensitive to the choice of [α]",
          "Section 5.4, Table 5",
          ("rmd", "It is robust to alpha")),
    quote("Table 8 confirms the superiority of RMD in measuring the sample difficulty and ranking "
          "the training samples.", "Section 5.5",
          ("rmd", "RMD is a better source of weights than Mahalanobis and k-means: accuracy"),
          ("rmd", "RMD is a better source of weights than Mahalanobis and k-means: ECE")),
    quote("the gain becomes even larger as the shift intensity increases",
          "Section 5.1, Figure 3, on ImageNet-C",
          ("guided_train", "Under corruption it is better calibrated"),
          ("guided_train", "That gain is larger under the strongest")),
    quote("it benefits the training of small and large models", "Section 5.1, Table 9, ImageNet",
          reason="It takes weeks of a GPU; ``--scale full`` has the settings."),
)  # fmt: skip
GRA = (
    quote("BSCE-GRA achieves state-of-the-art ECE performance in most cases, particularly in the "
          "pre-temperature-scaling results.", "Section 5.1, Tables 1 and 4",
          ("gra", "BSCE-GRA is better calibrated than cross-entropy"),
          ("gra_images", "BSCE-GRA is better calibrated than cross-entropy"),
          ("gra_images", "By bins of equal width, it is better calibrated than"),
          ("gra", "It is better calibrated than the six"),
          ("gra_images", "It is better calibrated than the six"),
          ("gra_images", "As published, BSCE-GRA 4")),
    quote("BSCE-GRA trains an inherently calibrated model, capable of achieving strong "
          "calibration performance without the need for additional temperature scaling",
          "Section 5.1",
          ("gra", "It needs no temperature"),
          ("gra_images", "It needs no temperature"),
          ("gra", "Unscaled, it is as well"),
          ("gra_images", "Unscaled, it is as well"),
          ("gra", "After temperature scaling of both, it is still"),
          ("gra_images", "After temperature scaling of both, it is still")),
    quote("applying weights on gradients results in performance improvement for both [FL and "
          "DFL]", "Section 5.3, Table 2; BSCE in Table 1",
          *((study, f"Weighting gradients beats weighting the loss: {loss}")
            for study in ("gra", "gra_images") for loss in ("FLSD", "dual focal", "BSCE"))),
    quote("the [gBS] metric has the best performance compared to the uncertainty metric used in "
          "Focal Loss and Dual Focal Loss", "Section 4.3",
          ("gra", "In the toy of Sec. 4.3, the Brier weight"),
          ("gra", "In the toy, the Brier weight"),
          ("gra", "In the toy, the dual focal weight"),
          ("gra_images", "The Brier weight beats the focal"),
          ("gra_images", "The Brier weight beats the dual focal"),
          ("gra", "The Brier weight beats the focal"),
          ("gra", "The Brier weight beats the dual focal")),
    quote("the gradients produced by BSCE-GRA are the most sensitive to changes in the Brier "
          "Score, as indicated by the narrow distribution compared to other loss functions",
          "Section 5.2, Figure 4",
          ("gra", "Gradients of BSCE-GRA follow the Brier score closer than those of focal"),
          ("gra", "Gradients of BSCE-GRA follow the Brier score closer than those of dual")),
    quote("it shows a competitive performance in accuracy compared with other methods",
          "Appendix, Table 3",
          ("gra", "BSCE-GRA costs less than a point"),
          ("gra_images", "BSCE-GRA costs less than a point")),
    quote("all methods perform similarly in terms of Classwise-ECE, yet BSCE-GRA consistently "
          "achieves the best results across most settings", "Appendix, Table 5",
          ("gra", "It is better calibrated class by class"),
          ("gra_images", "It is better calibrated class by class")),
    quote("we fine-tune a ResNet-50 model, pretrained on IN-1K", "Appendix, Table 8",
          reason="ImageNet and an accelerator for 90 epochs were not at hand; ``--scale full`` "
          "has the settings."),
)  # fmt: skip
PRIO = (
    quote("Calibration with sample prioritization => lower test ECEs across the board", "Results",
          *((study, f"Calibrating by {loss} lowers the ECE")
            for study in ("prio", "prio_images") for loss in LOSSES)),
    quote("No significant trade-offs between accuracies and ECEs", "Results",
          *((study, f"Calibrating by {loss} costs less")
            for study in ("prio", "prio_images") for loss in LOSSES)),
    quote("Mixup consistently performs well (high accuracies, low ECEs), LS (least performance)",
          "Results",
          *((study, f"Mixup is {what} than label smoothing")
            for study in ("prio", "prio_images")
            for what in ("better calibrated", "more accurate"))),
    quote("Target – significant improvement over current (particularly for LS)", "Results",
          *((study, f"A target trained with mixup lowers the ECE of {loss}")
            for study in ("prio", "prio_images") for loss in LOSSES),
          *((study, f"A target trained with mixup raises the accuracy of {loss}")
            for study in ("prio", "prio_images") for loss in LOSSES)),
    quote("Calibrated pre-trained ‘target’ models coupled with calibration during training can "
          "also guide sample prioritization.", "Motivation",
          *((study, f"With a target, calibrating by {loss} lowers")
            for study in ("prio", "prio_images") for loss in LOSSES)),
    quote("Speed up the overall training process", "Motivation",
          reason="The poster prints no time. Here all students make equally many steps; ``--scale "
          "full`` would measure the time on its networks."),
)  # fmt: skip
DEPTH = (
    quote("prediction depth appears to establish a linear lower bound on the consistency of a "
          "prediction", "Section 1, Figure 4",
          ("depth", "Consistency has a linear lower bound"),
          ("depth", "Deeper predictions are less consistent")),
    quote("predictions are on average more accurate for validation points with small prediction "
          "depths", "Section 1, Figure 4",
          ("depth", "Deeper predictions are less accurate")),
    quote("Prediction depth in one model predicts the consensus-consistency of an ensemble that "
          "does not include that model.", "Figure 4",
          ("depth", "The depth in one network tells")),
    quote("Data points with small prediction depths are on average learned before data points "
          "with higher prediction depths.", "Figure 5",
          ("depth", "Deeper predictions are learned later")),
    quote("mislabeled data are initially processed as though they are a member of their original "
          "class", "Section 3.2, Figure 5",
          ("depth", "On samples with a memorized wrong label")),
    quote("both the adversarial input margin and the output margin are larger for examples with "
          "smaller prediction depths", "Section 1, Figure 6",
          ("depth", "Over 6 networks, samples of larger mean depth have a smaller mean output"),
          ("depth", "Over 6 networks, samples of larger mean depth have a smaller mean input"),
          ("depth", "Deeper predictions have smaller output"),
          ("depth", "Deeper predictions have smaller input")),
    quote("The output margin obtained with the intervention is 5 orders of magnitude smaller than "
          "in the control experiment", "Section 3.3",
          *(("depth", "The 0-hinge loss by full-batch descent leaves a smaller output margin than "
             f"cross-entropy, {how}") for how in DESCENTS)),
    quote("this leads to predictions being made only in the latest hidden layers", "Section 1, "
          "Figure 6",
          *(("depth", f"{what} than those of cross-entropy, SGD") for what in (
              "Its predictions are deeper",
              "Its hidden layers cluster less of the training samples"))),
    quote("an increase in accuracy from 25% to 98% for the inputs that are most “ambiguous "
          "without their label”", "Section 5",
          ("depth", "On samples that are ambiguous without")),
    quote("the k-NN accuracies we report are insensitive to k over a wide range", "Section 2.1",
          ("depth", "Depths by 3 neighbors"),
          ("depth", "Depths by 10")),
    quote("This order aligns with how one might intuitively rank the difficulties of these "
          "classification tasks.", "Figure 1, of mean depths of four data sets",
          ("depth", "Data sets with deeper predictions")),
    quote("prediction depth is consistent between architectures and random seeds", "Section 1, "
          "Figure 2",
          ("depth", "Depths agree between networks of other seeds"),
          ("depth", "Depths agree between architectures")),
)  # fmt: skip
QUOTES = {"rmd": RMD, "prio": PRIO, "depth": DEPTH, "gra": GRA}
