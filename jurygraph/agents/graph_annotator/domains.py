"""Domain profiles: what an annotator should know of a field, from a built-in or a user's file (GEAR, Appendix A.6)."""

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jurygraph.errors import ConfigError
from jurygraph.messages import did_you_mean

DOMAINS = ("generic", "legal", "medical", "writing")
_FRONT = "---\n"
_MAX_CHARACTERS = 20_000


class Domain(NamedTuple):
    """A domain profile: its name with a version, and its text."""

    name: str
    text: str


def load_domain(name: str, where: str = "annotation.domain") -> Domain:
    """Load a built-in domain by its name, or a text file by its path. Raises `ConfigError` that begins with `where`."""
    if name in DOMAINS:
        from ruamel.yaml import YAML

        text = files("jurygraph.prompts").joinpath("domains", f"{name}.md").read_text(encoding="utf-8")
        front = YAML(typ="safe", pure=True).load(text.split(_FRONT, 2)[1])
        return Domain(f"{name} {front['version']}", _body(text))
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
    return Domain(f"{path.name} {hashlib.sha256(body.encode()).hexdigest()[:12]}", body)


def _body(text: str) -> str:
    """Return the text without its front matter."""
    text = text.replace("\r\n", "\n")
    return text.split(_FRONT, 2)[2].strip() if text.startswith(_FRONT) and text.count(_FRONT) > 1 else text.strip()
