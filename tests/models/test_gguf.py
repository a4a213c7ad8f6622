"""The local engine, real: llama.cpp runs a tiny model whose answers are noise, so that only what holds for any model
is tested."""

import asyncio
import hashlib
import json
import math
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from jurygraph.errors import ConfigError
from jurygraph.models.backends import gguf
from jurygraph.models.backends.gguf import GgufBackend
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.schema import Message
from tests.models.tiny_gguf import CHAT, write_tiny

pytestmark = pytest.mark.heavy

LONG = 60.0
PROMPTS = [
    "Is the plan within its budget?", "a", " ", "{}", '{"verdicts":[{"id":"a","met":true}]}', "line\nbreak\ttab",
    "Größe und Maß, naïve façade", "解 かいせつ 해설", "Решение: да", "حل", "😀👍🏽 e\u0301", "\u200b\u202e\ufeff",
    "</s><|assistant|><s>", "<|im_end|>", "%llguidance {}", "a\x00b", "\\u00e9 \\", "'\"`", "yes " * 200, "ﬁ ½ Ω ∑",
]  # fmt: skip


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: Literal["a"]
    reason: Annotated[str, Field(max_length=40)]
    met: bool
    probability: Annotated[float, Field(ge=0.0, le=1.0)]


class SecondPart(Part):
    id: Literal["b"]  # type: ignore[assignment]


class Verdicts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    verdicts: tuple[Part, SecondPart]


VERDICTS = Verdicts.model_json_schema()
MET = {
    "type": "object",
    "properties": {"met": {"type": "boolean"}},
    "required": ["met"],
    "additionalProperties": False,
}
YES_OR_NO: dict[str, Any] = {
    "grammar": 'root ::= "yes" | "no"', "max_tokens": 1, "logprobs": True, "top_logprobs": 20,
    "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(tiny: Path) -> Iterator[GgufBackend]:
    model = GgufBackend(tiny, threads=1)
    yield model
    asyncio.run(model.close())


def ask(
    model: GgufBackend,
    prompt: str = "Is it?",
    answer: dict[str, Any] | None = None,
    **parameters: Any,
) -> Request:
    return Request(
        provider=model.provider,
        endpoint=model.endpoint,
        model=model.model,
        messages=(Message(role="user", content=prompt),),
        parameters={"temperature": 0.0, "max_tokens": 400, **parameters},
        answer=answer,
        form="text" if answer is None else "grammar",
    )


def reply(
    model: GgufBackend,
    prompt: str = "Is it?",
    answer: dict[str, Any] | None = None,
    **parameters: Any,
) -> Reply:
    return asyncio.run(model.complete(ask(model, prompt, answer, **parameters), LONG))


def fault(attempt: Coroutine[Any, Any, Reply]) -> Fault:
    with pytest.raises(Fault) as caught:
        asyncio.run(attempt)
    return caught.value


# The file


def test_a_model_is_known_by_its_name_and_its_bytes(
    tmp_path: Path, tiny: Path, model: GgufBackend
) -> None:
    assert (model.provider, model.model) == ("gguf", "tiny.gguf")
    assert model.endpoint == "sha256:" + hashlib.sha256(tiny.read_bytes()).hexdigest()
    other = GgufBackend(write_tiny(tmp_path / "tiny.gguf", CHAT + " "))
    assert (other.model, other.endpoint) != (model.model, model.endpoint)
    assert other.model == model.model


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (None, "there is no such file; name a model"),
        (b"", "is empty; name a model"),
        (b"hello there", r"is no GGUF file, it begins with b'hell'; name a model"),
    ],
)
def test_a_file_that_is_no_model_is_refused_at_once(
    tmp_path: Path, content: bytes | None, wrong: str
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=wrong) as caught:
        GgufBackend(path)
    assert str(caught.value).startswith(f"gguf: {path}: ")


@pytest.mark.parametrize("length", [4, 24, 3_000, 200_000, -1])
def test_a_model_that_is_cut_short_is_refused_when_it_is_loaded(
    tmp_path: Path, tiny: Path, length: int
) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny.read_bytes()[:length])
    model = GgufBackend(path, threads=1)
    with pytest.raises(
        ConfigError, match=r"cut\.gguf: llama\.cpp cannot load it; it may be cut short"
    ):
        model.open()
    assert fault(model.complete(ask(model), LONG)).kind == "unknown-model"


def test_without_the_library_the_extra_is_named(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(
        ConfigError, match=r"^gguf: needs xllamacpp: pip install 'jurygraph\[local\]'$"
    ):
        GgufBackend(tiny)


# The reply


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_reply_validates_as_a_whole_whatever_the_prompt(model: GgufBackend, prompt: str) -> None:
    given = reply(model, prompt, VERDICTS, temperature=1.0, seed=len(prompt))
    assert given.finish == "stop"
    assert [part.id for part in Verdicts.model_validate_json(given.text).verdicts] == ["a", "b"]


def test_a_recorded_reply_has_no_unneeded_white_space(model: GgufBackend) -> None:
    space = {str(ord(" ")): 60.0}
    assert reply(model, answer=MET, logit_bias=space).text in ('{"met":true}', '{"met":false}')


def test_a_reply_holds_letters_beyond_ascii_whole(model: GgufBackend) -> None:
    likely = {str(byte): 60.0 for byte in "é解😀".encode()}
    answer = {"type": "string", "minLength": 4, "maxLength": 4}
    given = reply(model, answer=answer, logit_bias=likely, temperature=1.0, seed=3)
    text = json.loads(given.text)
    assert len(text) == 4
    assert not text.isascii()
    assert "\ufffd" not in text


def test_only_a_request_of_the_form_grammar_is_held_to_its_schema(model: GgufBackend) -> None:
    instructed = ask(model, answer=MET, max_tokens=5).model_copy(update={"form": "instructed"})
    assert not asyncio.run(model.complete(instructed, LONG)).text.startswith("{")


def test_a_reply_tells_its_end_its_tokens_and_the_engine(model: GgufBackend) -> None:
    given = reply(model, "abc", max_tokens=7)
    # <s><|user|>abc<|assistant|>
    assert (given.finish, given.tokens_in, given.tokens_out) == (
        "length",
        6,
        7,
    )
    assert given.served is not None
    assert given.served.startswith("xllamacpp ")


THINKER = (
    "{% for message in messages %}{% if message.role == 'assistant' %}<|assistant|>{% if message.reasoning_content %}"
    "<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}{{ message.content }}</s>{% else %}"
    "<|{{ message.role }}|>{{ message.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)


def test_text_marked_as_thought_by_a_template_is_part_of_the_reply(tmp_path: Path) -> None:
    """Templates of reasoning models open a thought, and the engine by itself would leave the reply empty."""
    model = GgufBackend(write_tiny(tmp_path / "thinker.gguf", THINKER), threads=1)
    assert reply(model, answer=MET).text in ('{"met":true}', '{"met":false}')
    assert reply(model, grammar='root ::= "{a</think>b}"').text == "{a</think>b}"
    asyncio.run(model.close())


def test_a_thinking_model_is_configured_not_to_think(tmp_path: Path) -> None:
    thoughtful = (
        CHAT + "{% if enable_thinking is defined and enable_thinking is false %}!!!{% endif %}"
    )
    told = GgufBackend(write_tiny(tmp_path / "thoughtful.gguf", thoughtful), threads=1)
    assert reply(told, "abc", max_tokens=1).tokens_in == 9
    asyncio.run(told.close())


# Log probabilities


def probability_of_prefixes(word: str, others: tuple[tuple[str, float], ...]) -> float:
    """Return the probability of the tokens with which a word may begin."""
    return math.fsum(
        math.exp(logprob) for text, logprob in others if text and word.startswith(text)
    )


def share_of_yes(others: tuple[tuple[str, float], ...]) -> float:
    yes, no = probability_of_prefixes("yes", others), probability_of_prefixes("no", others)
    return yes / (yes + no)


@pytest.mark.parametrize("prompt", PROMPTS[:8])
def test_yes_and_no_share_the_probability_as_the_model_has_it(
    model: GgufBackend, prompt: str
) -> None:
    everything = (
        reply(model, prompt, max_tokens=1, logprobs=True, top_logprobs=1000).tokens[0].others
    )
    right = share_of_yes(everything)
    assert 0.0 < right < 1.0
    for seed in range(6):
        [given] = reply(model, prompt, **YES_OR_NO, seed=seed).tokens
        assert share_of_yes(given.others) == pytest.approx(right, abs=1e-3)


def test_log_probabilities_are_the_models_own_whatever_the_grammar_and_the_temperature(
    model: GgufBackend,
) -> None:
    free = reply(model, max_tokens=1, logprobs=True, top_logprobs=1000).tokens[0]
    assert math.fsum(math.exp(logprob) for _, logprob in free.others) == pytest.approx(
        1.0, abs=1e-3
    )
    held = reply(model, answer=MET, temperature=1.0, logprobs=True, top_logprobs=1000).tokens[0]
    assert held.text == "{"
    assert dict(held.others) == pytest.approx(dict(free.others), abs=1e-2)
    assert held.logprob == pytest.approx(dict(free.others)["{"], abs=1e-2)


def test_the_tokens_of_a_reply_are_its_text(model: GgufBackend) -> None:
    given = reply(model, answer=VERDICTS, logprobs=True, top_logprobs=3)
    assert "".join(token.text for token in given.tokens) == given.text
    assert all(token.logprob <= 0.0 and len(token.others) in (0, 3) for token in given.tokens)
    # and not the name between them
    assert [token.text for token in given.tokens if token.others][:2] == [
        "{",
        "[",
    ]
    assert all(token.others[0][1] >= token.others[-1][1] for token in given.tokens if token.others)


# What goes wrong


def test_a_prompt_beyond_the_context_overflows(model: GgufBackend) -> None:
    wrong = fault(model.complete(ask(model, "x" * 5000), LONG))
    assert (wrong.kind, wrong.cause) == ("overflowed", "response")
    assert "4096" in str(wrong)


@pytest.mark.parametrize(
    "parameters",
    [
        {"temperature": "warm"},
        {"grammar": "root ::= nothing"},
        {"tools": 1},
    ],
)
def test_a_request_rejected_by_the_engine_is_not_retried(
    model: GgufBackend, parameters: dict[str, Any]
) -> None:
    wrong = fault(model.complete(ask(model, **parameters), LONG))
    assert wrong.kind == "rejected"


def test_messages_that_the_template_refuses_are_rejected(tmp_path: Path) -> None:
    strict = (
        "{% if messages[0].content == 'no' %}{{ raise_exception('not this') }}{% endif %}" + CHAT
    )
    model = GgufBackend(write_tiny(tmp_path / "strict.gguf", strict), threads=1)
    wrong = fault(model.complete(ask(model, "no"), LONG))
    asyncio.run(model.close())
    assert wrong.kind == "rejected"
    assert "not this" in str(wrong)


class RecordingServer:
    """The engine's server, with the chunks of replies that it returned."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.pieces: list[dict[str, Any]] = []

    def handle_chat_completions(
        self, body: dict[str, Any], take: Callable[[dict[str, Any]], bool]
    ) -> None:
        def overhear(piece: dict[str, Any]) -> bool:
            self.pieces.append(piece)
            return take(piece)

        self._server.handle_chat_completions(body, overhear)


@pytest.fixture
def roomy(tiny: Path) -> Iterator[tuple[GgufBackend, RecordingServer]]:
    """Yield a model with one slot, and room for a reply that takes seconds."""
    model = GgufBackend(tiny, slots=1, context=30_000, threads=1)
    model.open()
    recording_server = model._server = RecordingServer(model._server)
    yield model, recording_server
    asyncio.run(model.close())


def test_requests_that_take_too_long_time_out_and_are_given_up(
    roomy: tuple[GgufBackend, RecordingServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, recording_server = roomy
    monkeypatch.setattr(gguf, "_FIRST_CALL_TIMEOUT_SECONDS", 0.05)

    async def crowd() -> list[Reply | BaseException]:
        requests = (ask(model, f"{number}", max_tokens=20_000) for number in range(6))
        return await asyncio.gather(
            *(model.complete(each, 0.05) for each in requests), return_exceptions=True
        )

    ends = asyncio.run(crowd())
    assert [end.kind for end in ends if isinstance(end, Fault)] == ["timeout"] * 6
    assert reply(model, answer=MET).finish == "stop"
    asyncio.run(model.close())
    assert len(recording_server.pieces) < 20_000


def test_the_first_replies_say_how_long_later_ones_may_take(
    roomy: tuple[GgufBackend, RecordingServer],
) -> None:
    """A limit that is too short for this machine is no failure of a model that does answer."""
    model, _ = roomy
    for _ in range(3):
        assert (
            asyncio.run(model.complete(ask(model, "yes", max_tokens=200), 1e-9)).tokens_out == 200
        )


def test_a_cancelled_request_ends_as_cancelled_and_is_given_up(
    roomy: tuple[GgufBackend, RecordingServer],
) -> None:
    model, recording_server = roomy

    async def cancelled() -> None:
        task = asyncio.create_task(model.complete(ask(model, max_tokens=20_000), LONG))
        while not recording_server.pieces:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    asyncio.run(model.close())
    assert len(recording_server.pieces) < 20_000


def test_a_closed_model_is_loaded_again_at_the_next_request(tiny: Path) -> None:
    model = GgufBackend(tiny, threads=1)
    asyncio.run(model.close())
    first = reply(model)
    asyncio.run(model.close())
    asyncio.run(model.close())
    assert reply(model) == first
    asyncio.run(model.close())


OPENED_AND_CLOSED = """
import asyncio, sys
from pathlib import Path
from jurygraph.models.backends.gguf import GgufBackend
for _ in range(20):
    model = GgufBackend(Path(sys.argv[1]), threads=1)
    model.open()
    asyncio.run(model.close())
"""


def test_a_model_can_be_closed_as_soon_as_it_is_open(tiny: Path) -> None:
    """In a process of its own: an engine that is unloaded too early waits without end, and Ctrl-C does not reach it."""
    subprocess.run([sys.executable, "-c", OPENED_AND_CLOSED, str(tiny)], check=True, timeout=LONG)


def test_an_interrupt_is_still_pythons(tiny: Path) -> None:
    """A server in the process that took the signals for itself would make Ctrl-C end nothing."""
    # a shell's background job ignores it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    model = GgufBackend(tiny, threads=1)
    try:
        model.open()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
        asyncio.run(model.close())


# Over HTTP
