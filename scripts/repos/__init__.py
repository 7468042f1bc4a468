"""The modules of scripts/update_repos.py; docs/repositories.md says what each of them does."""
