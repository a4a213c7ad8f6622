"""The cache: paid replies are kept, and planted or damaged rows never replace one."""

import logging
import os
import pickle
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.models.cache import Cache, CachedReply, default_cache_folder
from jurygraph.models.request import Reply, Token
from tests.examples import at_most

KEY, OTHER = "a" * 64, "b" * 64
YES = CachedReply(
    Reply(text="yes", finish="stop", served="m-1", tokens_in=9, tokens_out=1), 0.00012
)
NO = CachedReply(Reply(text="no"), None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "replies"


@pytest.fixture
def cache(folder: Path) -> Iterator[Cache]:
    with closing(Cache(folder)) as opened:
        yield opened


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert all(record.name == "jurygraph.models.cache" for record in told)
    return [record.getMessage() for record in told]


def database(folder: Path) -> "closing[sqlite3.Connection]":
    return closing(sqlite3.connect(folder / "cache.db", isolation_level=None, timeout=10))


def changed(folder: Path, **columns: object) -> None:
    """Change every row, as somebody with write access might."""
    with database(folder) as connection:
        for name, value in columns.items():
            connection.execute(f"UPDATE Cache SET {name} = ?", (value,))


def value_of(folder: Path) -> str:
    with database(folder) as connection:
        (value,) = connection.execute("SELECT value FROM Cache").fetchone()
    assert isinstance(value, str)
    return value


def sealed(key: str, content: str, version: int = 1) -> str:
    digest = sha256(f"{version} {key}\n{content}".encode()).hexdigest()
    return f"{version} {digest} {content}"


texts = st.text(st.characters(codec="utf-8"))
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | st.integers(0, 10**6)
tokens = st.builds(
    Token,
    text=texts,
    logprob=numbers,
    others=st.lists(st.tuples(texts, numbers), max_size=3).map(tuple),
)
replies = st.builds(
    Reply,
    text=texts,
    finish=st.none() | texts,
    refusal=st.none() | texts,
    served=st.none() | texts,
    tokens_in=counts,
    tokens_out=counts,
    tokens=st.lists(tokens, max_size=3).map(tuple),
)
stored = st.builds(
    CachedReply, replies, st.none() | st.floats(0.0, allow_infinity=False, allow_nan=False)
)


@settings(
    max_examples=at_most(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(stored)
def test_get_returns_what_put_stored(cache: Cache, one: CachedReply) -> None:
    cache.put({KEY: one})
    assert cache.get(KEY) == one


def test_a_cache_can_be_used_again_after_it_was_closed(cache: Cache) -> None:
    cache.put({KEY: YES})
    cache.close()
    cache.close()
    assert cache.get(KEY) == YES


class MaliciousPickle:
    """Create a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.path),)


def test_a_planted_pickle_is_a_miss_and_never_unpickled(
    cache: Cache, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loot = tmp_path / "loot"
    planted = pickle.dumps(MaliciousPickle(loot))
    cache.put({KEY: YES})
    changed(folder, mode=4, value=planted)
    assert cache.get(KEY) is None
    (folder / "planted.val").write_bytes(planted)
    changed(folder, value=None, filename="planted.val")
    assert cache.get(KEY) is None
    assert not loot.exists()
    pickle.loads(planted)
    assert loot.exists()  # so it would have been
    assert len(warnings(caplog)) == 1


@settings(
    max_examples=at_most(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_a_changed_character_never_gives_another_reply(
    cache: Cache, folder: Path, data: st.DataObject
) -> None:
    cache.put({KEY: YES})
    value = value_of(folder)
    at = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda character: character != value[at]))
    changed(folder, value=value[:at] + other + value[at + 1 :])
    assert cache.get(KEY) is None


def test_the_reply_to_another_request_is_a_miss(
    cache: Cache, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({OTHER: YES})
    changed(folder, key=KEY)
    assert cache.get(KEY) is None
    assert warnings(caplog) == [
        f"{folder}: a stored reply is damaged or not of this version, and the model is called again"
    ]


def test_another_schema_version_is_a_miss(
    cache: Cache, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({KEY: YES})
    changed(folder, value=sealed(KEY, '[{"text":"yes"},null]', version=2))
    assert cache.get(KEY) is None
    assert "not of this version" in warnings(caplog)[0]


@pytest.mark.parametrize(
    "content",
    [
        "null",
        '[{"text":"yes"}]',
        '[{"text":"yes"},-1]',
        '[{"text":"yes","score":1},null]',
        '[{"text":"\\ud800"},null]',
    ],
)
def test_a_valid_envelope_without_a_reply_is_a_cache_miss(
    cache: Cache, folder: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({KEY: YES})
    changed(folder, value=sealed(KEY, content))
    assert cache.get(KEY) is None
    assert "a stored reply is damaged" in warnings(caplog)[0]


def test_no_text_of_a_reply_is_logged(
    cache: Cache, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cache.put({KEY: YES})
    changed(folder, value=sealed(KEY, '[{"text":7,"canary":"canary"},"canary"]'))
    cache.get(KEY)
    with database(folder) as connection:
        connection.execute("UPDATE Cache SET value = CAST(x'ff' || 'canary' AS TEXT)")
    cache.get(KEY)
    cache.put({KEY: CachedReply(Reply(text="canary \ud800"), None)})
    assert len(caplog.records) == 3
    assert "canary" not in caplog.text


def test_an_unwritable_call_does_not_lose_others(
    cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({KEY: YES, "bad": CachedReply(Reply(text="\ud800"), None), OTHER: NO})
    assert (cache.get(KEY), cache.get("bad"), cache.get(OTHER)) == (YES, None, NO)
    assert len(warnings(caplog)) == 1


def test_a_deleted_entry_is_gone_for_all_users_of_the_folder(cache: Cache, folder: Path) -> None:
    cache.put({KEY: YES, OTHER: NO})
    with closing(Cache(folder)) as another:
        another.drop(KEY)
        another.drop("never there")
    assert (cache.get(KEY), cache.get(OTHER)) == (None, NO)


def test_nothing_is_ever_evicted(folder: Path) -> None:
    with closing(Cache(folder)) as opened:
        opened.put({KEY: YES})
    # as diskcache has it where nobody says otherwise, and smaller
    with database(folder) as connection:
        for name, value in (
            ("eviction_policy", "least-recently-used"),
            ("cull_limit", 10),
            ("size_limit", 1),
        ):
            connection.execute("UPDATE Settings SET value = ? WHERE key = ?", (value, name))
    with closing(Cache(folder)) as opened:
        for number in range(30):
            opened.put({f"{number}": NO})
        assert opened.get(KEY) == YES
        assert all(opened.get(f"{number}") == NO for number in range(30))


def test_the_folder_and_its_files_are_for_this_user_alone(folder: Path, cache: Cache) -> None:
    cache.put({KEY: YES})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(InputError, match=f"{folder}: may be written by others"):
        Cache(folder)
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    if os.geteuid() == 0:
        folder.mkdir(mode=0o700)
        os.chown(folder, 12345, -1)
    else:
        folder = Path("/usr")
    with pytest.raises(InputError, match=f"{folder}: belongs to another user"):
        Cache(folder)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    for folder in (file, file / "replies"):
        with pytest.raises(InputError, match=f"{folder}: is a file"):
            Cache(folder)
    assert file.read_text() == "text"


def test_a_damaged_database_is_named_and_left_unchanged(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "cache.db").write_bytes(b"no database " * 1000)
    with pytest.raises(
        InputError,
        match=rf"{folder}: cannot be used as a cache \(file is not a database\); delete it",
    ):
        Cache(folder)
    assert (folder / "cache.db").read_bytes() == b"no database " * 1000


def test_a_database_that_is_damaged_later_is_a_miss(
    folder: Path, cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({KEY: YES})
    with database(folder) as connection:
        connection.execute("DROP TABLE Cache")
    assert cache.get(KEY) is None
    cache.put({KEY: YES})
    assert len(warnings(caplog)) == 2


def test_the_folder_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("JURYGRAPH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache_folder() == Path("/home/me/.cache/jurygraph/replies")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache_folder() == Path("/home/me/.cache/jurygraph/replies")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_cache_folder() == Path("/caches/jurygraph/replies")
    monkeypatch.setenv("JURYGRAPH_CACHE", "")
    assert default_cache_folder() == Path("/caches/jurygraph/replies")
    monkeypatch.setenv("JURYGRAPH_CACHE", "/mine")
    assert default_cache_folder() == Path("/mine")
