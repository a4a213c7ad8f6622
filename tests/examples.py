"""How many examples a property test draws that asks for a number of its own."""

from hypothesis import settings

QUICK_EXAMPLES = 25


def at_most(examples: int) -> int:
    """So many, but in `make test` no more than 25."""
    return min(examples, QUICK_EXAMPLES) if settings.get_current_profile_name() == "quick" else examples
