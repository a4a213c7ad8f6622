"""Prompts for models: versioned templates, one file each, and the library that renders them."""

from jurygraph.prompts.library import (
    DEFAULT_OPTIONS,
    Prompt,
    RenderedPrompt,
    RenderOptions,
    Shot,
    load_prompt,
    parse_prompt,
    prompt_names,
    prompt_source,
    read_prompt,
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
