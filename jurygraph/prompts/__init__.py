"""Prompts for models: versioned templates, one file each, and the library that renders them."""

from jurygraph.prompts.custom import read_prompt
from jurygraph.prompts.examples import Shot
from jurygraph.prompts.library import (
    DEFAULT_OPTIONS,
    Prompt,
    RenderedPrompt,
    RenderOptions,
    load_prompt,
    parse_prompt,
    prompt_names,
    prompt_source,
)

__all__ = [
    "DEFAULT_OPTIONS",
    "Prompt",
    "RenderOptions",
    "RenderedPrompt",
    "Shot",
    "load_prompt",
    "parse_prompt",
    "prompt_names",
    "prompt_source",
    "read_prompt",
]
