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
    SentenceTransformer(modules=[transformer, Pooling(_SIZES["hidden_size"])], device="cpu").save(str(folder))
    return folder


def write_cross_encoder(folder: Path, labels: int = 1) -> Path:
    """Write a cross-encoder that gives so many numbers for a pair, and give its folder back."""
    from transformers import BertForSequenceClassification

    return _saved(BertForSequenceClassification, folder, num_labels=labels)


def _saved(kind: Any, folder: Path, **config: Any) -> Path:
    import torch
    from transformers import BertConfig, BertTokenizer

    torch.manual_seed(5)
    kind(BertConfig(vocab_size=len(VOCABULARY), **_SIZES, **config)).eval().save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    BertTokenizer(vocab=str(vocabulary), model_max_length=64).save_pretrained(folder)
    return folder
