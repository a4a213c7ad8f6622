"""Views of rewards, a trace and a verdict: data to be shown, without layout.

A view is computed once, and laid out by a terminal, a page or a notebook. Views have numbers, names and texts as they
are stored: who lays them out formats, escapes and shortens them.
"""
