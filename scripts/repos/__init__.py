"""Brings several git repositories up to date, and loses nothing: what scripts/update_repos.py does.

Data passes through the modules in this order; each hands frozen values to the next:

  cli          arguments, refusals, the phases below, exit codes
  update       the phases of all repositories; survey, those of one
  table        which repositories there are: repositories.toml and the user's own file
  find         where each of them is on this machine
  urls         whether two addresses mean one place; what of a text must not be shown
  ssh          what a host is called that a person gave a name of their own
  look         what state a repository is in; changes nothing
  remotes      which remote is the official one, and how a wrong one is corrected
  fetch        asks the server for its tip, gets what is missing
  plan         what is to be done, a pure function of what was seen
  in_the_way   files that an update would overwrite although git does not know them
  backup       what the refs were: kept before anything moves
  apply        carries a plan out
  move         moves what is checked out; what git leaves half done is taken back
  bring        rebase and merge of a feature branch, away from the user's files
  stash        --autostash: local changes put aside and brought back
  submodules   they follow, after the branch
  undo         brings back what a run changed
  report       tables and JSON

Beneath all of them: `layout` (where a git folder is), `git` (one call of the git command),
`network` (one that talks to a server: time limit, retries), `shown` (commands for people),
`model` (the values), `parallel`.
"""
