"""TravelPlanner (Xie et al., ICML 2024): its queries, tables and plans as tasks."""

from jurygraph.sources.travelplanner.reader import import_travelplanner, read_travelplanner

__all__ = ["import_travelplanner", "read_travelplanner"]
