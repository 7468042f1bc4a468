"""Why Bazel ran its actions: what it logged, and what is remembered of earlier builds.

In:  Bazel's execution log and its profile.
Out: the causes of each action, and texts about them.

    execution_log.py  the processes that Bazel started or found in a cache
    profile.py        when each action ran
    causes.py         compares each action with its previous run, or with that in another log
    explanation.py    prints the causes as a tree
"""
