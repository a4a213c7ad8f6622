"""One page about a judge: the studies' own figures, and what was not measured with the command that would."""

import json
import shutil
import subprocess
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import jurygraph as jg
from jurygraph.cli.render.report import read_from_each_run
from jurygraph.runs.integrity.verification import load_private_key
from jurygraph.runs.run import Run
from jurygraph.studies.presentations import read_presentations_of_sources
from jurygraph.studies.stability import measure_stability
from tests.cli.commands.test_audit import write_key
from tests.cli.commands.test_judge import write_labels
from tests.cli.conftest import project, run_command, scored_folder, scored_once
from tests.pages import blocks, read_page
from tests.studies.credit.test_runs import score_run, task_line
from tests.studies.figures import figures_of
from tests.studies.reliability.test_runs import TASKS, score_tasks
from tests.studies.stability.made import labelled_run

__all__ = ["project", "scored_folder", "scored_once"]


def test_the_figures_are_those_of_the_studies_and_the_rest_says_why_and_what_would_measure_it(
    tmp_path: Path,
) -> None:
    folder = labelled_run(tmp_path / "trips")
    ended = run_command("study", "certify", folder, "--html", tmp_path / "page.html", "--json")
    assert ended.code == 0
    figures = figures_of_json(ended.out)
    study = figures_of(
        measure_stability(read_presentations_of_sources([folder], read_from_each_run))
    )
    noise = figures["σ²_Sem of judge, 0 stakeholders"]
    assert (noise["value"], noise["n"]) == (study.noise[0].semantic.value, 1)
    assert noise["command"] == f"jurygraph study stability {folder}"
    assert figures["judged share of the weight, run"]["value"] == 1.0
    assert figures["verdicts that failed, run"]["value"] == 0.0
    assert "unsupported findings, run" not in figures
    missing = {name: one["command"] for name, one in figures.items() if one["value"] is None}
    new_runs = "jurygraph study stability TASKS --config F --out FOLDER"
    assert missing == {
        "σ²_Rep of judge, 0 stakeholders": new_runs,
        "S/R of judge": new_runs,
        "σ²_Sem - σ²_Rep, wording alone, of judge": new_runs,
        "Growth (A.3) of judge": new_runs,
        "Growth over the same families of judge": new_runs,
        "drift of weights": "use protocols.decomposed-adaptive in the config",
        "signs": new_runs,
        "false credit, run": "jurygraph annotate TASKS --out F",
        "attacks": "jurygraph attack --config F --json",
        "agreement with people": f"jurygraph study judge {folder} --labels F",
        "samples and juries, run": "write `samples: 3` beside `use` in the config",
    }
    assert all(one["why"] for one in figures.values() if one["value"] is None)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<table") == 3
    assert page.index(
        "Other words for the same move judge, 0 stakeholders by 1.3 (standard deviation)."
    ) < page.index("<table")
    assert page.rindex('class="interval"') < page.index("not measured</th>")
    shown = run_command("study", "certify", folder).out
    assert "| attacks | no attacks are given;" in shown
    # of its figures, and of what it would measure
    assert shown.count("jurygraph study stability ") == 1 + 4


def test_a_judge_of_shares_is_near_to_people_on_their_scale_and_not_right_in_none(
    scored_folder: Path, tmp_path: Path
) -> None:
    labels = write_labels(tmp_path, "id,how\ndoor/a,0.75\ndoor/b,0.25\n")
    options = ("--labels", labels, "--target-column", "how")
    of_none = run_command("study", "certify", scored_folder, *options)
    assert (of_none.code, "choose one with --question" in of_none.err) == (2, True)
    named = (*options, "--question", "manners.polite", "--json")
    page = json.loads(run_command("study", "certify", scored_folder, *named).out)
    (command,) = {one["command"] for one in page["figures"] if " of manners.polite" in one["name"]}
    assert command.endswith("--target-column how --question manners.polite")
    (distance,) = [one for one in page["figures"] if one["name"].startswith("mean distance")]
    assert distance["name"] == "mean distance from people of manners.polite"
    assert 0.0 < distance["value"] < 1.0
    assert distance["unit"] == ", in units of the labels"
    assert not any(figure["name"].startswith("accuracy") for figure in page["figures"])


def test_what_no_quotation_bears_out_and_what_failed_is_said_at_once(tmp_path: Path) -> None:
    def found(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        if response.text == "fail":
            raise ValueError("a reply without an end")
        return jg.Verdict(score=0.0, met=False, unsupported="worst-case")

    with jg.Jury(evaluators=[found]) as jury, jury.record(tmp_path / "run"):
        for text in ("one", "two", "three", "fail"):
            jury.score(jg.Task(id=text, query="?"), [jg.Response(text=text)])
    page = run_command("study", "certify", tmp_path / "run").out
    first_lines, _, _ = page.partition("| agreement")
    assert "0.250" in first_lines
    assert "of the verdicts failed in run" in first_lines
    assert "of the findings had no quotation that counts in run" in first_lines


def test_a_page_begins_with_what_may_be_concluded_and_names_what_repeats_least(
    tmp_path: Path,
) -> None:
    folder = score_tasks(tmp_path, TASKS)
    page = run_command("study", "certify", folder).out
    heading, _, first = page.partition("\n\n")
    assert first.startswith(
        "Judged by code alone: whether it judges rightly cannot be concluded, since no labels of people are given "
        "(--labels); the figures say how it behaves."
    ), (heading, first[:300])
    assert "Two samples on judge agree by ICC " in page
    assert "| correlation of two samples on judge, run |" in page
    # signed, it is the same page, whose seal tells what was changed; it has the head of its run
    key = tmp_path / "key.pem"
    signer = write_key(key)
    html = tmp_path / "page.html"
    signed = run_command("study", "certify", folder, "--key", key, "--html", html).out
    *unsigned_lines, signer_line = signed.splitlines()[2:-3]
    assert unsigned_lines == [*page.splitlines()[2:], ""]
    hexadecimal = json.loads(run_command("verify", html, "--json").out)["public_key"]
    assert signer_line.startswith(f"signed by the Ed25519 key {hexadecimal}; whether ")
    assert "\\`jurygraph verify PAGE --signer KEY\\` tells" in signer_line
    assert (
        f"--expect-head\\`: {json.loads(run_command('verify', folder, '--json').out)['head']}\n"
        in page
    )
    markdown = tmp_path / "page.md"
    markdown.write_text(signed)
    for path in (markdown, html):
        assert run_command("verify", path, "--signer", signer).code == 0
        assert "is by the key" in run_command("verify", path, "--signer", "0" * 64).err
        content = path.read_text()
        for changed, problem in (
            (content.replace("Two samples", "No samples"), "is not the page that was signed"),
            (content + "\n", "does not end with its seal; something was added after it"),
            (content.replace('"page":"', '"page":"0'), "is not a valid seal"),
            (content.rpartition("<!--")[0], "it was never signed, or lost its seal"),
            (content.replace("\n", "\r\n"), "has other line ends than the page that was signed"),
        ):
            path.write_text(changed, newline="")
            ended = run_command("verify", path)
            assert (ended.code, problem in ended.err) == (5, True), (changed[-300:], ended.err)
    ended = run_command("study", "certify", folder, "--key", key, "--json")
    assert (ended.code, "remove --json" in ended.err) == (2, True)


@pytest.mark.landing
def test_a_signed_page_can_be_checked_without_jurygraph_as_the_docs_say(tmp_path: Path) -> None:
    folder = score_tasks(tmp_path, TASKS)
    key = tmp_path / "key.pem"
    write_key(key)
    public_key = load_private_key(key).public_key()
    pem = public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public.pem").write_bytes(pem)
    certify = ("study", "certify", folder, "--key", key)
    page = run_command(*certify).out
    run_command(*certify, "--html", tmp_path / "judge.html")
    html = (tmp_path / "judge.html").read_text()
    (script,) = blocks(read_page("docs/stability.md"), "shell")
    for text, is_same, has_signature in (
        (html, True, True),
        (page, True, True),
        (page.replace("Two samples", "No samples"), False, True),
        (page.replace('"page":"', '"page":"0', 1), True, False),
        (page + "more\n", False, False),
    ):
        (tmp_path / "judge.md").write_text(text)
        signed = html if text is html else page
        seal = json.loads(signed.splitlines()[-2])
        done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert (seal["page"] in done.stdout) == is_same, done
        assert ("Signature Verified Successfully" in done.stdout) == has_signature, done


def test_a_run_without_edges_is_named_next_to_one_that_has_them(tmp_path: Path) -> None:
    script = {"a": 0.0, "b": 1.0}
    line = task_line("t", {"a": 1.0, "b": 1.0}, [("a", "b", "strong")], [script])
    with_edges = score_run(tmp_path, [line])
    other = labelled_run(tmp_path / "trips")
    figures = figures_of_json(run_command("study", "certify", with_edges, other, "--json").out)
    flat = figures["unearned credit by flat, run"]
    assert (flat["value"], flat["n"], flat["command"]) == (
        0.5,
        1,
        f"jurygraph study credit {with_edges}",
    )
    assert f"{other}: none of its 3 responses" in figures["false credit, run"]["why"]


def figures_of_json(text: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(text)["figures"]}


def write_attacks(path: Path, judge: Any) -> dict[str, Any]:
    """Write what `attack --json` prints of one attack of two, and return it."""
    share = {"hits": 1, "n": 20, "rate": 0.05, "low": 0.01, "high": 0.2, "n_eff": 20.0, "tasks": 20}
    arm = {"attacks": {"responses": share}, "honest": {"verdicts": share | {"rate": 0.9}}}
    arm["by_attack"] = {"null/en/body": arm["attacks"]}
    suites = {"null/en/body": {"suite": "null"}, "reference/whole": {"suite": "reference"}}
    report: dict[str, Any] = {"configured": "all", "suite": "all", "tasks": 20, "attacks": suites}
    report |= {"arms": {"all": arm}, "source": "tasks of cakes.jsonl", "judge": judge}
    report["command"] = "jurygraph attack --config strict.yaml --json"
    path.write_text(json.dumps(report), encoding="utf-8")
    return report


def read_header(folder: Path) -> Any:
    with Run.open(folder) as run:
        return run.header.model_dump(mode="json")


def test_labels_add_their_rows_and_wrong_ones_are_errors(
    scored_folder: Path, tmp_path: Path
) -> None:
    labels = write_labels(tmp_path)
    ended = run_command("study", "certify", scored_folder, "--labels", labels, "--json")
    found = figures_of_json(ended.out)
    judged = json.loads(
        run_command("study", "judge", scored_folder, "--labels", labels, "--json").out
    )["judges"][0]
    assert found[f"accuracy of {judged['judge']}"]["low"] == judged["accuracy"]["low"]
    assert (
        found[f"corrected mean label of {judged['judge']}"]["value"] == judged["corrected"]["value"]
    )
    cases = []
    for rate in ("tpr", "tnr"):
        figure = found[f"{rate.upper()} of {judged['judge']}"]
        assert figure["value"] == judged[rate]["value"]
        cases.append(figure["n"])
    assert sum(cases) == judged["n"]
    page = run_command("study", "certify", scored_folder, "--labels", labels).out
    # as labels may name a fault, 1 is not called good
    for answer in "10":
        assert f" of what people call {answer} is {answer} by {judged['judge']}." in page
    assert f"{judged['judge']} is not shown to agree with people well enough: " in page
    assert f"people.csv: SHA-256 {sha256(labels.read_bytes()).hexdigest()}\n" in page
    config = (scored_folder / "config.yaml").read_bytes()
    assert f"config.yaml of run: SHA-256 {sha256(config).hexdigest()}\n" in page
    copy = shutil.copytree(scored_folder, tmp_path / "more" / "second")
    both = run_command("study", "certify", scored_folder, copy, "--labels", labels, "--json").out
    names = [figure["name"] for figure in json.loads(both)["figures"]]
    assert f"accuracy of {copy}: {judged['judge']}" in names
    assert len(names) == len(set(names))
    assert (
        run_command("study", "certify", scored_folder, "--labels", tmp_path / "none.csv").code == 2
    )
    more = write_labels(tmp_path, labels.read_text() + "book/a,true,manners.shaky\n")
    refused = run_command("study", "certify", scored_folder, "--labels", more)
    assert (refused.code, "book/a" in refused.err) == (2, True), "its page would not say so"
    assert run_command("study", "certify", tmp_path).code == 2


def test_attacks_add_their_rows_and_those_on_another_judge_are_refused(
    scored_folder: Path, tmp_path: Path
) -> None:
    attacks = tmp_path / "attacks.json"
    header = read_header(scored_folder)
    report = write_attacks(attacks, header)
    ended = run_command("study", "certify", scored_folder, "--attacks", attacks, "--json")
    figure = figures_of_json(ended.out)["attacks that passed in one verdict or more"]
    assert [figure[name] for name in ("value", "low", "high", "n")] == [0.05, 0.01, 0.2, 20]
    page = run_command("study", "certify", scored_folder, "--attacks", attacks).out
    assert (
        "attacks passed in one verdict or more (20 tasks of cakes.jsonl; 1 of 2 attacks (null; not 1 of reference: "
        "no task has the reference that they copy))."
    ) in page
    assert report["command"] in page
    other = deepcopy(header)
    other["config"]["scale"] = 2.0
    difference = "config scale is 1.0 in the run and 2.0 here"
    form = "is not what `jurygraph attack --json` prints"
    del report["judge"]
    for content, problem in (
        (json.dumps(report | {"judge": other}), f"than that of {scored_folder}: {difference}"),
        (json.dumps(report | {"judge": {}}), form),
        (json.dumps(report), "it is of a version that did not say which judge it attacked"),
        (json.dumps(report, indent=1)[:60], ": line 5 column"),
        ("{}", form),
    ):
        attacks.write_text(content, encoding="utf-8")
        refused = run_command("study", "certify", scored_folder, "--attacks", attacks)
        assert (refused.code, problem in refused.err) == (2, True), refused.err


def test_ties_and_how_far_people_agree_are_on_the_page(scored_folder: Path, tmp_path: Path) -> None:
    rows = "id,target,reviewer\ndoor/a,true,Ann\ndoor/a,false,Bo\ndoor/b,true,Ann\ndoor/b,true,Bo\n"
    labels = write_labels(tmp_path, rows)
    ended = run_command(
        "study", "certify", scored_folder, "--labels", labels, "--question", "manners.polite"
    )
    assert ended.code == 0, ended.err
    assert "manners.polite: of the labelled, 2 = 1 compared + 1 tied\n" in ended.out
    assert (
        "Two people agree about 0.500 of the responses that both labelled, on manners.polite."
        in ended.out
    )
    assert "| agreement of two people on manners.polite | 0.500 | 2 |" in ended.out
