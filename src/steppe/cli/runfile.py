"""The run file: what to sample, how, and how much, checked field by field."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from steppe.errors import RunError

# Parameters of a target may be arrays of several axes; what is nested deeper cannot be shown in a sentence.
MAX_DEPTH = 50


class RunFile(BaseModel):
    """What `steppe run` needs to know.

    A target is the name of a built-in one, or `module:function` where the function returns a
    `steppe.Target`; a recipe is the name of a sampler, by default the one that `steppe.recommend` chooses.
    Parameters are passed to them by name. `adapt` is true, false, or a table with the fields of
    `steppe.Adapt`. Observables are `module:function`, `file.py:function` or `overlap`, each with `name=`
    before it if it is to be called otherwise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str = Field(min_length=1)
    target_parameters: dict[str, object] = {}
    recipe: str | None = None
    recipe_parameters: dict[str, object] = {}
    seed: int = Field(default=0, ge=0, lt=2**32)
    num_chains: int = Field(default=4, ge=1)
    num_warmup: int = Field(default=1000, ge=0)
    num_draws: int = Field(default=1000, ge=1)
    thinning: int = Field(default=1, ge=1)
    keep: Literal["draws", "stats", "none"] = "draws"
    chain_block: int | None = Field(default=None, ge=1)
    adapt: bool | dict[str, object] = True
    observables: list[str] = []


def read_run_file(path: Path) -> dict[str, object]:
    """Return the fields of a TOML run file, unchecked."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        if _measure_depth(fields) > MAX_DEPTH:
            raise RecursionError
        return fields
    except FileNotFoundError:
        raise RunError(f"There is no run file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"The run file {path} cannot be read: {error}.") from error
    except RecursionError:
        raise RunError(f"The run file {path} is nested too deeply to be one.") from None
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise RunError(f"The run file {path} is not valid TOML: {error}.") from error


def _measure_depth(content: object) -> int:
    """How many tables and lists stand inside each other; dotted keys nest without a bracket."""
    depth, layer = 0, [content]
    while layer and depth <= MAX_DEPTH:
        depth += 1
        inside = [list(one.values()) if isinstance(one, dict) else one for one in layer]
        layer = [part for parts in inside if isinstance(parts, list) for part in parts]
    return depth


def check_run_file(fields: dict[str, object]) -> RunFile:
    """Return a run file, or say which field is wrong, what it holds and what is allowed."""
    try:
        request = RunFile.model_validate(fields, strict=True)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            field = ".".join(str(part) for part in problem["loc"]) or "run file"
            if problem["type"] == "extra_forbidden":
                allowed = ", ".join(RunFile.model_fields)
                lines.append(f"`{field}` is not a field of a run file; the fields are {allowed}.")
            else:
                lines.append(f"`{field}`: {problem['msg']}; got {problem.get('input')!r}.")
        raise RunError(" ".join(lines)) from error
    if request.recipe is None and request.recipe_parameters:
        raise RunError("`recipe_parameters` belong to a sampler: name it as `recipe`, or leave them out.")
    return request
