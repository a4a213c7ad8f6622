"""A tiny embedder and a tiny cross-encoder of sentence-transformers, made here: what they say is noise, but the real
library loads and runs them."""

from pathlib import Path
from typing import Any

_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,=+"
VOCABULARY = (*_SPECIAL, "the", "answer", "is", *_LETTERS, *(f"##{letter}" for letter in _LETTERS))


def write_embedder(folder: Path) -> Path:
    """Write an embedder of some 50 kB, the same weights every time, and give its folder back."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertModel

    base = _saved(BertModel, folder.parent / f"{folder.name}-bert")
    transformer = Transformer(str(base), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(_SIZES["hidden_size"])], device="cpu").save(
        str(folder)
    )
    return folder


def write_cross_encoder(folder: Path, labels: int = 1) -> Path:
    """Write a cross-encoder that gives so many numbers for a pair, and give its folder back."""
    from transformers import BertForSequenceClassification

    return _saved(BertForSequenceClassification, folder, num_labels=labels)


def write_qwen3_reranker(folder: Path, template: str | None = None) -> Path:
    """Write a language model of Qwen3's architecture, with a tokenizer that has "yes", "no" and the marks of a chat."""
    import torch
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2TokenizerFast, Qwen3Config, Qwen3ForCausalLM

    words = (*sorted(ByteLevel.alphabet()), "ye", "yes", "no")
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = Qwen2TokenizerFast(vocab=vocabulary, merges=[("y", "e"), ("ye", "s"), ("n", "o")])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    sizes = {**_SIZES, "max_position_embeddings": 2048, "num_key_value_heads": 1, "head_dim": 16}
    config = Qwen3Config(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **sizes)
    Qwen3ForCausalLM(config).eval().save_pretrained(folder)
    return folder


def convert_to_classifier(causal: Path, folder: Path) -> Path:
    """Write a reranker of Qwen3 as a classifier whose one label is "yes" against "no", and give its folder back."""
    import torch
    from transformers import AutoTokenizer, Qwen3ForCausalLM, Qwen3ForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(causal)
    tokenizer.save_pretrained(folder)
    yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
    head = Qwen3ForCausalLM.from_pretrained(causal).lm_head.weight
    classifier = Qwen3ForSequenceClassification.from_pretrained(causal, num_labels=1)
    classifier.score.weight = torch.nn.Parameter((head[yes] - head[no]).unsqueeze(0))
    classifier.save_pretrained(folder)
    return folder


def _saved(kind: Any, folder: Path, **config: Any) -> Path:
    import torch
    from transformers import BertConfig, BertTokenizer

    torch.manual_seed(5)
    kind(BertConfig(vocab_size=len(VOCABULARY), **_SIZES, **config)).eval().save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    BertTokenizer(vocab=str(vocabulary), model_max_length=64).save_pretrained(folder)
    return folder
