"""Write what is made of the code: a page per recipe, the tables of recipes, the command line.

    python docs/generate.py

Distribution, parameters and cost of a recipe come from its docstring, family, summary and reference from its
entry in
the registry, the rest from `docs/recipes.toml`.
"""

import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

import paper_pages
from bench_tables import write_suites
from speed_tables import beside, judge, speed_tables

from steppe.recommend import RULES
from steppe.samplers import ALL_RECIPES
from steppe.samplers.registry import list_entries

HERE = Path(__file__).parent
NOTICE = "<!-- Written by `python docs/generate.py`; edit docs/recipes.toml or the docstring. -->\n\n"
RECIPES = list_entries()
BEGINNING = re.compile(r"Cost(?: per \w+)?:")


def pages() -> dict[Path, str]:
    """Every generated page by its path."""
    words = tomllib.loads((HERE / "recipes.toml").read_text(encoding="utf-8"))
    made = {HERE / "recipes" / f"{name}.md": recipe_page(name, words[name]) for name in RECIPES}
    made |= {HERE / "recipes" / "index.md": recipe_index(), HERE / "cli.md": command_line()}
    readme, choose, claims = HERE.parent / "README.md", HERE / "choose.md", HERE / "explain" / "claims.md"
    made[readme] = replaced(readme.read_text(encoding="utf-8"), "samplers", readme_table())
    made[readme] = replaced(made[readme], "speed", beside())
    made[choose] = replaced(choose.read_text(encoding="utf-8"), "table", choose_table(words))
    made[choose] = replaced(made[choose], "rules", rules_table())
    made[choose] = replaced(made[choose], "judge", judge())
    records, tables = paper_pages.load_records(), HERE / "explain" / "tables.md"
    made[claims] = replaced(claims.read_text(encoding="utf-8"), "verdicts", paper_pages.write_claims(records))
    made[tables] = replaced(tables.read_text(encoding="utf-8"), "tables", paper_pages.write_tables(records))
    made[HERE / "figures" / paper_pages.FOREST] = paper_pages.write_forest(records) + "\n"
    speed = HERE / "performance.md"
    made[speed] = speed.read_text(encoding="utf-8")
    for place, table in speed_tables().items():
        made[speed] = replaced(made[speed], place, table)
    problems = HERE / "problems.md"
    made[problems] = replaced(problems.read_text(encoding="utf-8"), "suites", write_suites())
    return made


def recipe_page(name: str, words: dict[str, str]) -> str:
    distribution, cost = distribution_and_cost(name)
    sections = {
        "Idea": words["idea"],
        "Equation": "\n\n".join(f"$$\n{line}\n$$" for line in words["equation"].strip().split("\n")),
        "Distribution": distribution,
        "Parameters": "\n\n".join(f"`{parameter}`\n: {text}" for parameter, text in parameters(name).items()),
        "Effect of the parameters": effect(name),
        "Cost": cost,
        "Limits": words["limits"],
        "Reference": RECIPES[name].reference,
    }
    call = f"```python\nimport steppe\n\nsteppe.{name}{shown_signature(name)}\n```"
    body = "\n\n".join(f"## {title}\n\n{text.strip()}" for title, text in sections.items() if text)
    return f"{NOTICE}# {name}\n\n*{capitalised(RECIPES[name].family)}.* {summary(name)}\n\n{call}\n\n{body}\n"


def effect(name: str) -> str:
    figure = HERE / "figures" / f"{name}.svg"
    if not figure.exists():
        return ""
    caption = figure.with_suffix(".txt").read_text(encoding="utf-8").strip()
    return f"![What the parameters of {name} do](../figures/{name}.svg)\n\n{caption}"


def recipe_index() -> str:
    rows = [
        f"| [`{name}`]({name}.md) | {entry.family} | {summary(name)} |" for name, entry in RECIPES.items()
    ]
    tree = "\n".join(RECIPES)
    return (
        f"{NOTICE}# Recipes\n\nOne page per recipe: idea, equation, distribution or bias, parameters, cost, "
        f"limits, "
        "reference. Distributions and costs are those of the docstrings, and the tests check them by "
        "enumeration and "
        "by counting calls. [Choose](../choose.md) has them side by side.\n\n"
        "| recipe | kind | in a line |\n|---|---|---|\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )


def replaced(page: str, name: str, content: str) -> str:
    """The page with other content between the comments `name begins` and `name ends`."""
    begins, ends = f"<!-- {name} begins -->\n", f"<!-- {name} ends -->"
    before, rest = page.split(begins)
    return f"{before}{begins}\n{content}\n\n{ends}{rest.split(ends)[1]}"


def readme_table() -> str:
    """Samplers of sites, each as a difference from one above it."""
    rows = ["| sampler | a step | evaluations per step | distribution of the position |", "|---|---|---|---|"]
    for name in ALL_RECIPES:
        entry = RECIPES[name]
        rows.append(f"| `{name}` | {entry.summary} | {entry.cost} | {entry.stationary} |")
    return "\n".join(rows)


def rules_table() -> str:
    """Rules by which a recipe is recommended, in the order in which they are asked."""
    rows = ["| if … | take | because | evidence |", "|---|---|---|---|"]
    rows += [
        f"| {rule.when} | [`{rule.name}`](recipes/{rule.name}.md) | {rule.reason} | {rule.evidence} |"
        for rule in RULES
    ]
    return "\n".join(rows)


def choose_table(words: dict[str, dict[str, str]]) -> str:
    """Recipes side by side."""
    rows = ["| recipe | good for | evaluations per step | what the position samples | fails by |"]
    rows.append("|---|---|---|---|---|")
    for name, entry in RECIPES.items():
        use, fails = words[name]["use"], words[name]["fails"]
        link = f"[`{name}`](recipes/{name}.md)"
        rows.append(f"| {link} | {use} | {entry.cost} | {entry.stationary} | {fails} |")
    return "\n".join(rows)


def shown_signature(name: str) -> str:
    """As a call with its defaults, without types."""
    given = inspect.signature(RECIPES[name].make).parameters.values()
    arguments = [f"{one.name}={one.default!r}".replace("'", '"') for one in given]
    brief = ", ".join(arguments)
    return f"({brief})" if len(name + brief) < 60 else "(\n    " + ",\n    ".join(arguments) + ",\n)"


def summary(name: str) -> str:
    return docstring(name).split("\n\n")[0].replace("\n", " ")


def distribution_and_cost(name: str) -> tuple[str, str]:
    notes = section(name, "Notes").replace("\n", " ")
    beginning = BEGINNING.search(notes)
    assert notes.startswith("Stationary distribution: "), (
        f"The notes of {name} do not begin with its distribution."
    )
    assert beginning, f"The notes of {name} do not say what a step costs."
    cost = notes[beginning.start() :].removeprefix("Cost: ")
    return capitalised(notes[len("Stationary distribution: ") : beginning.start()]), capitalised(cost)


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def parameters(name: str) -> dict[str, str]:
    """Text by parameter; "As in `other`" is replaced by what is said there."""
    found = {}
    for entry in re.split(r"\n(?=\S)", section(name, "Parameters")):
        if not entry.strip():
            continue
        names, _, text = entry.partition("\n")
        text = " ".join(line.strip() for line in text.splitlines())
        for one in names.split(", "):
            found[one] = _borrowed(one, text)
    return found


def _borrowed(parameter: str, text: str) -> str:
    briefly = re.fullmatch(r"(.*), as in `(\w+)`\.", text)
    if briefly and (effect_there := re.search(r"Raising .*", parameters(briefly[2])[parameter])):
        return f"{briefly[1]}. {effect_there[0]}"
    match = re.match(r"As in `(\w+)`(?:; here `(\w+)` (.*)|\.)", text)
    if match is None or parameter not in parameters(match[1]):
        return text
    said = parameters(match[1])[parameter]
    return f"{said} Here it {match[3]}" if parameter == match[2] else said


def section(name: str, title: str) -> str:
    match = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", docstring(name), re.DOTALL | re.MULTILINE)
    return "" if match is None else match[1].strip()


def docstring(name: str) -> str:
    return inspect.getdoc(RECIPES[name].make) or ""


def command_line() -> str:
    cli = import_module("steppe.cli.main")  # the package has a function of that name
    for verb in cli.extensions:
        cli.load_command(cli.app, cli.extensions, verb)
    text = cli.app.generate_docs(output_format="markdown", heading_level=1, usage_name="steppe")
    # Run as `python -m …`, the name of the module gets into the usage of every verb.
    text = re.sub(r"^(steppe \w+) -m \w+", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r"## Table of Contents\n.*?(?=\*\*Commands)", "", text, flags=re.DOTALL)
    text = text.replace("# steppe\n", "# Command line\n", 1).strip()
    codes = re.sub(r"^.*?(?=Exit codes:)", "", cli.__doc__ or "", flags=re.DOTALL).strip()
    notice = "<!-- Written by `python docs/generate.py` from the command line itself. -->"
    return f"{notice}\n\n{text}\n\n## Exit codes\n\n{codes}\n"


if __name__ == "__main__":
    (HERE / "recipes").mkdir(exist_ok=True)
    for path, content in pages().items():
        path.write_text(content, encoding="utf-8")
        print(path.relative_to(HERE.parent))
