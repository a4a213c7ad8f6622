"""Chats in OpenAI's form: a line has the messages of one, and perhaps the tools that it may call."""

from typing import Annotated

from pydantic import AfterValidator

from jurygraph.interchange.rows import NOT_EMPTY, ImportNote, RowKey, TaskFieldsAndNotes, TaskRow
from jurygraph.schema.conversation import (
    ChatMessage,
    MessageContent,
    has_replies,
    split_conversation,
)
from jurygraph.schema.frozen_model import Id, digest_of
from jurygraph.schema.message_forms import refuse_single_word
from jurygraph.schema.task import (
    ContextPassages,
    ReferenceCall,
    ToolDefinitions,
    TranscriptMessages,
)

NO_QUERY_IMPORT_NOTE = "conversations without a message before the answer are left out"
EARLIER_REPLIES_IMPORT_NOTE = (
    "conversations with replies before the last message of a user, so that they are not judged; to judge them, "
    "leave out the import, and score this file with --response-from first-reply"
)


class Chat(TaskRow):
    """A conversation: what follows the last message of a user is the response."""

    KEY = "id"
    EXPECTED_FILE_CONTENT = "chats, with `messages` in each line"
    REPEAT_REMEDY = "keep one of them, or give it an `id`"

    id: RowKey | None = None
    agent: Id | None = None
    messages: TranscriptMessages = NOT_EMPTY
    system: Annotated[MessageContent, AfterValidator(refuse_single_word)] = None
    """The first message, which Anthropic's form has outside the list."""
    tools: ToolDefinitions | None = None
    reference_actions: tuple[ReferenceCall, ...] | None = None
    reference_messages: TranscriptMessages | None = None
    context: ContextPassages | None = None

    def to_content(self) -> TaskFieldsAndNotes:
        """Return the conversation as a task with one response; without any where it ends with the user.

        A conversation without an id gets one of the digest of its messages.
        """
        messages = self.messages
        if self.system and messages[0].role != "system":
            messages = (ChatMessage(role="system", content=self.system), *messages)
        serialized_messages = [message.model_dump(mode="json") for message in messages]
        name = self.id or f"chat-{digest_of(serialized_messages)[:12]}"
        query = messages
        responses = []
        notes = []
        if messages[-1].role != "user":
            try:
                query, answer = split_conversation(messages)
            except ValueError:
                return None, [ImportNote(NO_QUERY_IMPORT_NOTE, name)]
            responses.append({"id": f"{name}/answer", "agent": self.agent, "messages": answer})
            if has_replies(query):
                notes.append(ImportNote(EARLIER_REPLIES_IMPORT_NOTE, name))
        return {
            "id": name,
            "query": query,
            "responses": responses,
            "metadata": self.other,
            "tools": self.tools,
            "reference_actions": self.reference_actions,
            "reference_messages": self.reference_messages,
            "context": self.context,
        }, notes
