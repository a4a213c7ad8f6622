"""HealthBench (openai/simple-evals): conversations with physicians' rubrics, scored by a probability."""

from jurygraph.interchange.rows import (
    NOT_EMPTY,
    ImportedRow,
    ImportedTurn,
    ImportNote,
    RowKey,
    ScoredItem,
    TaskFieldsAndNotes,
    TaskRow,
    add_rubric,
)

NO_TEXT_IMPORT_NOTE = "completions without text are left out"


class IdealCompletions(ImportedRow):
    """Physicians' completions, and the models' completions that they were shown."""

    ideal_completion: str | None = None
    ideal_completions_ref_completions: tuple[str | None, ...] | None = None


class HealthBenchRow(TaskRow):
    """HealthBench (openai/simple-evals): a conversation that ends with the user, with a physician's rubric."""

    KEY = "prompt_id"
    EXPECTED_FILE_CONTENT = "HealthBench's examples"

    prompt_id: RowKey
    prompt: tuple[ImportedTurn, ...] = NOT_EMPTY
    rubrics: tuple[ScoredItem, ...]
    ideal_completions_data: IdealCompletions | None = None

    def to_content(self) -> TaskFieldsAndNotes:
        """Return the example with its rubric, and with the ideal and reference completions as responses."""
        data = self.ideal_completions_data or IdealCompletions()
        completions = {"ideal": data.ideal_completion} if self.ideal_completions_data else {}
        for number, text in enumerate(data.ideal_completions_ref_completions or (), 1):
            completions[f"reference-{number}"] = text
        responses = []
        notes = []
        for name, text in completions.items():
            if text and text.strip():
                identity = {"id": f"{self.prompt_id}/{name}", "agent": name.partition("-")[0]}
                responses.append({**identity, "text": text, "metadata": data.other})
            else:
                notes.append(ImportNote(NO_TEXT_IMPORT_NOTE, f"{self.prompt_id}: {name}"))
        query = [turn.message() for turn in self.prompt]
        task = {
            "id": self.prompt_id,
            "query": query,
            "responses": responses,
            "metadata": self.other,
        }
        return add_rubric(task, (item.criterion_fields() for item in self.rubrics), notes)
