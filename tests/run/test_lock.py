"""One process writes to a directory, and its lock ends with it, however it ends."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from threading import Thread

import pytest

from steppe.errors import StorageError
from steppe.run.storage.durable import take_lock

HOLD = """
import os, sys, time
from pathlib import Path
from steppe.run.storage.durable import take_lock
held = take_lock(Path(sys.argv[1]))
if "fork" in sys.argv:
    listen, speak = os.pipe()
    if os.fork() == 0:
        os.close(1)  # the parent's output ends with the parent
        os.write(speak, b"1")  # what runs in a child after a fork has run
        time.sleep(20)
        os._exit(0)
    os.read(listen, 1)
print("held", flush=True)
time.sleep(20)
"""


def start_holder(directory, *arguments):
    """A process that holds the lock until it is killed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory), *arguments], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_a_lock_is_refused_to_another_process_and_free_after_a_kill(tmp_path):
    holder = start_holder(tmp_path)
    with pytest.raises(StorageError, match=r"being written by another process. Wait for it, or stop it\."):
        take_lock(tmp_path)
    kill(holder)
    take_lock(tmp_path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path):
    kill(start_holder(tmp_path, "fork"))
    take_lock(tmp_path).close()


def test_a_lock_may_be_given_back_by_another_thread(tmp_path):
    held = take_lock(tmp_path)
    thread = Thread(target=held.close)
    thread.start()
    thread.join()
    take_lock(tmp_path).close()


def test_a_lock_whose_owner_is_forgotten_is_free(tmp_path):
    held = take_lock(tmp_path)
    del held
    take_lock(tmp_path).close()


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match="on a file system with locks"):
        take_lock(tmp_path)


def test_a_lock_that_cannot_be_written_is_typed(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(StorageError, match=r"Could not lock .*: Is a directory"):
        take_lock(tmp_path)


def test_a_lock_that_cannot_be_given_back_ends_nothing(tmp_path, monkeypatch):
    """Everything is committed by then; the end of the process drops it."""
    held, flock = take_lock(tmp_path), fcntl.flock

    def refuse(handle, operation):
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(handle, operation)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        held.close()
