"""Domain profiles: what an annotator should know of a field, from a built-in or a user's file (GEAR, Appendix A.6).

A task's own metadata may say more of its field (the paper's "optional source metadata", Appendix J.1).
"""

import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.errors import ConfigError
from jurygraph.messages import did_you_mean
from jurygraph.schema import Task

DOMAINS = ("generic", "legal", "medical", "writing")
FIELD_METADATA = ("domain", "domain1", "domain2", "domains", "example_tags", "genre", "lang", "language", "topic")
"""The keys of a task's metadata that describe its field: the general ones, and those of HealthBench and WritingBench.

Others may hold anything, such as an answer or a name, and are not shown.
"""
_FRONT = "---\n"
_EXAMPLES = re.compile(r"^#+ *worked examples *$", re.MULTILINE | re.IGNORECASE)
_MAX_CHARACTERS = 20_000


class Domain(NamedTuple):
    """A domain profile: its name with a version, its text, and worked examples of pairs if it has some.

    In the file, these are the text below the heading `# Worked examples`.
    """

    name: str
    text: str
    examples: str = ""


def field_metadata(task: Task) -> dict[str, Any]:
    """Return the metadata of a task that describe its field, in the order of their names."""
    return {name: task.metadata[name] for name in FIELD_METADATA if task.metadata.get(name)}


def load_domain(name: str, where: str = "annotation.domain") -> Domain:
    """Load a built-in domain by its name, or a text file by its path. Raises `ConfigError` that begins with `where`."""
    if name in DOMAINS:
        from ruamel.yaml import YAML

        text = files("jurygraph.prompts").joinpath("domains", f"{name}.md").read_text(encoding="utf-8")
        front = YAML(typ="safe", pure=True).load(text.split(_FRONT, 2)[1])
        return Domain(f"{name} {front['version']}", *_split_examples(_body(text)))
    path = Path(name)
    if not path.is_file():
        suggestion = did_you_mean(name, DOMAINS) or f"there are {', '.join(DOMAINS)}"
        raise ConfigError(f"{where}: there is no domain {name!r}, and no such file; {suggestion}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {name} cannot be read as UTF-8 text ({error})") from None
    body = _body(text)
    if not 0 < len(body) <= _MAX_CHARACTERS:
        problem = "is empty" if not body else f"has more than {_MAX_CHARACTERS} characters"
        raise ConfigError(f"{where}: {name} {problem}; write what an annotator should know of the field")
    return Domain(f"{path.name} {hashlib.sha256(body.encode()).hexdigest()[:12]}", *_split_examples(body))


def _split_examples(body: str) -> tuple[str, str]:
    profile, *examples = _EXAMPLES.split(body, maxsplit=1)
    return profile.strip(), "".join(examples).strip()


def _body(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return text.split(_FRONT, 2)[2].strip() if text.startswith(_FRONT) and text.count(_FRONT) > 1 else text.strip()
