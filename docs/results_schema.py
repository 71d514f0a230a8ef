"""Write `results-schema.md`, the description of `results.json`: `python docs/results_schema.py`."""

from pathlib import Path
from typing import Any

from steppe.results import SCHEMA_VERSION, Results

PAGE = Path(__file__).with_name("results-schema.md")
ORDER = ("Results", "Verdict", "Table", "Column", "Estimate", "Figure", "Array", "Provenance")

INTRODUCTION = f"""# results.json

`steppe reproduce` and `steppe compare` write what came out as `results.json`: numbers and sentences, no
layout. `steppe report` makes a page of it, and `steppe.results.read_results` a Python object. This page
describes schema {SCHEMA_VERSION}; `docs/results_schema.py` writes it from the models in `steppe.results`.

- A file says which schema it has in `schema_version`. A change that an older steppe could not read gets a new
  number, and a file of a newer schema is refused with a sentence.
- Unknown fields, infinities and NaN are damage: a value that is not known is `null`.
- The figure of key `K` is the file `figures/K.svg` or `figures/K.png` beside `results.json`.
- Keys are lower-case letters, digits, `_` and `-`. Rows of a table hold a cell for each key of its columns; a
  cell is a number, a text, true, false, null or an `Estimate`. `digits` of a column are decimals.
"""


def page() -> str:
    """The whole page."""
    schema = Results.model_json_schema()
    parts = {"Results": schema, **schema["$defs"]}
    return "\n".join([INTRODUCTION, *(section(name, parts[name]) for name in ORDER)])


def section(name: str, part: dict[str, Any]) -> str:
    """One model: what it is, and its fields."""
    required = part.get("required", [])
    lines = [
        f"## {name}",
        "",
        part["description"].split("\n\n")[0],
        "",
        "| field | type | default |",
        "|---|---|---|",
        *(
            f"| `{field}` | {kind(about)} | {'required' if field in required else default(about)} |"
            for field, about in part["properties"].items()
        ),
    ]
    return "\n".join(lines) + "\n"


def kind(about: dict[str, Any]) -> str:
    """A type in words."""
    if "$ref" in about:
        return about["$ref"].rsplit("/", 1)[1]
    if {"$ref": "#/$defs/Estimate"} in about.get("anyOf", []) and len(about["anyOf"]) > 2:
        return "cell"
    if "anyOf" in about:
        return " or ".join(kind(one) for one in about["anyOf"])
    if "const" in about or "enum" in about:
        return " or ".join(
            f"`{value!r}`".replace("'", '"') for value in about.get("enum", [about.get("const")])
        )
    if about["type"] == "array":
        return f"list of {kind(about['items'])}"
    if about["type"] == "object":
        return f"object of {kind(about['additionalProperties'])}"
    names = {"string": "text", "boolean": "true or false", "integer": "integer"}
    return "key" if "pattern" in about else names.get(about["type"], about["type"])


def default(about: dict[str, Any]) -> str:
    """A default as JSON would have it."""
    value = about.get("default")
    return "`null`" if value is None else f"`{value!r}`".replace("'", '"')


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
