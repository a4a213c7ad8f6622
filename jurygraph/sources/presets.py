"""Presets: MACRM with two, three and four agents, each without and with a global signal, and its two baselines.

A config with `preset: macrm-vanilla-3` is equal to one that spells out the preset's settings; its own settings are
added to these. The paper gives the weights of accuracy, format, steps and repetition (Table 3); the components of each
agent, and their weights, are our interpretation.

macrm-SIGNAL-AGENTS   SIGNAL: vanilla (none), rerank (a ranker), emb (similarity of embeddings)
                      AGENTS: 2 (Data Analyzer, Data Optimizer), 3 (and Quality Assessor), 4 (and Data Synthesizer)
macrm-single          one reward model: a single holistic judge
macrm-multi-head      several heads: the flat mean of the rule-based components
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from jurygraph.messages import did_you_mean
from jurygraph.schema.config import NamedModel
from jurygraph.schema.frozen_model import Id

Signal = Literal["vanilla", "rerank", "emb"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
AGENTS = (2, 3, 4)
SINGLE, MULTI_HEAD = "macrm-single", "macrm-multi-head"
PRESETS = (*(f"macrm-{signal}-{agents}" for signal in SIGNALS for agents in AGENTS), SINGLE, MULTI_HEAD)

EMBEDDER = "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2"
RANKER = "sentence-transformers:cross-encoder/ms-marco-MiniLM-L6-v2"
"""Default models of the signals: the paper's encoder, and a small cross-encoder."""

_RULE_EVALUATORS = ("maths.accuracy", "maths.format", "maths.steps", "maths.repetition")
_TABLE_3 = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
_CONTRAST_EVALUATORS = ("maths.accuracy", "maths.calculation")
"""Evaluators whose questions are about contrasts too."""
_CONTRAST_KINDS = ("number", "answer")
"""Kinds of contrasts that these evaluators can detect: with other kinds, a response would do best to offer none."""
_MERGED_KEYS, _APPENDED_KEYS = ("reward", "components"), ("evaluators", "derivers")


class PresetUse(NamedModel):
    """A preset by its name, and who gives its global signal: an embedder for `emb`, a ranker for `rerank`.

    A bare name is short for `{name: …}`.
    """

    name: Id
    embedder: str | None = None
    ranker: str | None = None


def unknown_preset_hint(use: PresetUse) -> str | None:
    """Return a hint if there is no such preset; None if there is."""
    return None if use.name in PRESETS else did_you_mean(use.name, PRESETS) or f"there are {', '.join(PRESETS)}"


def unused_field(use: PresetUse) -> str | None:
    """Return the signal's field that is set but not used by this preset; None if there is none."""
    signals = {"embedder": "emb", "ranker": "rerank"}
    set_fields = (field for field in signals if getattr(use, field) is not None)
    return next((field for field in set_fields if f"-{signals[field]}-" not in use.name), None)


def expand_preset(use: PresetUse, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a preset with the config's own `settings` added.

    `reward` and `components` are merged by name, `evaluators` and `derivers` are appended, except for those that
    replace one of the preset's, and any other setting replaces the preset's.
    """
    config = _preset_config(use, str(settings.get("model", "none")))
    for key, value in settings.items():
        if key in _MERGED_KEYS and isinstance(value, Mapping):
            value = {**config.get(key, {}), **value}
        elif key in _APPENDED_KEYS and isinstance(value, list | tuple):
            names = [_identity(entry) for entry in value]
            preset_entries = [entry for entry in config.get(key, []) if _identity(entry) not in names]
            value = [*value, *preset_entries]  # the config's own first: an error names its index there
        config[key] = value
    return config


def _identity(entry: Any) -> tuple[Any, Any]:
    """Return the name of a used evaluator and its variants; two entries are the same if both are equal."""
    use = entry if isinstance(entry, Mapping) else {"use": entry}
    return str(use.get("name", use.get("use"))), str(use.get("of"))


def _preset_config(use: PresetUse, model: str) -> dict[str, Any]:
    if use.name == SINGLE:
        return {"evaluators": ["protocols.direct"], "reward": {"direct": 1.0}}
    if use.name == MULTI_HEAD:
        share = 1.0 / len(_TABLE_3)
        return {
            "evaluators": list(_RULE_EVALUATORS),
            "reward": {name: share if weight > 0 else -share for name, weight in _TABLE_3.items()},
        }
    _, signal, agents = use.name.split("-")
    config = {"evaluators": list(_RULE_EVALUATORS), "derivers": [], "components": {}, "reward": dict(_TABLE_3)}
    _add_optimizer(config)
    if int(agents) >= 3:
        _add_assessor(config, model)
    if int(agents) >= 4:
        _add_synthesizer(config)
    if signal != "vanilla":
        _add_signal(config, use, signal)
    return config


def _add_optimizer(config: dict[str, Any]) -> None:
    """Add efficiency, and diversity inside a group, of right answers alone: wrong ones are the more diverse."""
    _add_where_right(config, "efficient", "optimizer.efficiency", 0.1)
    _add_where_right(config, "diverse", "optimizer.diversity", 0.1)


def _add_assessor(config: dict[str, Any], model: str) -> None:
    """Add the step reward of right answers alone, since steps can be padded; without a model, by arithmetic alone."""
    components = {"sound": "arithmetic"} if model == "none" else {"sound": "arithmetic", "reasoned": "reasoning"}
    for name, evaluator in components.items():
        _add_where_right(config, name, f"quality.{evaluator}", 0.5 / len(components))


def _add_where_right(config: dict[str, Any], name: str, evaluator: str, weight: float) -> None:
    """Add a component that counts an evaluator's score in proportion to the answer's accuracy, as R_cs does."""
    config["evaluators"] += [evaluator]
    inputs = {"accuracy": "maths.accuracy", evaluator.rpartition(".")[2]: evaluator}
    config["components"] |= {name: {"combiner": "product", "inputs": inputs}}
    config["reward"] |= {name: weight}


def _add_synthesizer(config: dict[str, Any]) -> None:
    """Add R_enhanced: the share of contrasts that score less than the response by accuracy and arithmetic."""
    config["derivers"] += [{"use": "synthesizer", "params": {"kinds": list(_CONTRAST_KINDS)}}]
    config["evaluators"] += ["maths.calculation", *({"use": name, "of": "contrasts"} for name in _CONTRAST_EVALUATORS)]
    by_name = {name.rpartition(".")[2]: name for name in _CONTRAST_EVALUATORS}
    inputs = by_name | {f"{short}-of-contrasts": f"{name}-of-contrasts" for short, name in by_name.items()}
    config["components"] |= {"enhanced": {"combiner": "contrast", "inputs": inputs}}
    config["reward"] |= {"enhanced": 0.25}


def _add_signal(config: dict[str, Any], use: PresetUse, signal: str) -> None:
    if signal == "emb":
        config["evaluators"] += [{"use": "similarity", "params": {"embedder": use.embedder or EMBEDDER}}]
        config["reward"] |= {"similarity": 0.5}
    else:
        config["evaluators"] += [{"use": "ranker", "params": {"ranker": use.ranker or RANKER}}]
        config["reward"] |= {"ranker": 0.5}
