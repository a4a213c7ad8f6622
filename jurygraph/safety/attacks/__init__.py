"""Attacks on judges: responses that try to win without doing any task, and the tasks to try them on."""

from jurygraph.safety.attacks.library import Attack, Suite, attack_text, load_attack_tasks, load_attacks

__all__ = ["Attack", "Suite", "attack_text", "load_attack_tasks", "load_attacks"]
