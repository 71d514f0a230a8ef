"""Numbers and recipes as they stand in sentences and tables."""

from steppe.kernel.compose import Recipe
from steppe.results import Estimate

SYMBOLS = {
    "step_size": "α",
    "center_step_size": "α_a",
    "coupling_variance": "η",
    "strength": "λ",
    "persistence": "ρ",
    "center_weight": "γ",
}


def settings_of(recipe: Recipe) -> str:
    """The numbers of a recipe by the symbols of the paper."""
    words = [f"{SYMBOLS[name]} = {value:g}" for name, value in recipe.parameters.items() if name in SYMBOLS]
    copies = recipe.coupling.replicas
    return ", ".join(words if copies is None else [f"y = {copies}", *words])


def spoken(estimate: Estimate, digits: int = 3, signed: bool = False) -> str:
    """A number with its interval, for a sentence."""
    sign = "+" if signed else ""

    def shown(number: float) -> str:
        return f"{number:{sign}.{digits}f}".replace("-", "−")

    if estimate.low is None or estimate.high is None:
        return shown(estimate.value)
    return f"{shown(estimate.value)} [{shown(estimate.low)}, {shown(estimate.high)}]"
