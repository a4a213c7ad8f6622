"""TravelPlanner (Xie et al., ICML 2024): its queries, tables and plans as tasks."""

from jurygraph.sources.travelplanner.reader import UNREAD, read_travelplanner

__all__ = ["UNREAD", "read_travelplanner"]
