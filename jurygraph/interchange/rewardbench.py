"""RewardBench and RewardBench 2 (allenai/reward-bench): chosen and rejected responses."""

from jurygraph.interchange.rows import (
    ImportNote,
    RowKey,
    ShortName,
    TaskFieldsAndNotes,
    TaskRow,
    nonempty_fields,
)
from jurygraph.schema.frozen_model import digest_of

UNPAIRED_ROWS_IMPORT_NOTE = "rows without both a chosen and a rejected response are left out"
NO_MODEL_IMPORT_NOTE = (
    "rows do not name one model for each response, so that their responses have no agent"
)


class ImportedComparison(TaskRow):
    """RewardBench and RewardBench 2 (allenai/reward-bench): a prompt with chosen and rejected responses.

    RewardBench has one of each, whose models it names separately; RewardBench 2 has lists, and `models` has the models
    of the chosen, then those of the rejected responses.
    """

    KEY = "id"
    EXPECTED_FILE_CONTENT = "RewardBench's or RewardBench 2's rows"

    id: RowKey
    prompt: str
    chosen: str | tuple[str, ...]
    rejected: str | tuple[str, ...]
    chosen_model: str | None = None
    rejected_model: str | None = None
    models: tuple[str, ...] | None = None
    subset: ShortName | None = None

    def to_content(self) -> TaskFieldsAndNotes:
        """Return the prompt with its responses.

        Neither the ids of the responses nor their order reveal which is preferred: they are in the order of their
        digests, and if a chosen and a rejected one have the same text, a digest of id and text decides which is first.
        """
        name = self.id if self.subset is None else f"{self.subset}/{self.id}"
        chosen_texts = (self.chosen,) if isinstance(self.chosen, str) else self.chosen
        rejected_texts = (self.rejected,) if isinstance(self.rejected, str) else self.rejected
        if not chosen_texts or not rejected_texts:
            return None, [ImportNote(UNPAIRED_ROWS_IMPORT_NOTE, name)]
        texts = (*chosen_texts, *rejected_texts)
        agents: list[str | None] = list(self.models or ())
        if len(agents) != len(texts):
            agents = [self.chosen_model] * len(chosen_texts)
            agents += [self.rejected_model] * len(rejected_texts)
        preference_flags = [True] * len(chosen_texts) + [False] * len(rejected_texts)
        entries = zip(texts, preference_flags, agents, strict=True)
        shuffled_text_entries = sorted(
            entries, key=lambda entry: _shuffling_sort_key(name, entry[0], entry[1])
        )
        responses = []
        for number, (text, is_preferred_response, agent) in enumerate(shuffled_text_entries, 1):
            identity = {"id": f"{name}/{number}", "agent": agent, "text": text}
            responses.append({**identity, "labels": {"preferred": is_preferred_response}})
        about = self.other | nonempty_fields(subset=self.subset, models=self.models)
        task = {"id": name, "query": self.prompt, "responses": responses, "metadata": about}
        has_unnamed_model = self.models is not None and None in agents
        return task, [ImportNote(NO_MODEL_IMPORT_NOTE, name)] if has_unnamed_model else []


def _shuffling_sort_key(name: str, text: str, is_preferred: bool) -> tuple[str, bool]:
    is_rejected_first = int(digest_of([name, text]), 16) % 2 == 1
    return digest_of(text), is_preferred is is_rejected_first
