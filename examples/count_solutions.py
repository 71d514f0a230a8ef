"""How many assignments satisfy a formula? Counted by tempering, with an error, beside enumeration.

    python examples/count_solutions.py

Random formulas of 16 variables with three literals per clause: log Z at a large inverse temperature is the
logarithm of the number of solutions. Writes out/examples/count_solutions.png.

Result: at three clauses per variable 24 solutions, log 3.178; tempering says 3.12 ± 0.10. All four formulas
lie within one error.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import cnf

OUT = Path("out/examples/count_solutions")
NUM_VARIABLES, RATIOS, COLD = 16, (1.0, 2.0, 3.0, 4.0), 12.0


def main():
    rows = [count(ratio) for ratio in RATIOS]
    for ratio, (exact, found, error) in zip(RATIOS, rows, strict=True):
        print(
            f"{ratio:g} clauses per variable: {exact} solutions, log {np.log(exact):.3f}; "
            f"by tempering {found:.3f} ± {error:.3f}"
        )
    draw(np.asarray(rows))


def count(ratio):
    """Exact number of solutions, and the logarithm of it by tempering with its error."""
    rng = np.random.default_rng(3)
    chosen = [rng.choice(NUM_VARIABLES, 3, replace=False) + 1 for _ in range(int(ratio * NUM_VARIABLES))]
    clauses = [(literals * rng.choice((-1, 1), 3)).tolist() for literals in chosen]
    formula = cnf(clauses, num_variables=NUM_VARIABLES, inverse_temperature=COLD)
    values = jax.lax.map(formula.log_density, formula.domain.enumerate(), batch_size=4096)
    evidence = steppe.log_normalizer(formula, key=jax.random.key(0), exact=False, num_annealed=0)
    return int((np.asarray(values) > -COLD / 2).sum()), evidence.value, evidence.standard_error


@style.apply()
def draw(rows):
    figure, (axes,) = style.make_row(1, 6.0, 3.2)
    axes.errorbar(
        RATIOS, rows[:, 1], 2 * rows[:, 2], fmt="o", color=style.FLAT_COLOR, label="tempering, ± 2 SE"
    )
    axes.plot(RATIOS, np.log(rows[:, 0]), "k_", ms=14, label="enumeration")
    axes.set(xlabel="clauses per variable", ylabel="log number of solutions")
    axes.legend()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
