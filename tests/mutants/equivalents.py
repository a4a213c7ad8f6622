"""The reviewed mutants that change nothing."""

import re
import tomllib
from pathlib import Path

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def known_equivalents(path: Path = EQUIVALENT) -> dict[tuple[str, str, str, str], str]:
    """Read the reviewed list: {identity: reason}. An entry whose line or function is gone is named and left out."""
    known = {}
    for one in tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []):
        module = Path(one["module"])
        source = module.read_text(encoding="utf-8") if module.exists() else ""
        has_line = set(one["before"].splitlines()) <= {line.strip() for line in source.splitlines()}
        has_function = all(
            re.search(rf"(def|class) {name}\b", source) for name in one["function"].split(".")
        )
        if not (has_line and has_function):
            gone = f"{one['function']} with the line {one['before']!r}"
            print(f"{path.name}: {module} has no {gone} any more: delete the entry", flush=True)
            continue
        known[one["module"], one["function"], one["before"], one["after"]] = one["reason"]
    return known
