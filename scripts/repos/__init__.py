"""Updates several git repositories and loses nothing: what scripts/update_repos.py does.

Data passes through the files in this order, as one `Repo` record for each repository (`model`):

  cli         arguments, refusals, commands, exit codes
  table       which repositories there are: repositories.toml and the user's own file
  freeze      `freeze FILE` and `--to FILE`: exact commits
  find        where each repository is on this machine
  clone       clones those that are missing
  update      the phases below, over all repositories
  survey      one repository: lock, remotes, server, fetch, inspection
  remotes     which remote is the upstream, which is the fork; `urls` compares addresses
  inspect     what state a repository is in; changes nothing
  plan        what is to be done, a pure function of what is known
  obstacles   files that an update would overwrite although git would not stop for them
  apply       carries a plan out
  journal     lock, records of runs, obligations that a run leaves behind
  move        moves HEAD with index and files; makes rebases and merges in a temporary worktree
  submodules  they follow after HEAD
  undo        brings back what a run changed
  report      tables and JSON; `progress` is the line on a terminal

Beneath all of them: `git` (one call of the git command), `network` (a call that talks to a server),
`layout` (where a git folder is).
"""
