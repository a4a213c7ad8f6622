"""Prompts for models: versioned templates, one file each, and the library that renders them."""

from jurygraph.prompts.examples import Shot
from jurygraph.prompts.library import (
    USUAL,
    Manner,
    Prompt,
    Rendered,
    load_prompt,
    parse_prompt,
    prompt_names,
    prompt_source,
)
from jurygraph.prompts.own import read_prompt

__all__ = [
    "USUAL",
    "Manner",
    "Prompt",
    "Rendered",
    "Shot",
    "load_prompt",
    "parse_prompt",
    "prompt_names",
    "prompt_source",
    "read_prompt",
]
