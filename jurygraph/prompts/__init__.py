"""Prompts for models: versioned templates, one file each, and the library that renders them."""

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
from jurygraph.prompts.own import read_prompt

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
