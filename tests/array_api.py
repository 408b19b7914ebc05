"""What scikit-learn's array API dispatch changes in the public callables: nothing.

    SCIPY_ARRAY_API=1 python -m tests.array_api

The calls of ``tests.hostile_inputs``, with arrays and with tensors, all or one, under
``sklearn.set_config(array_api_dispatch=True)``: what works without it has to give the same. The
exit status is 1 if something does not.
"""

import sys
import warnings
from collections.abc import Iterator

import torch
from sklearn import config_context

from tests.hostile_inputs import KINDS, compare, estimator_calls, flat, function_calls


def outcomes() -> Iterator[tuple[str, str]]:
    (tensor,) = (kind for kind in KINDS if kind.name == "tensor")
    for call in [*function_calls(), *estimator_calls()]:
        values = {name: argument.value for name, argument in call.arguments.items()}
        tensors = {name: torch.tensor(value) for name, value in values.items()}
        given = [("all = array", values), ("all = tensor", tensors)]
        for name, argument in call.arguments.items():
            if argument.role in tensor.roles:
                given.append((f"{name} = tensor", {**values, name: tensor.make(argument.value)}))
        for form, arguments in given:
            run = lambda arguments=arguments, call=call: call.function(**arguments, **call.fixed)
            try:
                expected = flat(run())
            except (ValueError, TypeError):
                continue  # refused without dispatch
            with config_context(array_api_dispatch=True):
                outcome = compare(run, next(iter(values)), expected, exact=True)
            yield f"{call.name}({form})", outcome


def main() -> None:
    warnings.simplefilter("ignore")
    found = dict(outcomes())
    faults = {call: outcome for call, outcome in found.items() if outcome != "same result"}
    print(f"{len(found) - len(faults)} of {len(found)} calls give the same with dispatch")
    print(*(f"{call}: {outcome}" for call, outcome in faults.items()), sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
