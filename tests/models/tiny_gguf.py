"""A tiny language model as a GGUF file: what it says is noise, but the real engine loads it and runs it."""

import random
import struct
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

_WIDTH, _HIDDEN, _LAYERS, _HEADS, _KV_HEADS = 64, 128, 2, 4, 2
_KV_WIDTH = _WIDTH * _KV_HEADS // _HEADS
_CONTEXT = 32768  # a token is a byte: real prompts need room
_WORDS = ("yes", "no", "true", "false")
_BEGIN, _END = "<s>", "</s>"
_CONTROL = (_BEGIN, _END, "<|system|>", "<|user|>", "<|assistant|>")
CHAT = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}<|assistant|>"
_NORMAL_TYPE, _CONTROL_TYPE = 1, 3
_ALIGNMENT = 32


class _U32(int):
    """An integer that the file writes as u32."""


class _Tensor(NamedTuple):
    name: str
    shape: Sequence[int]  # rows first
    values: "array[float]"


def write_tiny(path: Path, chat: str = CHAT) -> Path:
    """Write the model, 440 KB and the same bytes every time, and return its path; `chat` is its Jinja template."""
    tokens = _tokens()
    fields = {**_fields(tokens), "tokenizer.chat_template": chat}
    tensors = list(_tensors(tokens))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    head += b"".join(_text(key) + _typed(value) for key, value in fields.items())
    contents = [_padded(tensor.values.tobytes()) for tensor in tensors]
    offsets = accumulate((len(content) for content in contents), initial=0)
    head += b"".join(
        _described(tensor, offset) for tensor, offset in zip(tensors, offsets, strict=False)
    )
    path.write_bytes(_padded(head) + b"".join(contents))
    return path


def _tokens() -> list[str]:
    """The 256 bytes in the characters of GPT-2, what the merges make of them, and the control tokens."""
    return [
        *_bytes(),
        *(word[:end] for word in _WORDS for end in range(2, len(word) + 1)),
        *_CONTROL,
    ]


def _bytes() -> list[str]:
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    stand_ins = iter(range(256, 512))
    return [chr(byte if byte in printable else next(stand_ins)) for byte in range(256)]


def _fields(tokens: Sequence[str]) -> dict[str, object]:
    return {
        "general.architecture": "llama",
        "general.name": "tiny",
        "general.file_type": _U32(0),
        "llama.context_length": _U32(_CONTEXT),
        "llama.embedding_length": _U32(_WIDTH),
        "llama.block_count": _U32(_LAYERS),
        "llama.feed_forward_length": _U32(_HIDDEN),
        "llama.attention.head_count": _U32(_HEADS),
        "llama.attention.head_count_kv": _U32(_KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _U32(_WIDTH // _HEADS),
        "llama.vocab_size": _U32(len(tokens)),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [
            _CONTROL_TYPE if token in _CONTROL else _NORMAL_TYPE for token in tokens
        ],
        "tokenizer.ggml.merges": [
            f"{word[:end]} {word[end]}" for word in _WORDS for end in range(1, len(word))
        ],
        "tokenizer.ggml.bos_token_id": _U32(tokens.index(_BEGIN)),
        "tokenizer.ggml.eos_token_id": _U32(tokens.index(_END)),
        "tokenizer.ggml.add_bos_token": True,
    }


def _typed(value: object) -> bytes:
    """A value after the number of its type."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case _U32():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(text) for text in value)
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    raise TypeError(f"no GGUF type is meant for {value!r}")


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _described(tensor: _Tensor, offset: int) -> bytes:
    shape = tensor.shape[::-1]  # the innermost first
    return _text(tensor.name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _ALIGNMENT)


def _tensors(tokens: Sequence[str]) -> Iterator[_Tensor]:
    """Noise with a bias: the words and their parts are likely, and what is not ASCII is not.

    Dimension 0 is 2 from the first layer to the last, and the output weighs it.
    """
    noise = random.Random(5)
    embedding, output = _noise(noise, len(tokens), _WIDTH), _noise(noise, len(tokens), _WIDTH)
    for row, token in enumerate(tokens):
        embedding.values[row * _WIDTH] = 2.0
        if not token.isascii() or (token in _CONTROL and token != _END):
            output.values[row * _WIDTH] = -3.0
        elif any(word.startswith(token) for word in _WORDS):
            output.values[row * _WIDTH] = 1.0
    yield embedding._replace(name="token_embd.weight")
    yield output._replace(name="output.weight")
    yield _ones("output_norm.weight")
    for layer in range(_LAYERS):
        yield from (
            tensor._replace(name=f"blk.{layer}.{tensor.name}.weight") for tensor in _block(noise)
        )


def _block(noise: random.Random) -> Iterator[_Tensor]:
    yield _ones("attn_norm")
    yield _ones("ffn_norm")
    for name, rows, columns in (
        ("attn_q", _WIDTH, _WIDTH),
        ("attn_k", _KV_WIDTH, _WIDTH),
        ("attn_v", _KV_WIDTH, _WIDTH),
        ("attn_output", _WIDTH, _WIDTH),
        ("ffn_gate", _HIDDEN, _WIDTH),
        ("ffn_up", _HIDDEN, _WIDTH),
        ("ffn_down", _WIDTH, _HIDDEN),
    ):
        tensor = _noise(noise, rows, columns)
        if name in ("attn_output", "ffn_down"):
            tensor.values[:columns] = array("f", bytes(4 * columns))
        yield tensor._replace(name=name)


def _ones(name: str) -> _Tensor:
    return _Tensor(name, (_WIDTH,), array("f", [1.0] * _WIDTH))


def _noise(noise: random.Random, rows: int, columns: int) -> _Tensor:
    return _Tensor(
        "", (rows, columns), array("f", (noise.gauss(0.0, 0.08) for _ in range(rows * columns)))
    )
