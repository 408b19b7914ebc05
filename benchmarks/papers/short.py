"""What the pages say in short, each sentence with the rows that carry it.

A sentence stands for the verdicts of its rows, and a test asks whether they have these in the
settings that it speaks of. The first sentence of a page is what we believe now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .claims import judged

HOLDS, SMALLER, PART = "holds", "holds, smaller", "holds in part"
OPEN, NOT = "undecided", "does not hold here"


@dataclass(frozen=True)
class Says:
    """A sentence, and its rows: (verdict, study, start of the claim, settings, "" for all)."""

    text: str
    rows: tuple[tuple[str, str, str, str], ...]

    def verdicts(self):
        """Return what became of the claims: the sentence is what was found, not what they say."""
        found = [*dict.fromkeys(verdict for verdict, *_ in self.rows)]
        if len(found) > 1:
            return f"claims: {', '.join(found)}"
        return f"the claim {'is ' if found == [OPEN] else ''}{found[0]}"


def says(text, verdict, *rows):
    """Return a sentence; rows without a verdict of their own have the one that is given."""
    return Says(text, tuple(row if len(row) == 4 else (verdict, *row) for row in rows))


def row_of(studies, study, start, settings=""):
    """Return the one claim that starts so, in these settings, and its judgement."""
    (claim,) = (c for c in studies[study].claims if c.text.startswith(start))
    if settings:
        claim = replace(claim, settings=tuple(settings.split("|")))
    return claim, judged(claim)


def written(page):
    """Return the sentences of a page, each with its verdict; the first is what we believe now."""
    first, *others = SHORT[page]
    lines = [f"**What we believe now.** {first.text} *({first.verdicts()})*", ""]
    return "\n".join([*lines, *(f"- {said.text} *({said.verdicts()})*" for said in others)]) + "\n"


def beliefs(names):
    """Return the first sentence of every page, with a link to it."""
    return "".join(
        f"- :doc:`{name} </evidence/{page}>`: {SHORT[page][0].text}\n"
        for page, name in names.items()
    )


SHORT = {
    "rmd": (
        says("The difficulty is real, and the loss calibrates an overconfident network; with "
             "weight decay and clean labels it adds no accuracy, and no more calibration than a "
             "penalty that ignores difficulty.", NOT,
             (HOLDS, "rmd", "The hardest hundredth by RMD", ""),
             (HOLDS, "rmd_images", "Without decay. Difficulty-aware regularization lowers", ""),
             ("rmd", "With weight decay in both, difficulty-aware regularization is more",
              "clean"),
             ("rmd", "With weight decay, it is better calibrated than uniform", "clean")),
        says("A pre-trained network that never learned the classes follows the doubt of people by "
             "RMD, and not by the Mahalanobis distance.", HOLDS,
             ("guides", "By EfficientNet-Lite, RMD agrees", "")),
        says("It follows them more than a small network that learned the classes from 20 000 "
             "images.", NOT, ("guided_train", "A guide that learned the classes agrees", "")),
        says("To find the errors of a strong network and flipped labels, a better guide matters: "
             "one that learned the classes finds more than a pre-trained one, and that more than "
             "one of rotations.", HOLDS,
             ("guides", "A guide that learned the classes tells errors", ""),
             ("guides", "A guide that learned the classes finds flipped", ""),
             ("guides", "A pre-trained guide tells errors", ""),
             ("guides", "A pre-trained guide finds flipped", "")),
        says("Features are to be few for the samples: 64 components of a "
             "pre-trained network do better than all 1280.", HOLDS,
             ("guides", "64 components of a pre-trained guide agree", ""),
             ("guides", "64 components of a pre-trained guide tell", "")),
        says("With the alpha, T and weights of the paper, a pre-trained guide takes off about "
             "half of the calibration error that weight decay leaves on clean images.", HOLDS,
             ("guides", "With the alpha, T and weights of the paper", "clean")),
        says("Students of 20 000 real training images with weight decay get neither more accurate "
             "nor better calibrated by the guided loss; nor are they under corruption.", NOT,
             *(("guided_train", f"Guided by a pre-trained network, decay in both, the student is "
                f"{what}", "") for what in ("more", "better")),
             ("guided_train", "Under corruption it is better calibrated", "")),
        says("In the loss of small students the choice of the guide does not matter: none of "
             "three is ahead in accuracy or selective risk.", NOT,
             *(("guides", f"A better guide matters: {what}, by {which}", "")
               for what in ("more accurate", "less selective risk")
               for which in ("one that learned", "a pre-trained one"))),
        says("Which guide finds errors depends on the student: for perceptrons on few pixels, "
             "rotation is ahead of the pre-trained network.", NOT,
             ("guides", "A pre-trained guide separates the errors of students better", "")),
        says("In features of a pre-trained network, RMD rises with every corruption and with the "
             "fraction of flipped labels.", HOLDS,
             ("guides", "By a pre-trained guide, RMD rises", "")),
        says("RMD finds the samples that a network gets wrong far better than the Mahalanobis "
             "distance.", HOLDS, ("rmd", "The hardest hundredth by RMD", "")),
        says("RMD rises with the fraction of flipped labels, at every step.", HOLDS,
             ("rmd", "RMD rises with corruption", "labels"),
             ("rmd", "It rises with every step", "labels")),
        says("In features of rotation RMD hardly rises with noise and blur.", PART,
             ("rmd", "RMD rises with corruption", "")),
        says("Without weight decay the loss takes off more than half of the calibration error of "
             "a small residual network.", HOLDS,
             ("rmd_images", "Without decay. Difficulty-aware regularization lowers", "")),
        says("Its gain in accuracy on images is open: it is below that on CIFAR, and may be that "
             "on ImageNet.", OPEN,
             ("rmd_images", "Without decay. Difficulty-aware regularization raises", "")),
        says("Under label noise, with decay in both, it is more accurate.", HOLDS,
             ("rmd", "With weight decay in both, difficulty-aware regularization is more",
              "U20|I20")),
        says("It is the difficulty that helps: with shuffled weights the errors are ranked worse.",
             HOLDS, ("rmd_images", "The difficulty matters for selective risk", "")),
        says("After a temperature no difference in calibration is left on images.", NOT,
             ("rmd_images", "After temperature scaling it is still better calibrated", "")),
    ),
    "gra": (
        says("Weighting by uncertainty calibrates an overconfident network; with the Brier "
             "weight, gradients do no better than the loss.", NOT,
             (HOLDS, "gra_images", "BSCE-GRA is better calibrated than cross-entropy.", ""),
             ("gra", "Weighting gradients beats weighting the loss: BSCE", ""),
             ("gra_images", "Weighting gradients beats weighting the loss: BSCE", "")),
        says("On images BSCE-GRA takes off as much of the calibration error as in the paper.",
             HOLDS, ("gra_images", "BSCE-GRA is better calibrated than cross-entropy", "")),
        says("On texts it takes off less.", SMALLER,
             ("gra", "BSCE-GRA is better calibrated than cross-entropy", "")),
        says("On images the Brier weight beats the focal and the dual focal one.", HOLDS,
             ("gra_images", "The Brier weight beats the focal one", ""),
             ("gra_images", "The Brier weight beats the dual focal one", "")),
        says("On images a temperature on cross-entropy leaves less error, and costs no accuracy.",
             NOT, ("gra_images", "After temperature scaling of both", ""),
             ("gra_images", "BSCE-GRA costs less than a point", "")),
        says("Its gradients follow the Brier score closest, by little.", SMALLER,
             *(("gra", f"Gradients of BSCE-GRA follow the Brier score closer than those of {loss}",
                "") for loss in ("focal 3", "dual focal 5"))),
        says("In the toy of Section 4.3 the dual focal weight is ahead of the Brier weight.", NOT,
             ("gra", "In the toy, the Brier weight follows the error closer than the dual", "")),
    ),
    "prio": (
        says("On texts the headline of the poster holds: calibrating while a student learns its "
             "least certain samples lowers the error at every fraction, and by focal loss as much "
             "as there.", HOLDS,
             *(("prio", f"Calibrating by {loss} lowers the ECE", "")
               for loss in ("focal", "label smoothing", "mixup"))),
        says("Focal loss and label smoothing cost less than a point of accuracy.", HOLDS,
             ("prio", "Calibrating by focal costs less", ""),
             ("prio", "Calibrating by label smoothing costs less", "")),
        says("Mixup costs more than a point here, unlike there; on texts it is the worst of the "
             "three in accuracy.", NOT, ("prio", "Calibrating by mixup costs less", ""),
             ("prio", "Mixup is more accurate than label smoothing", "")),
        says("A target helps label smoothing most, as the poster says: it lowers its calibration "
             "error by about half.", HOLDS,
             ("prio", "A target trained with mixup lowers the ECE of label smoothing", "")),
        says("It does not lower that of focal loss, and makes no loss more accurate.", NOT,
             ("prio", "A target trained with mixup lowers the ECE of focal", ""),
             *(("prio", f"A target trained with mixup raises the accuracy of {loss},", "")
               for loss in ("label smoothing", "mixup", "focal"))),
        says("A target lowers the error of a student without calibration.", SMALLER,
             ("prio", "A target trained with mixup chooses better samples than the student", "")),
        says("On images, with a fifth of the samples or more, mixup and focal loss take off about "
             "half of the error of an overconfident network; focal loss took off more there.",
             HOLDS,
             ("prio_images", "Calibrating by mixup lowers the ECE", "30 %|20 %"),
             (SMALLER, "prio_images", "Calibrating by focal lowers the ECE", "30 %|20 %")),
        says("With a tenth, where the network is hardly overconfident, no loss shows an effect.",
             OPEN,
             *(("prio_images", f"Calibrating by {loss} lowers the ECE", "10 %")
               for loss in ("label smoothing", "mixup")),
             (NOT, "prio_images", "Calibrating by focal lowers the ECE", "10 %")),
        says("With a target on images every loss takes off two thirds or more.", HOLDS,
             *(("prio_images", f"With a target, calibrating by {loss} lowers the ECE", "")
               for loss in ("label smoothing", "mixup", "focal"))),
        says("But a target on images makes no loss more accurate, and random samples beat the "
             "least certain ones at equal steps.", NOT,
             *(("prio_images", f"A target trained with mixup raises the accuracy of {loss},", "")
               for loss in ("label smoothing", "mixup", "focal")),
             ("prio_images", "The least certain samples beat random ones", "")),
    ),
    "depth": (
        says("Depth behaves as the paper says: deeper predictions are less accurate, less "
             "consistent and learned later.", HOLDS,
             ("depth", "Deeper predictions are less accurate", ""),
             ("depth", "Deeper predictions are less consistent", ""),
             ("depth", "Deeper predictions are learned later", "")),
        says("Training for no margin leaves output margins that are powers of ten smaller, less "
             "than there.", SMALLER,
             *(("depth", f"The 0-hinge loss by full-batch descent leaves a smaller output margin "
                f"than cross-entropy, {how}", "") for how in ("SGD", "GD"))),
        says("Its predictions are deeper.", HOLDS,
             ("depth", "Its predictions are deeper than those of cross-entropy, SGD", "")),
        says("That full batches matter, and not the loss alone, shows on some data sets.", PART,
             ("depth", "The 0-hinge loss by full-batch descent leaves a smaller output margin "
              "than 0-hinge, SGD", "")),
        says("Samples of larger mean depth have smaller mean margins, as closely as there.", HOLDS,
             *(("depth", "Over 6 networks, samples of larger mean depth have a smaller mean "
                f"{what} margin", "") for what in ("output", "input"))),
        says("On samples that are ambiguous without their label, the middle of the network helps, "
             "far less than there.", SMALLER,
             ("depth", "On samples that are ambiguous without their label", "")),
    ),
    "labels": (
        says("Acting on flipped labels gains far more than a loss.", HOLDS,
             ("labels", "Soft labels of the finder beat cross-entropy: accuracy", ""),
             ("rmd_images", "Soft labels of the finder beat cross-entropy: accuracy", "")),
        says("The gain survives early stopping.", HOLDS,
             ("labels", "They beat cross-entropy with early stopping.", "")),
        says("Where no label is wrong they do no harm.", HOLDS,
             ("labels", "They do no harm on clean labels", "")),
    ),
    "pruning": (
        says("Which samples to keep depends on the labels: with wrong ones the easiest by RMD "
             "beat random ones, with true ones they do not.", NOT,
             (HOLDS, "pruning", "With wrong labels, the easiest samples by RMD beat",
              "U20, 30 % pruned|U20, 50 % pruned|U20, 70 % pruned"),
             ("pruning", "With true labels, the easiest samples by RMD beat", "")),
        says("With wrong labels the easiest samples beat random ones, until a tenth is left.",
             HOLDS, ("pruning", "With wrong labels, the easiest samples by RMD beat",
                     "U20, 30 % pruned|U20, 50 % pruned|U20, 70 % pruned")),
    ),
    "shift": (
        says("A few hundred labeled images of the shifted data repair the calibration that a "
             "temperature from clean images leaves.", HOLDS,
             ("shift", "A temperature from images of the same shift",
              "|".join(f"severity {i}" for i in range(1, 6)))),
        says("Both losses are better calibrated than cross-entropy at every severity.", HOLDS,
             ("shift", "BSCE-GRA is better calibrated than cross-entropy", ""),
             ("shift", "Focal loss is better calibrated than cross-entropy", "")),
    ),
}  # fmt: skip
