"""What models are told: versioned templates, one file each, and the library that renders them."""

from jurygraph.prompts.library import Prompt, load_prompt

__all__ = ["Prompt", "load_prompt"]
