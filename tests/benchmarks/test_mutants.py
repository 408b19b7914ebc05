import ast

import pytest

from benchmarks.mutants import changed, mutants


def lines(source):
    return {changed(source, mutant) for mutant in mutants(source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"a <= b"}),
        ("a is not b", {"a is b"}),
        ("a + (b)", {"a - (b)"}),
        ("a and b", {"a or b"}),
        ("x = True", {"x = False"}),
        ("0 * 0.0", {"1 * 0.0", "0 * 1.0", "0 / 0.0"}),
        ("np.minimum(a, 2)", {"np.maximum(a, 2)", "np.minimum(a, 3)"}),
        ("'é' + A.T", {"'é' - A.T", "'é' + A.real"}),  # columns of ast count bytes
        ("x: Literal[2] = y", set()),
        ("raise ValueError(f'{1}')", set()),
    ],
)
def test_one_small_change_at_a_time(source, expected):
    assert lines(source) == expected


@pytest.mark.slow
def test_every_mutant_is_another_program(repository):
    source = (repository / "skcalib" / "losses" / "_ranking.py").read_text()
    found = lines(source)
    assert len(found) > 20
    whole = ast.dump(ast.parse(source))
    assert all(ast.dump(ast.parse(other)) != whole for other in found)
