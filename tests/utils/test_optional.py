import json

import pytest

from skcalib.utils._output import import_optional


def test_returns_the_module():
    assert import_optional("json", extra="nets") is json


def test_missing_package_names_the_extra():
    with pytest.raises(
        ImportError, match=r"^no_such_package is required .*'skcalib\[plots\] @ git"
    ):
        import_optional("no_such_package.pyplot", extra="plots")
