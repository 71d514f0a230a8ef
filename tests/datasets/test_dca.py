"""Files of direct-coupling analysis: what is read, and what is refused with its line."""

import numpy as np
import pytest

from steppe import datasets, targets
from steppe.errors import DataError


def write(tmp_path, text):
    path = tmp_path / "model.dat"
    path.write_text(text)
    return path


def test_couplings_and_fields_are_read_in_either_order_of_a_pair(tmp_path):
    read = datasets.read_dca(
        write(tmp_path, "# bmDCA\nJ 0 2 1 0 0.5\nJ 2 1 0 1 -1.5\nh 1 1 0.25\n\nh 2 0 -2\n")
    )
    assert read.couplings.shape == (3, 3, 2, 2)
    assert read.couplings[0, 2, 1, 0] == read.couplings[2, 0, 0, 1] == 0.5
    assert read.couplings[1, 2, 1, 0] == read.couplings[2, 1, 0, 1] == -1.5
    np.testing.assert_array_equal(read.field, [[0, 0], [0, 0.25], [-2, 0]])
    model = targets.potts_tables(*read)
    state = model.domain.from_levels(np.asarray([1, 1, 0]))
    assert float(model.log_density(state)) == pytest.approx(0.5 - 1.5 + 0.25 - 2)


def test_levels_may_be_letters_of_residues(tmp_path):
    read = datasets.read_dca(write(tmp_path, "J 0 1 - Y 0.5\nh 0 A 1.0\n"))
    assert read.couplings[0, 1, 0, 20] == 0.5
    assert read.field[0, 1] == 1


REFUSED = {
    "empty": ("\n", "no line"),
    "words": ("J 0 1 2 0.5\n", "line 1: a line is `J i j a b value`"),
    "unknown": ("h 0 0 1\nK 0 0 1\n", "line 2: a line is"),
    "self": ("J 1 1 0 0 1.0\n", "line 1: site 1 is coupled to itself"),
    "twice": ("J 0 1 0 1 1.0\nJ 1 0 1 0 1.0\n", "line 2: it stands in line 1 already"),
    "site": ("h -1 0 1.0\n", "-1 is not a site"),
    "level": ("h 0 64 1.0\n", "64 is not a level"),
    "letter": ("h 0 Z 1.0\n", "Z is not a level"),
    "number": ("h 0 0 nan\n", "nan is not a finite number"),
    "size": ("h 4999 63 1.0\n", "too many"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_files_are_refused_with_their_line(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        datasets.read_dca(write(tmp_path, text))
