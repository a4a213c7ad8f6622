"""What models are told: versioned templates, one file each, and the library that renders them."""

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

__all__ = [
    "USUAL",
    "Manner",
    "Prompt",
    "Rendered",
    "load_prompt",
    "parse_prompt",
    "prompt_names",
    "prompt_source",
]
