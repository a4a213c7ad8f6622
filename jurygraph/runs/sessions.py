"""The sessions of a training in a run: started again from a checkpoint, it comes to steps that are recorded already.

Where it has the same responses there, it wants the rewards that it got; with others, sampled anew, its groups need
names of their own, which a session gives.
"""

import re
from collections.abc import Sequence

from jurygraph.schema import Response


def phase_in_session(phase: str | None, session: int) -> str | None:
    """Return the phase of a group's name: `eval,session=2` of `eval`, the phase itself in the first session."""
    if session == 1:
        return phase
    return ",".join([*filter(None, [phase]), f"session={session}"])


def read_session_of_phase(phase: str | None) -> int:
    """Return the session, from 1 on, of the phase of a group's name."""
    match = re.search(r"(?:^|,)session=(\d+)$", phase or "")
    return int(match[1]) if match else 1


def phase_without_session(phase: str | None) -> str | None:
    """Return the phase of a group's name as it was before its session became a part: `eval` of `eval,session=2`."""
    return None if phase is None else phase.partition(",session=")[0]


def match_responses(
    stored: Sequence[Response | None], responses: Sequence[Response], size: int | None
) -> list[int | None] | None:
    """Return the positions of responses in a stored group, by their content; None if it is another group.

    The responses are members of a cohort of `size`, or with None a whole group. Members that are not stored are late,
    and have no position, where the cohort has room for them: it was scored without them. An erased response, which is
    None, may have been any.
    """
    free = dict(enumerate(stored))
    positions: list[int | None] = []
    for response in responses:
        # equal responses are told apart by their ids; an erased one comes last
        candidates = [
            (item is None, item is not None and item.id != response.id, position)
            for position, item in free.items()
            if item is None or item.content_digest == response.content_digest
        ]
        best = min(candidates)[-1] if candidates else None
        if best is not None:
            del free[best]
        positions.append(best)
    late_count = positions.count(None)
    if size is None:
        is_same_group = len(stored) == len(responses) and late_count == 0
    else:
        is_same_group = len(stored) + late_count <= size
    return positions if is_same_group else None
