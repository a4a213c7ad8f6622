"""Bad input that no file can hold, or that no person could read: made by a function, its refusal above it."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.bad_input.refusals import Refusal

Make = Callable[[Path], None]


class Built(NamedTuple):
    """How to make the input out of a folder in which nothing is wrong, and how it must be refused."""

    make: Make
    refusal: Refusal


BUILT: dict[str, Built] = {}


def gives(place: str, remedy: str) -> Callable[[Make], Make]:
    """Add a kind of bad input, by the name of the function that makes it."""

    def add(make: Make) -> Make:
        BUILT[make.__name__] = Built(make, Refusal(place, remedy))
        return make

    return add


def write_tasks(folder: Path, content: bytes) -> None:
    (folder / "tasks.jsonl").write_bytes(content)


def task(name: str = "door", **change: object) -> str:
    """A line that is right, but for what is changed."""
    responses = [{"id": f"{name}/1", "text": "The door, please."}]
    return json.dumps(
        {"id": name, "query": "Ask.", "responses": responses} | change, ensure_ascii=False
    )


# Lines without end.


@gives("tasks.jsonl, line 1", "keep it within 100 levels")
def ten_thousand_levels(folder: Path) -> None:
    write_tasks(folder, task(facts={"deep": 0}).replace("0", "[" * 10_000 + "]" * 10_000).encode())


# Encodings and line ends.


@gives("tasks.jsonl, line 1", "save the file as UTF-8, gzipped or not")
def utf_16(folder: Path) -> None:
    write_tasks(folder, task().encode("utf-16"))


@gives("tasks.jsonl, line 3, field responses[0].text", "write text, in quotes")
def lines_that_end_with_cr_lf(folder: Path) -> None:
    bad = task("bread", responses=[{"id": "bread/1", "text": 7}])
    write_tasks(folder, "\r\n".join([task(), task("salt"), bad]).encode())


@gives("jury.yaml, line 1", "save the file as UTF-8, gzipped or not")
def a_config_in_utf_16(folder: Path) -> None:
    (folder / "jury.yaml").write_text("evaluators: [judges.polite]\n", encoding="utf-16")


# Files that are no JSON lines.


@gives("tasks.jsonl.gz", "copy it again")
def a_gzip_file_that_is_cut_short(folder: Path) -> None:
    (folder / "tasks.jsonl").unlink()
    (folder / "tasks.jsonl.gz").write_bytes(
        gzip.compress(f"{task()}\n{task('salt')}\n".encode())[:-8]
    )


@gives("{folder}/tasks.parquet", "copy it again")
def a_parquet_file(folder: Path) -> None:
    (folder / "tasks.jsonl").unlink()
    (folder / "tasks.parquet").write_bytes(b"PAR1\x15\x04\x15\x20\x15\x24" + b"PAR1")


@gives("tasks.zip, line 1", "name an Excel file .xlsx, or unpack it")
def a_zip_archive(folder: Path) -> None:
    (folder / "tasks.jsonl").unlink()
    (folder / "tasks.zip").write_bytes(b"PK\x03\x04\x14\0\0\0\x08\0")


@gives("tasks.jsonl", "write one task per line, each a JSON object")
def an_empty_file(folder: Path) -> None:
    write_tasks(folder, b"")


# What is no file, or none that can be read.


@gives("{folder}/tasks.jsonl", "did you mean task.jsonl?")
def a_file_that_is_not_there(folder: Path) -> None:
    (folder / "tasks.jsonl").rename(folder / "task.jsonl")


@gives("{folder}/tasks.jsonl", "name a file")
def a_folder(folder: Path) -> None:
    (folder / "tasks.jsonl").unlink()
    (folder / "tasks.jsonl").mkdir()


@gives("tasks.jsonl, line 2, field qeury", "did you mean query?")
def a_pipe(folder: Path) -> None:
    (folder / "tasks.jsonl").unlink()
    os.mkfifo(folder / "tasks.jsonl")
    content = f"{task()}\n{task('salt').replace('query', 'qeury')}\n"
    threading.Thread(
        target=(folder / "tasks.jsonl").write_text, args=(content,), daemon=True
    ).start()


@gives("{folder}/jury.yaml", "name one that is there")
def a_config_that_is_not_there(folder: Path) -> None:
    (folder / "jury.yaml").unlink()


@gives("{folder}/jury.yaml", "name a file")
def a_config_that_is_a_folder(folder: Path) -> None:
    (folder / "jury.yaml").unlink()
    (folder / "jury.yaml").mkdir()


@gives("jury.yaml", "name the config file")
def a_config_of_megabytes(folder: Path) -> None:
    (folder / "jury.yaml").write_text("# not a config\n" * 100_000)
