"""How many examples a property test draws that asks for a number of its own."""

from hypothesis import settings

QUICK_EXAMPLES = 15


def at_most(examples: int, quick: int = QUICK_EXAMPLES) -> int:
    """So many, but in `make test` no more than 15, or than `quick`."""
    return min(examples, quick) if settings.get_current_profile_name() == "quick" else examples
