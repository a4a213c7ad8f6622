"""`jurygraph study simulate`."""

from tests.cli.conftest import Command


def test_a_table_has_our_means_and_the_papers_numbers(run: Command):
    ended = run("study", "simulate", "hard", "--seeds", 2, "--seed", 3)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "means over seeds 3 to 4 (standard error), and the paper's number"
    head = lines.index(
        "Table 4: MSE, 10⁻³     majority  paper  dawid-skene  paper    stableval  paper"
    )
    cells = lines[head + 2].replace("(", "").replace(")", "").split()
    assert cells[0] == "hard_00"
    assert [cells[place] for place in (3, 6, 9)] == ["1.10", "0.36", "0.60"]
    assert ended.out.count("hard_20") == 3


def test_an_unknown_part_is_refused(run: Command):
    ended = run("study", "simulate", "lables")
    assert (ended.code, ended.out) == (2, "")
    assert "unknown part 'lables'; did you mean labels?" in ended.err


def test_decompr_prints_the_formula_the_simulation_and_the_papers_number(run: Command):
    ended = run("study", "simulate", "decompr", "--seeds", 2)
    assert ended.code == 0
    row = next(line for line in ended.out.splitlines() if line.startswith("0.5 "))
    assert (row.split()[5], row.split()[-1]) == ("0.775", "0.78")
