"""Tables: the published row counts, independent checks of a few cells, and refusals by file and field."""

import gzip
import os
import zipfile

import numpy as np
import pytest

from steppe import datasets
from steppe.datasets import DataError, tables, tabular

needs_data = pytest.mark.skipif("STEPPE_DATA" not in os.environ, reason="STEPPE_DATA is not set")

SIZES = {
    "compas": (4887, 50, 1235, 13),
    "news": (31_397, 318, 7929, 58),
    "adult": (29_860, 302, 15_060, 88),
    "blog": (46_829, 474, 7028, 276),
}
SLOW = {"blog": pytest.mark.slow, "news": pytest.mark.slow}
EVERY_TABLE = [pytest.param(name, marks=SLOW.get(name, ())) for name in SIZES]


def sizes(data):
    return (len(data.train), len(data.validation), len(data.test), data.train.x.shape[1])


@needs_data
@pytest.mark.parametrize("name", EVERY_TABLE)
def test_published_tables_have_the_published_number_of_rows(name):
    data = datasets.load(name, as_published=True, download=False)
    assert sizes(data) == SIZES[name]
    assert (data.card.rows, data.card.columns) == (sum(SIZES[name][:3]), SIZES[name][3])
    assert len(data.columns) == SIZES[name][3]
    assert data.card.is_verified
    assert 0 <= data.train.y.min() <= data.train.y.max() <= 1
    # Standardised with the unbiased deviation over the rows used for training.
    np.testing.assert_allclose(data.train.x.mean(0, dtype=float), 0, atol=1e-5)
    np.testing.assert_allclose(data.train.x.std(0, ddof=1, dtype=float), 1, atol=1e-4)


@needs_data
def test_compas_has_the_published_rates_and_filter():
    data = datasets.load("compas", download=False)
    assert np.r_[data.train.y, data.validation.y].mean() == pytest.approx(0.4600, abs=5e-5)
    assert data.test.y.mean() == pytest.approx(0.4356, abs=5e-5)
    assert "race=Asian" in data.columns
    assert "compas-scores-two-years.csv.gz 706137877c1f…" in str(data.card)


@needs_data
def test_adult_has_the_published_rate_and_one_category_per_row():
    data = datasets.load("adult", download=False)
    assert np.r_[data.train.y, data.validation.y].mean() == pytest.approx(0.2489, abs=5e-5)
    assert sum(name.startswith("native-country=") for name in data.columns) == 41
    sexes = [data.columns.index(f"sex={sex}") for sex in ("Female", "Male")]
    np.testing.assert_allclose(np.corrcoef(data.train.x[:, sexes].T)[0, 1], -1, atol=1e-5)


@needs_data
@pytest.mark.slow
def test_news_is_split_as_scikit_learn_does():
    from sklearn.model_selection import train_test_split

    data = datasets.load("news", download=False)
    train, test = train_test_split(np.arange(39_644), test_size=0.2, random_state=42)
    order = np.random.RandomState(42).permutation(39_644)
    np.testing.assert_array_equal(np.concatenate((order[7929:], order[:7929])), np.r_[train, test])
    assert sizes(data)[:3] == (31_397, 318, 7929)


@needs_data
@pytest.mark.slow
def test_the_clean_blog_table_has_no_wrapped_counts():
    clean = datasets.load("blog", download=False)
    assert len(clean.train) + len(clean.validation) == 46_829 + 474 - 16
    assert len(clean.test) == 7028 - 1


def write_compas(directory, rows):
    header = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "age", "race", "sex"]
    header += ["days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text", "two_year_recid"]
    (directory / "compas").mkdir()
    text = "\n".join(",".join(map(str, row)) for row in [header, *rows])
    (directory / "compas" / "compas-scores-two-years.csv").write_text(text)


def person(**changes):
    row = {"counts": (1, 0, 0, 0), "age": 30, "race": "Asian", "sex": "Male", "days": 0, "recid": 0}
    row |= {"degree": "F", "text": "Low", "y": 1} | changes
    return [*row.pop("counts"), *row.values()]


@pytest.fixture
def unsealed(monkeypatch):
    """Let the loaders read files of our own making."""
    unchecked = tuple(file._replace(sha256=None, url=None) for file in tabular.COMPAS_FILES)
    monkeypatch.setattr(tabular, "COMPAS_FILES", unchecked)


def test_the_compas_filter_keeps_ordinary_cases(tmp_path, unsealed):
    dropped = [person(days=31), person(days=""), person(recid=-1), person(degree="O"), person(text="N/A")]
    write_compas(tmp_path, [person(y=k % 2, age=20 + k) for k in range(200)] + dropped)
    data = datasets.load("compas", data=tmp_path, download=False)
    assert sizes(data) == (158, 2, 40, 13)
    assert not data.card.is_verified
    assert "not a published digest" in str(data.card)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (person(race="Martian"), "column 'race' holds the unknown category 'Martian'; known are African-"),
        (person(age="old"), "column 'age' holds 'old' in row"),
        (person()[:-1], "line 12: 11 fields instead of 12"),
    ],
)
def test_a_bad_cell_is_named_with_its_file_and_column(tmp_path, unsealed, row, complaint):
    write_compas(tmp_path, [person() for _ in range(10)] + [row])
    with pytest.raises(DataError, match=f"compas-scores-two-years.csv.*{complaint}"):
        datasets.load("compas", data=tmp_path, download=False)


def test_a_header_without_the_columns_is_refused(tmp_path, unsealed):
    (tmp_path / "compas").mkdir()
    (tmp_path / "compas" / "compas-scores-two-years.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"columns \['age', .*\] are missing"):
        datasets.load("compas", data=tmp_path, download=False)


def test_a_ragged_table_of_numbers_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"t.csv is not a table of numbers: .*row 2"):
        tables.read_numbers("t.csv", b"1,2,3\n4,5\n")


def test_an_unknown_adult_category_in_the_test_rows_is_refused(tmp_path, monkeypatch):
    row = "39, State-gov, 7, Bachelors, 13, Never, Adm, Husband, White, Male, 2, 0, 40, Cuba, {}"
    (tmp_path / "adult").mkdir()
    for name, text in (
        ("data", row.format("<=50K")),
        ("test", "|remark\n" + row.format(">50K.").replace("Cuba", "Mars")),
    ):
        (tmp_path / "adult" / f"adult.{name}.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("ADULT_TRAIN_FILES", "ADULT_TEST_FILES"):
        monkeypatch.setattr(tabular, name, tuple(f._replace(sha256=None) for f in getattr(tabular, name)))
    with pytest.raises(
        DataError, match=r"adult\.test\.gz: column 'native-country' holds the unknown category 'Mars'"
    ):
        datasets.load("adult", data=tmp_path, download=False)


def test_an_archive_without_the_blog_tables_is_refused(tmp_path, monkeypatch):
    (tmp_path / "blogfeedback").mkdir()
    with zipfile.ZipFile(tmp_path / "blogfeedback" / "BlogFeedback.zip", "w") as archive:
        archive.writestr("other.csv", "1,2\n")
    monkeypatch.setattr(tabular, "BLOG_FILES", tuple(f._replace(sha256=None) for f in tabular.BLOG_FILES))
    with pytest.raises(DataError, match="is not the archive of BlogFeedback"):
        datasets.load("blog", data=tmp_path, download=False)


def test_a_missing_news_table_says_what_to_fetch(tmp_path):
    with pytest.raises(datasets.MissingDataError, match=r"data set 332.*put it there"):
        datasets.load("news", data=tmp_path)
