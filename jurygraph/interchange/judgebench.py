"""JudgeBench (ScalerLab/JudgeBench): pairs of responses, one of which is right."""

from typing import Literal

from jurygraph.interchange.rows import NOT_EMPTY, RowKey, TaskFieldsAndNotes, TaskRow


class ImportedPair(TaskRow):
    """JudgeBench (ScalerLab/JudgeBench): two responses of one model to a question, and a label for the right one."""

    KEY = "pair_id"
    EXPECTED_FILE_CONTENT = "JudgeBench's pairs"

    pair_id: RowKey
    question: str = NOT_EMPTY
    response_A: str
    response_B: str
    label: Literal["A>B", "B>A"]
    response_model: str | None = None

    def to_content(self) -> TaskFieldsAndNotes:
        responses = []
        for name, text in (("A", self.response_A), ("B", self.response_B)):
            identity = {"id": f"{self.pair_id}/{name}", "agent": self.response_model}
            labels = {"preferred": self.label.startswith(name)}
            responses.append({**identity, "text": text, "labels": labels})
        task = {"id": self.pair_id, "query": self.question, "responses": responses}
        return {**task, "metadata": self.other}, ()
