"""What the papers print of their settings; ``--scale full`` reads it from here.

[RMD] Sec. 4; [PRIO] Appendix A and Tables 1 and 2; [GRA] Sec. 5 and App. 14; [DEPTH] A.2 and its
Table 1. What no paper prints is said in the modules that use it.
"""

from __future__ import annotations

# Network, epochs, learning rate, weight decay, and milestones where the rate falls to a tenth.
STUDENTS = {
    "rmd": {"network": "resnet34", "n_epochs": 200, "lr": 0.1, "weight_decay": 1e-4},
    "gra": {
        "network": "resnet50", "n_epochs": 350, "lr": 0.1, "weight_decay": 5e-4,
        "milestones": (150, 250),
    },
    "prio": {"network": "resnet34", "n_epochs": 200, "weight_decay": 5e-4},
}  # fmt: skip
DIFFICULTY_AWARE = {"temperature": 0.7, "alpha": 0.3}

# [PRIO]: at 100, 30, 20 and 10 % of the samples, alone and guided by a target.
FRACTIONS = (1.0, 0.3, 0.2, 0.1)
N_WARMUP = 10
PRIO = {
    "cifar10": {
        "lr": 0.01,
        "target mixup": 0.3,
        "alone": {
            "label smoothing": (0.03, 0.05, 0.05, 0.03),
            "mixup": (0.1, 0.3, 0.2, 0.15),
            "focal": (1.0, 3.0, 3.0, 3.0),
        },
        "target": {"mixup": (0.1, 0.3, 0.15, 0.15), "focal": (1.0, 2.0, 2.0, 1.0)},
    },
    "cifar100": {
        "lr": 0.1,
        "target mixup": 0.25,
        "alone": {
            "label smoothing": (0.03, 0.03, 0.03, 0.09),
            "mixup": (0.15, 0.15, 0.15, 0.35),
            "focal": (1.0, 3.0, 3.0, 5.0),
        },
        "target": {"mixup": (0.15, 0.2, 0.15, 0.15), "focal": (1.0, 2.0, 3.0, 2.0)},
    },
}

# [DEPTH], CIFAR-10: learning rate, momentum, and steps at that rate, a tenth of it, ...
DEPTH = {
    "resnet18": {"lr": 0.04, "momentum": 0.95, "steps": (7000,)},
    "vgg16": {"lr": 0.04, "momentum": 0.9, "steps": (5000, 1000)},
    "mlp": {"lr": 0.02, "momentum": 0.9, "steps": (5000, 1250, 1000)},
}
