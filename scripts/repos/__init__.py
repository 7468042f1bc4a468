"""Updates several git repositories and loses nothing: the modules of scripts/update_repos.py.

`cli` calls the steps for one `Repo` record (`model`) of each repository: `find`, `clone`, `survey`,
`apply` and `report`. docs/repositories.md describes what each step does, and by which modules.
"""
