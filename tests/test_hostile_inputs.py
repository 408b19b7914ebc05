"""Hostile inputs of all public callables: refused by name, or understood as what they are."""

import warnings
from functools import cache

import pytest
import torch

from tests.hostile_inputs import KINDS, calls, loss_outcomes, outcomes

# All kinds with all callables take minutes: every callable gets each third kind, in turns.
STEP = 3
PACKAGES = (
    "metrics",
    "difficulty",
    "datasets",
    "posthoc",
    "selection",
    "labels",
    "nets",
    "report",
)
FAULTS = ("unnamed error", "crash", "WRONG")


@cache
def numbered_calls():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(enumerate(calls()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", PACKAGES)
def test_no_wrong_answer_without_a_word(package):
    torch.manual_seed(0)
    found = {
        f"{call.name}({argument} = {kind})": outcome
        for i, call in numbered_calls()
        if call.name.split(".")[1] == package
        for argument, kind, outcome in outcomes(call, KINDS[i % STEP :: STEP])
    }
    assert len(found) > 10
    assert {name: out for name, out in found.items() if out.startswith(FAULTS)} == {}


def test_losses_name_the_argument():
    found = {f"{name}({argument} = {kind})": out for name, argument, kind, out in loss_outcomes()}
    assert {name: out for name, out in found.items() if out != "named error"} == {}
