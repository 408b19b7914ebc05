"""Errors that say what to do when a model or its weights are not available."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def near_names(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return the end of an error about `name`: similar names, if any."""
    near = get_close_matches(name, list(known), cutoff=cutoff)
    return f" (near names: {', '.join(near)})" if near else ""


def check_name(name: str, known: Iterable[str], library: str) -> None:
    """Raise if the library has no such model."""
    if name not in (names := list(known)):
        near = near_names(name, names)
        raise ValueError(f"model_name must be in {library}.list_models(), got {name!r}{near}.")


def check_no_pretrained(model_name: str, pretrained: str | os.PathLike | None) -> None:
    """Raise if weights are given for a model that brings its own."""
    if pretrained is not None:
        raise ValueError(
            f"pretrained must be None for {model_name!r}, which brings its own weights, "
            f"got {pretrained!r}."
        )


def check_pretrained(pretrained: str, tags: Iterable[str], model_name: str) -> None:
    """Raise if `pretrained` is neither a file nor a tag of the model."""
    if not os.path.isfile(pretrained) and pretrained not in (known := list(tags)):
        raise ValueError(
            f"pretrained must be a local file or one of the tags of {model_name} "
            f"({', '.join(known) or 'it has none'}), got {pretrained!r}."
        )


@contextmanager
def loading(model_name: str, pretrained: str | None) -> Iterator[None]:
    """Raise errors that say what to do if weights do not fit or cannot be downloaded."""
    try:
        yield
    except ImportError:  # it names the missing package; the weights are not the cause
        raise
    except Exception as error:
        # On one line, and cut below: torch lists every parameter that does not fit.
        reason = " ".join(str(error).split())
        if pretrained is not None and os.path.isfile(pretrained):
            raise ValueError(
                f"pretrained must hold weights that fit {model_name}, got {pretrained!r}: "
                f"{reason[:400]}."
            ) from error
        local = (
            "'local-dir:<folder>' as model_name" if ":" in model_name else "its path as pretrained"
        )
        raise OSError(
            f"The pretrained weights {pretrained or model_name!r} could not be loaded "
            f"({reason[:400]}); without a network, fetch them on another machine and pass {local}."
        ) from error
