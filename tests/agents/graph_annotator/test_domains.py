"""Domain profiles, and the worked examples that they give for pairs of criteria."""

import re
from pathlib import Path
from typing import get_args

import pytest

from jurygraph.agents.graph_annotator import BUILTIN_DOMAIN_NAMES, EDGE_KINDS_BY_ROLES, load_domain
from jurygraph.schema.task import CriterionRole, EdgeKind

EXAMPLE = re.compile(r"- parent, (\w+): “[^”]+” Child, (\w+): “[^”]+” → (\w+): if [^.]+\.")


@pytest.mark.parametrize("name", BUILTIN_DOMAIN_NAMES)
def test_worked_examples_show_every_relation_once_between_roles_that_allow_it(name: str) -> None:
    lines = load_domain(name).examples.splitlines()
    found = [match.groups() for line in lines if (match := EXAMPLE.fullmatch(line))]
    assert len(found) == len(lines)
    assert sorted(relation for *_, relation in found) == sorted(("none", *get_args(EdgeKind)))
    for parent, child, relation in found:
        assert {parent, child} <= set(get_args(CriterionRole))
        assert relation == "none" or relation in EDGE_KINDS_BY_ROLES[parent, child]


def test_a_file_without_worked_examples_is_a_profile_alone(tmp_path: Path) -> None:
    file = tmp_path / "own.md"
    file.write_text("---\nid: own\n---\n- A sonnet has fourteen lines.\n")
    assert load_domain(str(file))[1:] == ("- A sonnet has fourteen lines.", "")
    file.write_text("- A sonnet has fourteen lines.\r\n\r\n# Worked examples\r\n\r\n- Rhyme.\r\n")
    assert load_domain(str(file))[1:] == ("- A sonnet has fourteen lines.", "- Rhyme.")
