from types import SimpleNamespace

from skcalib.utils._estimators import show_inner


def test_gives_what_there_is_and_no_more():
    outer = SimpleNamespace()
    show_inner(outer, SimpleNamespace(n_features_in_=3, other_=1))
    assert vars(outer) == {"n_features_in_": 3}
