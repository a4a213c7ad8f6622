"""Attacks on judges: responses that try to get credit without doing any task, and tasks to test them on."""

from jurygraph.safety.attacks.library import Attack, Suite, attack_text, load_attack_tasks, load_attacks

__all__ = ["Attack", "Suite", "attack_text", "load_attack_tasks", "load_attacks"]
