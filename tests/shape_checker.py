"""Type checker of `make test-shapes`: beartype, for which an integer is a number as it is in annotations."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
