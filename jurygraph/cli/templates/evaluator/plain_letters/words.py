"""Stiff words, as a function."""

import jurygraph as jg

STIFF = ("pursuant to", "utilize", "prior to", "aforementioned", "in due course")


@jg.evaluator(layer="check")
def plain_words(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    """Score a letter by the share of the stiff words that it avoids."""
    text = response.text.lower()
    if not text.strip():
        return jg.Verdict(score=0.0, reason="there is nothing in it")
    found = [words for words in STIFF if words in text]
    return jg.Verdict(score=1.0 - len(found) / len(STIFF), reason=f"stiff words: {', '.join(found) or 'none'}")
