import numpy as np
import pytest

from skcalib.utils._classes import check_several_classes


def test_two_classes_pass():
    check_several_classes(np.array(["a", "b"]))


@pytest.mark.parametrize(
    ("classes", "got"), [(["a"], "got one class: 'a'"), ([3], "got one class: 3"), ([], "no rows")]
)
def test_fewer_are_told(classes, got):
    with pytest.raises(ValueError, match=f"^y must hold at least two classes, .*{got}"):
        check_several_classes(np.array(classes))
