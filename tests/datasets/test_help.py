"""What `help()` shows of the data sets."""

import dataclasses

import pytest

from forback import datasets

RECORDS = [
    record
    for record in (getattr(datasets, name) for name in datasets.__all__)
    if dataclasses.is_dataclass(record)
]


@pytest.mark.parametrize("record", RECORDS)
def test_every_attribute_is_documented(record):
    described = record.__doc__.partition("Attributes\n")[2]
    for field in dataclasses.fields(record):
        assert f"\n    {field.name} : " in described


def test_all_records_are_covered():
    assert len(RECORDS) == 8
