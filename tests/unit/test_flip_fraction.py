"""The coupling variance for a stated flip fraction, against closed forms and bad input."""

from math import log

import pytest

from steppe import coupling_variance_from_flip_fraction, errors


@pytest.mark.parametrize(("fraction", "variance"), [(0.05, 0.170), (0.1, 0.228), (0.2, 0.361)])
def test_lattice_center_has_the_closed_form(fraction, variance):
    assert coupling_variance_from_flip_fraction(fraction) == pytest.approx(variance, abs=5e-4)
    doubled = coupling_variance_from_flip_fraction(fraction, squared_unit=4.0)
    assert doubled == pytest.approx(4 * coupling_variance_from_flip_fraction(fraction))


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.45])
def test_two_copies_of_a_gaussian_center_have_the_closed_form(fraction):
    expected = 1 / (4 * log((1 - fraction) / fraction))
    found = coupling_variance_from_flip_fraction(fraction, center="gaussian", replicas=2)
    assert found == pytest.approx(expected, rel=1e-9)


def test_more_copies_hold_each_other_tighter():
    pair = coupling_variance_from_flip_fraction(0.2, center="gaussian", replicas=2)
    crowd = coupling_variance_from_flip_fraction(0.2, center="gaussian", replicas=8)
    assert crowd < pair


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.7, -0.1, float("nan"), "0.1"])
def test_fractions_outside_the_open_interval_are_refused(fraction):
    with pytest.raises(errors.RecipeError, match="flip_fraction"):
        coupling_variance_from_flip_fraction(fraction)


def test_a_gaussian_center_needs_two_replicas():
    with pytest.raises(errors.RecipeError, match="two replicas"):
        coupling_variance_from_flip_fraction(0.1, center="gaussian", replicas=1)
