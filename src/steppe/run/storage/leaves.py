"""Names of the arrays that chains are made of, so that a file does not depend on their order."""

import re

import jax

_UNFIT = re.compile(r"[^\w.-]")


def name_leaves(tree: object) -> list[str]:
    """Return the name of every leaf of a tree, in the order of `jax.tree.leaves`.

    A name is the path of fields, keys and positions that leads to the leaf, such as `state.position`.
    """
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    names: list[str] = []
    for path in paths:
        name = _UNFIT.sub("_", jax.tree_util.keystr(path, simple=True, separator=".")) or "value"
        while name in names:  # keys of a dictionary may look alike once they are fit for a file
            name += "_"
        names.append(name)
    return names
