"""Training that survives being killed: arrays in one file, then a record that names it.

training.json    what is trained, how far it is, and which arrays count; replacing it is the commit
000600.bin       the arrays after 600 updates
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from steppe.errors import RunError, RunMismatchError, StorageError
from steppe.run.storage.durable import read_arrays, read_json, take_lock, write_arrays, write_json

FORMAT = 2
RECORD = "training.json"
Tree = TypeVar("Tree")


class Checkpoint:
    """The place where a training is kept, or nowhere.

    Parameters
    ----------
    directory
        Where; `None` keeps nothing.
    description
        What is trained; a continued training must have the same.
    resume
        Whether a training that is there is continued; without it, one that is there is not overwritten.
    """

    def __init__(
        self, directory: str | Path | None, description: Mapping[str, object], *, resume: bool
    ) -> None:
        self.directory = None if directory is None else Path(directory)
        self.description = description
        self.resume = resume
        if resume and directory is None:
            raise RunError("`resume=True` needs the directory of the training, `out=...`.")

    def load(self, start: tuple[Tree, np.ndarray]) -> tuple[int, Tree, np.ndarray]:
        """Return the updates already made, and the arrays after them; `start` if there are none."""
        if self.directory is None:
            return 0, *start
        if not (self.directory / RECORD).exists():
            return 0, *start
        if not self.resume:
            raise StorageError(
                f"{self.directory} already holds a training. Choose another directory, or pass `resume=True`."
            )
        record = read_json(self.directory / RECORD)
        self._check_is_same(record["description"])
        arrays = read_arrays(self.directory / record["arrays"]["file"], record["arrays"])
        leaves, structure = jax.tree.flatten(start[0])
        stored = [arrays[f"leaf{index}"] for index in range(len(leaves))]
        tree = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in stored])
        return int(record["update"]), tree, arrays["history"]

    def save(self, update: int, state: tuple[PyTree, np.ndarray]) -> None:
        """Commit the arrays after an update."""
        if self.directory is None:
            return
        leaves = {f"leaf{index}": np.asarray(leaf) for index, leaf in enumerate(jax.tree.leaves(state[0]))}
        written = write_arrays(self.directory / f"{update:06d}.bin", {**leaves, "history": state[1]})
        content = {"format": FORMAT, "description": self.description, "update": update, "arrays": written}
        write_json(self.directory / RECORD, content)
        for old in self.directory.glob("*.bin"):
            if old.name != written["file"]:
                old.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one writer; the system drops the lock when the process ends, however it ends."""
        if self.directory is None:
            yield
            return
        if not (self.directory / RECORD).exists():
            self._check_is_free()
        with take_lock(self.directory):
            yield

    def _check_is_free(self) -> None:
        assert self.directory is not None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            occupied = sorted(path.name for path in self.directory.iterdir() if not _is_ours(path))
        except OSError as error:
            raise StorageError(
                f"Could not train in {self.directory}: {error.strerror or error}. Choose a directory that "
                "can be written."
            ) from error
        if occupied:
            raise StorageError(f"{self.directory} already holds {occupied[0]!r}. Choose an empty directory.")

    def _check_is_same(self, stored: Mapping[str, object]) -> None:
        wanted = self.description
        differing = [name for name in wanted if stored.get(name) != wanted[name]]
        if differing:
            name = differing[0]
            raise RunMismatchError(
                f"{self.directory} holds a training with {name} = {stored.get(name)!r}, and {wanted[name]!r} "
                "was asked for. Repeat the call it was started with, or choose another directory."
            )


def _is_ours(path: Path) -> bool:
    """Whether a file is what a training leaves that was killed before its first commit."""
    return path.name == "lock" or path.suffix in (".bin", ".partial")
