"""The four tables of the published experiments, to the row."""

import zipfile
from collections.abc import Sequence

import numpy as np

from steppe.datasets.card import CardFields, Dataset
from steppe.datasets.download import File
from steppe.datasets.files import Found, Lookup, contents
from steppe.datasets.tables import Raw, dataset, number_column, one_hot, read_numbers, read_rows
from steppe.errors import DataError

SHUFFLE_SEED = 78712
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

COMPAS_FILES = (
    File(
        "compas/compas-scores-two-years.csv.gz",
        "706137877c1ffafbb8580f2523644bbe34e639dad00922abc6079f8f31d75514",
    ),
    File(
        "compas/compas-scores-two-years.csv",
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        2_546_489,
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
    ),
)
COMPAS_COUNTS = ("priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "age")
COMPAS_CATEGORIES = {
    "race": ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
    "sex": ("Female", "Male"),
}

ADULT_TRAIN_FILES = (
    File("adult/adult.data.gz", "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3"),
    File(
        "adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        3_974_305,
        f"{UCI}/adult/adult.data",
    ),
)
ADULT_TEST_FILES = (
    File("adult/adult.test.gz", "8a2c1bffa6e7ce5abfa43881ae5e87c4311ebc2b3cd526c9c40a43f19f06f799"),
    File(
        "adult/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        2_003_153,
        f"{UCI}/adult/adult.test",
    ),
)
ADULT_NUMBERS = {
    "education-num": 4,
    "capital-gain": 10,
    "hours-per-week": 12,
    "age": 0,
    "fnlwgt": 2,
    "capital-loss": 11,
}
ADULT_CATEGORIES = {
    "workclass": 1,
    "marital-status": 5,
    "occupation": 6,
    "relationship": 7,
    "race": 8,
    "sex": 9,
    "native-country": 13,
}

NEWS_FILES = (
    File(
        "online_news_popularity/OnlineNewsPopularity.csv.xz",
        "88e8431df56231967355e64d2e5a8c3d572f25bbb80c5ddac0b6fe80affd3f38",
    ),
    File("online_news_popularity/OnlineNewsPopularity.csv", None),
)
NEWS_ADVICE = (
    "Download `online+news+popularity.zip` from the UCI Machine Learning Repository (data set 332), unpack it"
)
NEWS_SPLIT_SEED = 42

BLOG_FILES = (
    File(
        "blogfeedback/BlogFeedback.zip",
        "1ba74e5ad920f7cd037502b2968581cc695146a226a73eff52fe8ad875ed4bcf",
        2_583_605,
        f"{UCI}/00304/BlogFeedback.zip",
    ),
)
BLOG_MOST_COMMENTS = 8  # the 90th percentile
BLOG_COLUMNS = 281


def load_compas(lookup: Lookup, as_published: bool) -> Dataset:
    """Two-year recidivism of 6172 people, 13 features."""
    found = lookup.find("compas", COMPAS_FILES)
    what = found.path.name
    header, *rows = read_rows(what, contents("compas", found))
    index = {name: position for position, name in reversed(list(enumerate(header)))}  # the first of a name
    missing = {*COMPAS_COUNTS, *COMPAS_CATEGORIES, "two_year_recid", "days_b_screening_arrest"} - set(index)
    if missing:
        raise DataError(f"{what}: the columns {sorted(missing)} are missing from the header.")
    rows = [fields for fields in rows if _is_compas_case(fields, index)]
    order = np.random.RandomState(SHUFFLE_SEED).permutation(len(rows))
    rows = [rows[position] for position in order]
    parts = [number_column(what, rows, index[name], name)[:, None] for name in COMPAS_COUNTS]
    names = list(COMPAS_COUNTS)
    for column, categories in COMPAS_CATEGORIES.items():
        parts.append(one_hot(what, [fields[index[column]] for fields in rows], categories, column))
        names += [f"{column}={category}" for category in categories]
    y = number_column(what, rows, index["two_year_recid"], "two_year_recid")
    raw = Raw(np.hstack(parts), y, int(len(rows) * 0.8), tuple(names))
    card = _card(
        "compas",
        "ProPublica, compas-analysis, 2016",
        "none stated; published by ProPublica",
        (found,),
        "screened within 30 days of arrest, ordinary charge, scored; shuffled, 80 % train of which the last "
        "1 % validates; categories one-hot; y is recidivism within two years",
        as_published,
    )
    return dataset(raw, card, as_published=as_published)


def _is_compas_case(fields: Sequence[str], index: dict[str, int]) -> bool:
    days = fields[index["days_b_screening_arrest"]]
    return (
        days != ""
        and abs(float(days)) <= 30
        and fields[index["is_recid"]] != "-1"
        and fields[index["c_charge_degree"]] != "O"
        and fields[index["score_text"]] != "N/A"
    )


def load_adult(lookup: Lookup, as_published: bool) -> Dataset:
    """Income above 50 000 dollars of 45 222 people, 88 features."""
    found = lookup.find("adult", ADULT_TRAIN_FILES), lookup.find("adult", ADULT_TEST_FILES)
    train, test = (_adult_rows(part) for part in found)
    order = np.random.RandomState(SHUFFLE_SEED).permutation(len(train))
    rows = [train[position] for position in order] + test
    parts = [number_column("adult", rows, place, name)[:, None] for name, place in ADULT_NUMBERS.items()]
    names = list(ADULT_NUMBERS)
    for column, place in ADULT_CATEGORIES.items():
        categories = sorted({fields[place] for fields in train})
        parts.append(one_hot(found[1].path.name, [fields[place] for fields in rows], categories, column))
        names += [f"{column}={category}" for category in categories]
    income = [fields[14].rstrip(".") for fields in rows]
    y = one_hot("adult", income, ("<=50K", ">50K"), "income")[:, 1]
    raw = Raw(np.hstack(parts), y, len(train), tuple(names))
    card = _card(
        "adult",
        "UCI Machine Learning Repository, Becker and Kohavi 1996",
        "CC BY 4.0",
        found,
        "rows with unknown entries and the text column `education` dropped; official split, training rows "
        "shuffled, the last 1 % of them validates; categories one-hot; y is income above 50K",
        as_published,
    )
    return dataset(raw, card, as_published=as_published)


def _adult_rows(found: Found) -> list[list[str]]:
    text = contents("adult", found)
    if text.startswith(b"|"):  # the test file opens with a remark
        text = text.partition(b"\n")[2]
    return [fields for fields in read_rows(found.path.name, text, num_columns=15) if "?" not in fields]


def load_news(lookup: Lookup, as_published: bool) -> Dataset:
    """Logarithm of the fractions of 39 644 articles, 58 features."""
    found = lookup.find("news", NEWS_FILES, NEWS_ADVICE)
    what, text = found.path.name, contents("news", found)
    header = [name.strip() for name in text.partition(b"\n")[0].decode("ascii", "replace").split(",")]
    if len(header) != 61 or header[-1] != "shares":
        raise DataError(f"{what}: the header must have 61 columns, `shares` last; got {header[-3:]}.")
    table = read_numbers(what, text, skip_rows=1, columns=range(2, 61))  # all but `url` and `timedelta`
    wrong = np.flatnonzero(table[:, -1] <= 0)
    if wrong.size or len(np.unique(table[:, -1])) < 2:
        where = f"row {wrong[0] + 2} has {table[wrong[0], -1]:g}" if wrong.size else "all rows have the same"
        raise DataError(f"{what}: `shares` must be positive numbers that differ; {where}.")
    order = np.random.RandomState(NEWS_SPLIT_SEED).permutation(len(table))
    num_test = -(-len(table) // 5)
    table = table[np.concatenate((order[num_test:], order[:num_test]))]
    num_train = len(table) - num_test
    y = np.log(table[:, -1])
    reference = y if as_published else y[:num_train]
    y = (y - reference.min()) / (reference.max() - reference.min())
    raw = Raw(table[:, :-1], y, num_train, tuple(header[2:-1]))
    card = _card(
        "news",
        "UCI Machine Learning Repository, Fernandes, Vinagre, Cortez and Sernadela 2015",
        "CC BY 4.0",
        (found,),
        "`url` and `timedelta` dropped; 20 % test, the last 1 % of the training rows validates; y is "
        f"ln(shares) mapped to [0, 1] over the {'rows' if as_published else 'training rows'}",
        as_published,
    )
    return dataset(raw, card, as_published=as_published)


def load_blog(lookup: Lookup, as_published: bool) -> Dataset:
    """Comments within a day on blog posts with at most 8 of them, 276 features."""
    found = lookup.find("blog", BLOG_FILES)
    train, test = _blog_tables(found)
    num_train = len(train)
    table = np.concatenate((train, test))
    comments = table[:, -1].astype(np.int64)
    if as_published:
        comments = comments.astype(np.uint8)  # 256 comments count as none, 257 as one, …
    is_kept = comments <= BLOG_MOST_COMMENTS
    num_train = int(is_kept[:num_train].sum())
    table, y = table[is_kept, :-1], comments[is_kept] / BLOG_MOST_COMMENTS
    varies = np.ptp(table[:num_train], axis=0) > 0
    names = tuple(f"feature {index}" for index in np.flatnonzero(varies))
    raw = Raw(table[:, varies], y, num_train, names)
    card = _card(
        "blog",
        "UCI Machine Learning Repository, Buza 2014",
        "CC BY 4.0",
        (found,),
        f"posts with more than {BLOG_MOST_COMMENTS} comments dropped"
        + (", counts taken modulo 256 first" if as_published else "")
        + "; official split, the last 1 % of the training rows validates; constant columns dropped; y is "
        f"comments / {BLOG_MOST_COMMENTS}",
        as_published,
    )
    return dataset(raw, card, as_published=as_published)


def _blog_tables(found: Found) -> tuple[np.ndarray, np.ndarray]:
    try:
        with zipfile.ZipFile(found.path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".csv"))
            tables = {name: read_numbers(name, archive.read(name)) for name in names}
        train = tables.pop("blogData_train.csv")
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"'blog': {found.path} is not the archive of BlogFeedback: {error}.") from error
    test = np.concatenate(list(tables.values()))
    if train.shape[1] != BLOG_COLUMNS or test.shape[1] != BLOG_COLUMNS:
        raise DataError(f"'blog': tables of {BLOG_COLUMNS} columns were expected; got {train.shape[1]}.")
    return train, test


def _card(
    name: str, source: str, licence: str, found: Sequence[Found], steps: str, as_published: bool
) -> CardFields:
    scaling = (
        "features mapped to [0, 1] over all rows, then standardised by the training rows"
        if as_published
        else "features standardised by the training rows"
    )
    return {
        "name": name,
        "source": source,
        "licence": licence,
        "sha256": {part.path.name: part.sha256 for part in found},
        "preprocessing": f"{steps}; {scaling}",
        "is_verified": all(part.is_verified for part in found),
    }
