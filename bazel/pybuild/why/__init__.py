"""Why Bazel ran its actions: what it logged, and what is remembered of earlier builds.

In:  Bazel's execution log.
Out: the causes of each action, and texts about them.

    execution_log.py  the processes that Bazel started or found in a cache
    causes.py         compares each action with its previous run
    explanation.py    prints the actions that each change has caused
"""
