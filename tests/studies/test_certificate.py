"""One page about a judge: the studies' own figures, and what was not measured with the command that would."""

import json
import shutil
from pathlib import Path
from typing import Any

import jurygraph as jg
from jurygraph.cli.render.report import read_from_each_run
from jurygraph.studies.presentations import read_presentations_of_sources
from jurygraph.studies.stability import measure_stability
from tests.cli.commands.test_audit import write_key
from tests.cli.commands.test_judge import write_labels
from tests.cli.conftest import project, run_command, scored_folder, scored_once
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
    assert signed.splitlines()[2:-3] == page.splitlines()[2:]
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
            (content + "\n", "has been changed"),
            (content.replace('"page":"', '"page":"0'), "is not a valid seal"),
            (content.rpartition("<!--")[0], "it was never signed, or lost its seal"),
        ):
            path.write_text(changed)
            ended = run_command("verify", path)
            assert (ended.code, problem in ended.err) == (5, True), (changed[-300:], ended.err)
    ended = run_command("study", "certify", folder, "--key", key, "--json")
    assert (ended.code, "remove --json" in ended.err) == (2, True)


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


def test_labels_and_attacks_add_their_rows_and_wrong_ones_are_errors(
    scored_folder: Path, tmp_path: Path
) -> None:
    share = {"hits": 1, "n": 20, "rate": 0.05, "low": 0.01, "high": 0.2, "n_eff": 20.0, "tasks": 20}
    arm = {"attacks": {"responses": share}, "honest": {"verdicts": share | {"rate": 0.9}}}
    attacks = tmp_path / "attacks.json"
    command = "jurygraph attack --config strict.yaml --json"
    report = {"configured": "all", "suite": "null", "tasks": 20, "arms": {"all": arm}}
    report |= {"source": "tasks of cakes.jsonl", "command": command}
    attacks.write_text(json.dumps(report), encoding="utf-8")
    labels = write_labels(tmp_path)
    ended = run_command(
        "study", "certify", scored_folder, "--labels", labels, "--attacks", attacks, "--json"
    )
    found = figures_of_json(ended.out)
    judged = json.loads(
        run_command("study", "judge", scored_folder, "--labels", labels, "--json").out
    )["judges"][0]
    assert found[f"accuracy of {judged['judge']}"]["low"] == judged["accuracy"]["low"]
    assert (
        found[f"corrected mean label of {judged['judge']}"]["value"] == judged["corrected"]["value"]
    )
    assert [
        found["attacks that passed in one verdict or more"][name]
        for name in ("value", "low", "high", "n")
    ] == [
        0.05,
        0.01,
        0.2,
        20,
    ]
    page = run_command("study", "certify", scored_folder, "--labels", labels).out
    assert f"{judged['judge']} is not shown to agree with people well enough: " in page
    copy = shutil.copytree(scored_folder, tmp_path / "more" / "second")
    both = run_command("study", "certify", scored_folder, copy, "--labels", labels, "--json").out
    names = [figure["name"] for figure in json.loads(both)["figures"]]
    assert f"accuracy of {copy}: {judged['judge']}" in names
    assert len(names) == len(set(names))
    of_attacks = run_command("study", "certify", scored_folder, "--attacks", attacks).out
    assert "of verdicts on honest responses passed (20 tasks of cakes.jsonl; suite null)." in (
        of_attacks
    )
    assert command in of_attacks
    attacks.write_text(json.dumps(report, indent=1)[:60], encoding="utf-8")
    cut = run_command("study", "certify", scored_folder, "--attacks", attacks)
    assert (cut.code, ": line 5 column" in cut.err) == (2, True), cut.err
    attacks.write_text("{}", encoding="utf-8")
    refused = run_command("study", "certify", scored_folder, "--attacks", attacks)
    assert (refused.code, "is not what `jurygraph attack --json` prints" in refused.err) == (
        2,
        True,
    )
    assert (
        run_command("study", "certify", scored_folder, "--labels", tmp_path / "none.csv").code == 2
    )
    more = write_labels(tmp_path, labels.read_text() + "book/a,true,manners.shaky\n")
    refused = run_command("study", "certify", scored_folder, "--labels", more)
    assert (refused.code, "book/a" in refused.err) == (2, True), "its page would not say so"
    assert run_command("study", "certify", tmp_path).code == 2
