"""A file that is replaced is the old one or the new one, and nothing else is left behind."""

import os

import pytest

from steppe.atomic import write_atomically


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch, call):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_content_is_on_disk_before_its_name_and_its_name_before_the_return(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, name=name, real=real: (done.append(name), real(*given))[1]
        )
    write_atomically(tmp_path / "file", b"content")
    assert done == ["fsync", "replace", "fsync"]
