"""Updates several git repositories and loses nothing: the modules of scripts/update_repos.py.

One `Repo` record (`model`) for each repository passes through these files in this order:

  cli         arguments, refusals, commands, exit codes
  table       which repositories there are: repositories.toml and the user's own file
  freeze      `freeze FILE` and `--to FILE`: exact commits
  find        where each repository is on this machine
  run         what the repositories of a run share; runs a step for each of them
  clone       clones those that are missing
  survey      lock, inspection, remotes, server, fetch
  inspect     what state a repository is in; changes nothing
  remotes     which remote is the upstream, which is the fork; `urls` compares addresses
  plan        what is to be done, a pure function of what is known
  obstacles   files that an update would overwrite although git would not stop for them
  apply       carries a plan out
  journal     locks, records of runs, submodules that a run left behind
  move        moves HEAD with index and files; makes rebases and merges in a temporary worktree
  submodules  moves or clones submodules after HEAD has moved
  undo        restores what a run changed
  report      tables and JSON

Beneath all of them: `git` (one call of the git command), `network` (a call that talks to a server).
"""
