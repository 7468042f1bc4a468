"""Says what a later snapshot of repositories has lost.

    before = snapshot(folder)
    ...                                     # run what is tested
    for loss in losses(before, snapshot(folder)):
        print(loss)                         # lost file d/x: was an ignored file, is gone

Lost is what a person cannot get back by ordinary commands: a commit or a file content that refs,
HEAD, the index or a stash held and nothing holds now; a reflog entry; local content of a work tree
(changed, untracked, ignored, hidden by a flag of the index) that is no longer there; a deletion
that was taken back; an operation under way, a setting, a hook. Remote-tracking refs may move, and
HEAD and branches may, as long as their old commits are still held by something.

`differences` is stricter: it lists everything that is not as it was, except what git and the tool
write for themselves (reflogs, FETCH_HEAD, refs/update-repos, unreferenced objects).
"""

from collections.abc import Iterable, Iterator

from test.scripts.repos.snapshots import OWN_REFS, STASH, Checkout, Snapshot, Store


def losses(before: Snapshot, after: Snapshot) -> list[str]:
    """What the later snapshot has lost, one sentence each."""
    found = [*_lost_files(before, after), *_lost_objects(before, after)]
    for name, store in before.stores.items():
        now = after.stores.get(name)
        if now is None:
            found.append(f"lost repository: the git folder {name} is gone")
        else:
            found += _lost_in_store(name, store, now, before.addresses)
    for name, checkout in before.checkouts.items():
        if name in after.checkouts:
            found += _lost_in_index(name, checkout, after.checkouts[name])
        elif checkout.staged or checkout.own:
            found.append(f"lost checkout {name}: it is no repository any more")
    return found


def _lost_files(before: Snapshot, after: Snapshot) -> Iterator[str]:
    for name, checkout in before.checkouts.items():
        prefix = "" if name == "." else name + "/"
        for path in sorted(checkout.own):
            was, now = before.files[prefix + path], after.files.get(prefix + path)
            if was != now:
                tracked = "changed" if path in checkout.tree else "untracked or ignored"
                yield f"lost {tracked} file {prefix + path}: was {was}, is {now or 'gone'}"
        for path in sorted(checkout.deleted):
            if prefix + path in after.files and prefix + path not in before.files:
                yield f"lost deletion of {prefix + path}: it is there again"


def _lost_objects(before: Snapshot, after: Snapshot) -> Iterator[str]:
    held, logged, existing = after.held, after.logged, after.existing
    for name in sorted(before.held - held):
        where = "only a reflog has it" if name in logged else "nothing refers to it"
        yield f"lost object {name[:10]}: it was held by a ref, the index or a stash, now {where}"
    for name in sorted(before.logged - before.held - logged):
        yield f"lost object {name[:10]}: it was in a reflog, now nothing refers to it"
    for name in sorted(before.existing - before.logged - existing):
        yield f"lost object {name[:10]}: it existed, though nothing referred to it, and is gone"


def _lost_in_store(name: str, was: Store, now: Store, addresses: frozenset[str]) -> Iterator[str]:
    for ref in sorted(set(was.refs) - set(now.refs)):
        if not ref.startswith((OWN_REFS, "refs/remotes/")):
            yield f"lost ref {ref} of {name}: it is gone"
    stashes, left = was.logs.get(STASH, ()), now.logs.get(STASH, ())
    if [value for value in left if value in stashes] != list(stashes):
        yield f"lost stash of {name}: the list was {_few(stashes)}, is {_few(left)}"
    for log, values in was.logs.items():
        if log.endswith("HEAD") and now.logs.get(log, ())[: len(values)] != values:
            yield f"lost reflog entries of {name}/{log}"
    for file, content in was.state.items():
        if now.state.get(file) != content:
            yield f"lost {name}/{file}: it {'has changed' if file in now.state else 'is gone'}"
    for line in was.config:
        # What .gitmodules gave may follow it: the address, and the place of the work tree.
        copied = line.partition(" url = ")[2] in addresses or line.startswith("[core] worktree")
        if line not in now.config and not copied:
            yield f"lost setting of {name}: {line}"


def _lost_in_index(name: str, was: Checkout, now: Checkout) -> Iterator[str]:
    for key, entry in was.staged.items():
        there = now.index.get(key)
        if was.tree.get(key[0]) == (entry.mode, entry.blob):
            # Nothing but a flag; where the file is not changed the entry may follow HEAD.
            lost = there is not None and there.flag != entry.flag
        else:
            lost = there != entry and entry.mode != "160000"
        if lost:
            yield f"lost index entry {name}/{key[0]}: was {entry}, is {there}"
    paths = {path for path, _ in now.index}
    for path in sorted(was.deleted - {path for path, _ in was.index}):
        if path in paths:
            yield f"lost staged deletion of {name}/{path}"


def _few(names: Iterable[str]) -> str:
    return " ".join(name[:10] for name in names) or "empty"


def differences(before: Snapshot, after: Snapshot, tracking: bool = True) -> list[str]:
    """What is not as it was; `tracking` says whether remote-tracking refs count."""
    found = []
    for name in sorted({*before.files, *after.files}):
        was, now = before.files.get(name), after.files.get(name)
        if (was and was.tracked_as) != (now and now.tracked_as):
            found.append(f"file {name}: was {was or 'absent'}, is {now or 'gone'}")
    for name in sorted({*before.checkouts, *after.checkouts}):
        one, other = before.checkouts.get(name), after.checkouts.get(name)
        if one is None or other is None:
            found.append(f"checkout {name} is {'gone' if one else 'new'}")
            continue
        if one.head != other.head:
            found.append(f"HEAD of {name}: was {one.head}, is {other.head}")
        keys = sorted({*one.index, *other.index})
        changed = [key for key in keys if one.index.get(key) != other.index.get(key)]
        found += [
            f"index of {name}, {key[0]}: was {one.index.get(key)}, is {other.index.get(key)}"
            for key in changed
        ]
    for name in sorted({*before.stores, *after.stores}):
        was_store, now_store = before.stores.get(name), after.stores.get(name)
        if was_store is None and "/modules/" in name:
            # What was cloned for a submodule may stay for the next time.
            continue
        if was_store is None or now_store is None:
            found.append(f"git folder {name} is {'gone' if was_store else 'new'}")
        else:
            found += _differences_of_stores(name, was_store, now_store, tracking)
    return found


def _differences_of_stores(name: str, was: Store, now: Store, tracking: bool) -> Iterator[str]:
    skipped = (OWN_REFS,) if tracking else (OWN_REFS, "refs/remotes/")
    for ref in sorted({*was.refs, *now.refs}):
        if was.refs.get(ref) != now.refs.get(ref) and not ref.startswith(skipped):
            yield f"ref {ref} of {name}: was {was.refs.get(ref)}, is {now.refs.get(ref)}"
    if was.logs.get(STASH) != now.logs.get(STASH):
        yield f"stashes of {name}"
    for file in sorted({*was.state, *now.state}):
        if was.state.get(file) != now.state.get(file):
            yield f"{name}/{file}: {'changed' if file in now.state else 'gone'}"
    if sorted(was.config) != sorted(now.config):
        gone, new = set(was.config) - set(now.config), set(now.config) - set(was.config)
        yield f"settings of {name}: gone {sorted(gone)}, new {sorted(new)}"
