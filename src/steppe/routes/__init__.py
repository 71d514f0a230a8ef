"""Routes: how far apart tours are, how much they cost, and which of them are robust."""

from steppe.routes.figures import RouteFigures, Spread, cost_spread, route_figures
from steppe.routes.measures import (
    canonical_tours,
    distinct_tours,
    edge_distance,
    pairwise_mismatch_count,
)
from steppe.routes.robust import RobustSolutions, rank_robust, robust_solutions
from steppe.routes.tour_search import ShortTours, find_short_tours

__all__ = [
    "RobustSolutions",
    "RouteFigures",
    "ShortTours",
    "Spread",
    "canonical_tours",
    "cost_spread",
    "distinct_tours",
    "edge_distance",
    "find_short_tours",
    "pairwise_mismatch_count",
    "rank_robust",
    "robust_solutions",
    "route_figures",
]
