"""`jurygraph preset`: list the preset recipes, or print one as a config."""

from io import StringIO
from typing import Annotated

import typer
from ruamel.yaml import YAML

from jurygraph.cli.options import AsJson, argument
from jurygraph.cli.render.text import print_report
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.sources.config import PRESETS, PresetUse, expand_preset, parse_config


def preset(
    name: Annotated[str | None, argument("NAME", "Preset to print.")] = None,
    model: Annotated[str, typer.Option(metavar="M", help="Model of the config.")] = "none",
    json: AsJson = False,
) -> None:
    """List the presets, or print one as a config.

    A config can also use `preset: NAME`. The presets are MACRM with two, three and four agents, without a global signal
    (vanilla), with a ranker (rerank) or with the similarity of embeddings (emb), and its two baselines.

    \b
    Example:
        jurygraph preset
        jurygraph preset macrm-vanilla-3 > jury.yaml
    """
    if name is None:
        print_report(json, list(PRESETS), PRESETS)
        return
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}; {did_you_mean(name, PRESETS) or 'known: ' + ', '.join(PRESETS)}")
    parse_config({"preset": name, "model": model})  # raises ConfigError if the model is invalid
    config = {"model": model, **expand_preset(PresetUse(name=name), {"model": model})}
    text = StringIO()
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 110
    yaml.dump({key: value for key, value in config.items() if value not in ([], {})}, text)
    print_report(json, config, [text.getvalue().rstrip("\n")])
