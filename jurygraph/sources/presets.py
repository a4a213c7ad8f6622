"""Recipes by name: MACRM's two, three and four agents, each without and with a global signal, and its two baselines.

A config that says `preset: macrm-vanilla-3` is one in which all that the preset states is written down; what it states
itself comes on top. The paper gives the weights of accuracy, format, steps and repetition (Table 3); which components
an agent brings, and what these weigh, is our reading.

macrm-SIGNAL-AGENTS   SIGNAL: vanilla (none), rerank (a ranker), emb (similarity of embeddings)
                      AGENTS: 2 (Data Analyzer, Data Optimizer), 3 (and Quality Assessor), 4 (and Data Synthesizer)
macrm-single          one reward model: a judge that is asked directly
macrm-multi-head      several heads: the flat mean of the rule-based components
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from jurygraph.schema.config import NamedNoun
from jurygraph.schema.noun import Id
from jurygraph.sources.complaint import nearest

Signal = Literal["vanilla", "rerank", "emb"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
AGENTS = (2, 3, 4)
SINGLE, MULTI_HEAD = "macrm-single", "macrm-multi-head"
PRESETS = (*(f"macrm-{signal}-{agents}" for signal in SIGNALS for agents in AGENTS), SINGLE, MULTI_HEAD)

EMBEDDER = "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2"
RANKER = "sentence-transformers:cross-encoder/ms-marco-MiniLM-L6-v2"
"""Who gives the signals unless a config says otherwise: the paper's encoder, and a small cross-encoder."""

_RULES = ("maths.accuracy", "maths.format", "maths.steps", "maths.repetition")
_TABLE_3 = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
_PAIRED = ("maths.accuracy", "maths.calculation")
"""The evaluators that are asked about contrasts too."""
_SEEN = ("number", "answer")
"""The kinds of contrasts that these can see: of others a response would do best to offer none."""
_MERGED, _APPENDED = ("reward", "components"), ("evaluators", "derivers")


class PresetUse(NamedNoun):
    """A preset by its name, and who gives its global signal: an embedder for `emb`, a ranker for `rerank`.

    A bare name stands for `{name: …}`.
    """

    name: Id
    embedder: str | None = None
    ranker: str | None = None


def unknown(use: PresetUse) -> str | None:
    """What to write where there is no such preset; None where there is."""
    return None if use.name in PRESETS else nearest(use.name, PRESETS) or f"there are {', '.join(PRESETS)}"


def unused(use: PresetUse) -> str | None:
    """The signal's field that is stated and that this preset has no use for; None where there is none."""
    signals = {"embedder": "emb", "ranker": "rerank"}
    stated = (field for field in signals if getattr(use, field) is not None)
    return next((field for field in stated if f"-{signals[field]}-" not in use.name), None)


def expanded(use: PresetUse, stated: Mapping[str, Any]) -> dict[str, Any]:
    """The config that a preset and what is `stated` beside it make.

    `reward` and `components` are merged name by name, `evaluators` and `derivers` are added to, but for those that the
    preset names as well, and whatever else is stated takes the place of the preset's.
    """
    config = _recipe(use, str(stated.get("model", "none")))
    for key, value in stated.items():
        if key in _MERGED and isinstance(value, Mapping):
            value = {**config.get(key, {}), **value}
        elif key in _APPENDED and isinstance(value, list | tuple):
            named = [_named(one) for one in value]
            own = [one for one in config.get(key, []) if _named(one) not in named]
            value = [*value, *own]  # first what is stated: an error names its place there
        config[key] = value
    return config


def _named(one: Any) -> tuple[Any, Any]:
    """Who is used, and about which variants it is asked; one of another name is another one."""
    stated = one if isinstance(one, Mapping) else {"use": one}
    return str(stated.get("name", stated.get("use"))), str(stated.get("of"))


def _recipe(use: PresetUse, model: str) -> dict[str, Any]:
    if use.name == SINGLE:
        return {"evaluators": ["protocols.direct"], "reward": {"direct": 1.0}}
    if use.name == MULTI_HEAD:
        share = 1.0 / len(_TABLE_3)
        return {
            "evaluators": list(_RULES),
            "reward": {name: share if weight > 0 else -share for name, weight in _TABLE_3.items()},
        }
    _, signal, agents = use.name.split("-")
    config = {"evaluators": list(_RULES), "derivers": [], "components": {}, "reward": dict(_TABLE_3)}
    _add_optimizer(config)
    if int(agents) >= 3:
        _add_assessor(config, model)
    if int(agents) >= 4:
        _add_synthesizer(config)
    if signal != "vanilla":
        _add_signal(config, use, signal)
    return config


def _add_optimizer(config: dict[str, Any]) -> None:
    """Efficiency, and diversity inside a group, of right answers alone: wrong ones are the more diverse."""
    _add_where_right(config, "efficient", "optimizer.efficiency", 0.1)
    _add_where_right(config, "diverse", "optimizer.diversity", 0.1)


def _add_assessor(config: dict[str, Any], model: str) -> None:
    """The step reward of right answers alone, since steps can be padded; without a model, by the arithmetic alone."""
    judged = {"sound": "arithmetic"} if model == "none" else {"sound": "arithmetic", "reasoned": "reasoning"}
    for name, measured in judged.items():
        _add_where_right(config, name, f"quality.{measured}", 0.5 / len(judged))


def _add_where_right(config: dict[str, Any], name: str, evaluator: str, weight: float) -> None:
    """A component that counts what an evaluator says as far as the answer is right, as R_cs does."""
    config["evaluators"] += [evaluator]
    inputs = {"accuracy": "maths.accuracy", evaluator.rpartition(".")[2]: evaluator}
    config["components"] |= {name: {"combiner": "product", "inputs": inputs}}
    config["reward"] |= {name: weight}


def _add_synthesizer(config: dict[str, Any]) -> None:
    """R_enhanced: the share of contrasts that score less than the response by accuracy and arithmetic."""
    config["derivers"] += [{"use": "synthesizer", "params": {"kinds": list(_SEEN)}}]
    config["evaluators"] += ["maths.calculation", *({"use": name, "of": "contrasts"} for name in _PAIRED)]
    twos = {name.rpartition(".")[2]: name for name in _PAIRED}
    inputs = twos | {f"{short}-of-contrasts": f"{name}-of-contrasts" for short, name in twos.items()}
    config["components"] |= {"enhanced": {"combiner": "contrast", "inputs": inputs}}
    config["reward"] |= {"enhanced": 0.25}


def _add_signal(config: dict[str, Any], use: PresetUse, signal: str) -> None:
    if signal == "emb":
        config["evaluators"] += [{"use": "similarity", "params": {"embedder": use.embedder or EMBEDDER}}]
        config["reward"] |= {"similarity": 0.5}
    else:
        config["evaluators"] += [{"use": "ranker", "params": {"ranker": use.ranker or RANKER}}]
        config["reward"] |= {"ranker": 0.5}
