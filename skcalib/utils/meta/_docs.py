"""Parameters that several docstrings share: described once, copied where they are referred to.

An entry such as ``y_true, labels : of :func:`expected_calibration_error``` in the section
"Parameters" stands for those entries of that docstring. When a package is imported,
:func:`fill_docstrings` puts them in its place, so that ``help()`` shows every parameter whole.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from textwrap import indent
from typing import Any

_REFERENCE = re.compile(
    r"^(?P<margin> *)(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : "
    r"of :(?:class|func|meth):`~?(?P<source>[\w.]+)`$",
    re.MULTILINE,
)
_PACKAGE = "skcalib."


def fill_docstrings(namespace: Mapping[str, Any]) -> None:
    """Fill in the shared descriptions of the public names of a package and of their methods."""
    for name in namespace["__all__"]:
        value, names = namespace[name], dict(namespace)
        if inspect.isclass(value):  # a method refers to another one by its name alone
            names = dict(inspect.getmembers(value)) | names
        for described in _described(value):
            _fill(described, names)


def _described(value: Any) -> Iterator[Any]:
    """Yield a function, or a class, its bases and their methods: those of this package."""
    if inspect.isfunction(value):
        yield value
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if base.__module__.startswith(_PACKAGE):
            yield base
            for member in vars(base).values():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function) and function.__module__.startswith(_PACKAGE):
                    yield function


def _fill(described: Any, namespace: Mapping[str, Any]) -> None:
    """Replace the references in one docstring; one without any is left as it is."""
    described = getattr(described, "__func__", described)  # a class method
    doc = described.__doc__
    if not doc or not _REFERENCE.search(doc):  # `python -OO` leaves none
        return
    own = inspect.signature(described).parameters

    def entries(found: re.Match[str]) -> str:
        source = _resolve(found["source"], namespace)
        _fill(source, namespace)
        names = found["names"].split(", ")
        parts = [_with_default(_entry(source, name), own.get(name.lstrip("*"))) for name in names]
        return indent("\n".join(parts), found["margin"])

    described.__doc__ = _REFERENCE.sub(entries, doc)


def _resolve(path: str, namespace: Mapping[str, Any]) -> Any:
    """Return the object of a dotted name: of this package or, after ``skcalib.``, of another."""
    if path.startswith(_PACKAGE):
        _, package, path = path.split(".", 2)
        namespace = vars(import_module(_PACKAGE + package))
    first, *rest = path.split(".")
    value = namespace[first]
    for name in rest:
        value = getattr(value, name)
    return value


def _entry(source: Callable[..., Any], name: str) -> str:
    """Return the entry of one parameter of a docstring, without margin."""
    doc = inspect.cleandoc(source.__doc__ or "")
    escaped = re.escape(name)
    head = rf"^(?:\*{{0,2}}\w+, )*?{escaped}(?:, \*{{0,2}}\w+)*( : .*)?$"
    found = re.search(head + r"(?P<body>(?:\n(?: +.*)?)*)", doc, re.MULTILINE)
    if found is None:
        raise ValueError(f"{source.__qualname__} must describe {name!r}, got no entry of it.")
    entry = f"{name}{found[1] or ''}{found['body']}".rstrip()
    # Keys of citations belong to the references of the source.
    return re.sub(r"\[(\d+)\]_", rf"[\1] of `{source.__qualname__}`", entry)


def _with_default(entry: str, parameter: inspect.Parameter | None) -> str:
    """Return the entry with the default of the parameter that it is copied for."""
    head, _, body = entry.partition("\n")
    if parameter is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return entry
    head = re.sub(r",\s+default=.*", "", head)
    if parameter.default is not parameter.empty:
        value = parameter.default
        shown = getattr(value, "__name__", None) or repr(value).replace("'", '"')
        head += f", default={shown}"
    return f"{head}\n{body}"
