"""TravelPlanner (Xie et al., ICML 2024): its queries, tables and plans as tasks."""

from examples.group_trip.travelplanner.reader import (
    Skipped,
    import_travelplanner,
    read_travelplanner,
)

__all__ = ["Skipped", "import_travelplanner", "read_travelplanner"]
