"""Routes: short tours by local search."""

from steppe.routes.tour_search import ShortTours, find_short_tours

__all__ = ["ShortTours", "find_short_tours"]
