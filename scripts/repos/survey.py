"""One repository through the phases before anything is done: look, ask, fetch, relate.

seen = Survey(...)
seen.ask(), seen.look()      # the server is asked while we look
seen.fetch(...)              # gets what is missing
seen.facts(pins, options)    # what the plan is made of
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.repos import backup, fetch, git, in_the_way, look, network, remotes, shown, submodules
from scripts.repos.model import (
    Facts,
    Found,
    Options,
    Repository,
    RepoState,
    Settings,
    Tip,
)
from scripts.repos.parallel import Task


class Survey:
    """What is known of one repository, growing from phase to phase."""

    def __init__(
        self,
        repository: Repository,
        found: Found,
        settings: Settings,
        others: Iterable[Path],
        online: bool,
    ):
        """Begins with the configuration alone.

        Args:
          repository: its entry in the table.
          found: where it is.
          settings: for the network.
          others: checkouts of other repositories.
          online: whether the server may be asked.
        """
        self.repository = repository
        self.path = found.path
        self.settings = settings
        self.journal: backup.Journal | None = None
        self._others = tuple(others)
        self._online = online
        self._asked: Task[Tip] | None = None
        self.before: str | None = None
        self.tip = Tip(repository.branch, None)
        self.state = RepoState(self.path, self.path, self.path)
        self._read()

    def _read(self) -> None:
        try:
            config = git.config(self.path)
        except git.GitError:
            # Why it is no repository, looking at it will tell.
            config = []
        self._config = dict(config)
        self.choice = remotes.choose(
            remotes.read(config, self.repository.upstream), self.repository, self.path
        )

    def ask(self) -> None:
        """Begins to ask the server, while we look."""
        if self._online and self.choice.official is not None:
            self._asked = Task(
                fetch.ask, self.path, self.choice.official, self.repository.branch, self.settings
            )

    def look(self) -> None:
        """Looks at the repository; what the server says is awaited."""
        state = look.look(
            self.path, self.choice, self.repository.branch, self._config, self._others
        )
        if state.head is not None and state.git_dir:
            state = _with_resume(state)
        self.state = state
        if self._asked is not None:
            self.tip = self._with_rename(self._asked.result(), state.remote_head)
            self._asked = None
        elif not self._online:
            self.tip = self._remembered()
        before = self.state.tracking.get(self.tracking)
        self.before = self.before or before

    def _with_rename(self, tip: Tip, before: str | None) -> Tip:
        """Says so when the server has another default branch than it had."""
        if self.repository.branch or tip.branch is None or before in (None, tip.branch):
            return tip
        if before != self.state.branch and before not in self.state.branches:
            return tip
        remote = self.choice.official or ""
        return tip._replace(
            note=f"the default branch is now {tip.branch}, it was {before}",
            remedy=(
                *fetch.renamed(self.path, remote, before or "", tip.branch),
                shown.git(self.path, "remote", "set-head", remote, tip.branch),
            ),
        )

    def fix_remote(self) -> None:
        """Corrects or adds the remote that should be the official one; what it was is kept."""
        verb, name, url = self.choice.fix
        old = git.run(self.path, "config", f"remote.{name}.url").out.strip() or None
        if self.journal is not None:
            self.journal.note("remote", name=name, old=old, new=url)
        git.change(self.path, "remote", verb, name, url)
        self._read()
        self.choice = self.choice._replace(note=f"remote {name} is now {url}")

    @property
    def tracking(self) -> str:
        """The remote-tracking ref of the upstream's default branch."""
        return f"refs/remotes/{self.choice.official}/{self.tip.branch}"

    def _remembered(self) -> Tip:
        """The tip as of the last fetch."""
        branch = self.repository.branch or self.state.remote_head
        tracking = f"refs/remotes/{self.choice.official}/{branch}"
        return Tip(branch, self.state.tracking.get(tracking))

    @property
    def is_behind(self) -> bool:
        """Whether the server has what the remote-tracking ref has not."""
        if self.tip.commit is None or self.state.refusal or self.choice.official is None:
            return False
        return self.state.tracking.get(self.tracking) != self.tip.commit

    def fetch(self, progress: network.Progress | None) -> None:
        """Gets the tip; with a journal, the old value of the remote-tracking ref is kept.

        Args:
          progress: is told how far it is.
        """
        old = self.state.tracking.get(self.tracking)
        if self.journal is not None:
            self.journal.keep([backup.Move(self.tracking, old, self.tip.commit or "")])
        branch = self.tip.branch or ""
        try:
            fetch.get(self.path, self.choice.official or "", branch, self.settings, progress)
        except network.Unreachable as error:
            problem = f"{branch} could not be fetched from {self.choice.official}: {error.problem}"
            command = shown.git(self.path, "fetch", self.choice.official or "", branch)
            self.tip = self.tip._replace(problem=problem, remedy=(command,), unreachable=True)
            return
        now = git.commit(self.path, self.tracking)
        if now is not None and now != self.tip.commit:
            # It moved between asking and fetching.
            self.tip = self.tip._replace(commit=now)
            if self.journal is not None:
                self.journal.changes[-1]["new"] = now
                self.journal.save()

    def facts(self, pins: Mapping[str, tuple[str, str]], options: Options) -> Facts:
        """How everything relates.

        Args:
          pins: repository to what pins it: the pinning repository and the commit, or, with an
            empty commit, why there is none.
          options: what is asked for.
        """
        facts = Facts(self.state, self.choice, self.tip)
        if self.state.refusal or self.choice.problem or self.tip.problem:
            return facts
        facts = facts._replace(
            target=self.tip.commit, target_name=f"{self.choice.official}/{self.tip.branch}"
        )
        if options.pinned and self.repository.name in pins:
            facts = self._pinned(facts, *pins[self.repository.name])
        if facts.pin_problem:
            return facts
        if facts.target is None or not self._known(facts.target):
            return facts._replace(target=None)
        return self._related(facts, options)

    def _known(self, commit: str) -> bool:
        # Where there is nothing to do, git need not be asked.
        return commit == self.state.head or fetch.known(self.path, commit)

    def _pinned(self, facts: Facts, by: str, commit: str) -> Facts:
        if not _is_commit(commit):
            return facts._replace(pin_problem=f"no pin: {commit}")
        remote = self.choice.official or ""
        if self._online and not fetch.known(self.path, commit):
            try:
                fetch.get_commit(self.path, remote, commit, self.settings)
            except network.Unreachable as error:
                problem = f"{by} pins {commit[:10]}, which cannot be fetched: {error.problem}"
                return facts._replace(pin_problem=problem)
        name = f"{commit[:10]}, pinned by {by}"
        return facts._replace(target=commit, target_name=name, pinned=by)

    def _related(self, facts: Facts, options: Options) -> Facts:
        path, state, target = self.path, self.state, facts.target or ""
        facts = facts._replace(head=look.relation(path, state.head or "", target))
        default = state.branches.get(self.tip.branch or "")
        if default is not None and state.branch != self.tip.branch:
            facts = facts._replace(default=look.relation(path, default, target))
        facts = facts._replace(rewritten=self._rewritten(facts, default))
        if not facts.head.behind:
            return facts
        moves = state.branch == self.tip.branch or options.bring is not None
        if not moves or state.branch is None:
            return facts
        return self._hindered(facts)

    def _rewritten(self, facts: Facts, default: str | None) -> bool:
        """Whether a local branch holds commits that the upstream had once and has no more."""
        tracking, tip = self.tracking, self.tip.commit or ""
        pairs = [(self.state.head, facts.head), (default, facts.default)]
        for local, relation in pairs:
            if local is None or relation is None or not (relation.ahead and relation.behind):
                continue
            fork_point = git.run(self.path, "merge-base", "--fork-point", tracking, local)
            for old in (self.before, fork_point.out.strip()):
                base = git.run(self.path, "merge-base", local, old).out.strip() if old else ""
                if base and look.relation(self.path, base, tip).ahead:
                    return True
        return False

    def _hindered(self, facts: Facts) -> Facts:
        """With what would be overwritten, or cannot follow."""
        state, target = self.state, facts.target or ""
        head = state.head or ""
        blocked = in_the_way.find(self.path, head, target, state.ignore_case)
        below = submodules.hindrances(self.path, head, target)
        local = state.local._replace(submodules=(*state.local.submodules, *below))
        return facts._replace(blocked=blocked, state=state._replace(local=local))

    def reconsider(self) -> None:
        """Looks again: between looking and acting the user may have gone on working."""
        tip, before = self.tip, self.before
        self.look()
        self.tip, self.before = tip, before


def _with_resume(state: RepoState) -> RepoState:
    """With the commit from which submodules follow, where an interrupted run left them behind."""
    if not backup.runs(state.git_dir):
        return state
    behind = [name for name, _ in state.local.submodules]
    resume = submodules.waiting(state.path, state.head or "", state.git_dir, behind)
    if resume is None:
        return state
    return state._replace(resume=resume, local=state.local._replace(submodules=()))


def _is_commit(text: str) -> bool:
    return 7 <= len(text) <= 40 and all(letter in "0123456789abcdef" for letter in text)


def read_pin(path: Path, commit: str, file: str) -> str:
    """What a file of a commit pins: its first line that is no comment; or why there is none."""
    result = git.run(path, "cat-file", "blob", f"{commit}:{file}")
    if result.code != 0:
        return f"{path.name} has no {file}"
    lines = [line.partition("#")[0].strip() for line in result.out.splitlines()]
    named = [line for line in lines if line]
    if named and _is_commit(named[0]):
        return named[0]
    return f"{file} of {path.name} names no commit"
