#!/bin/bash
# Runs nvcc for one source and checks that the target declares all headers that it includes.
#
#   nvcc.sh OBJECT UNUSED DECLARED SYSTEM NVCC ARGUMENT...
#
#   OBJECT    object file to write
#   UNUSED    file to write: the lines of DECLARED that the compiler did not read
#   DECLARED  file with the paths of all headers that the target may include, one on each line
#   SYSTEM    folders of the host compiler's own headers, separated by colons
#   NVCC      the compiler, followed by its arguments without the output
#
# Including an undeclared header is an error: when it changes, Bazel would not compile the source again.
set -euo pipefail
object=$1 unused=$2 declared=$3 system=$4
shift 4

# nvcc writes the names of some temporary files into the object. They contain a process number, unless nvcc keeps the
# files; then they are named after the source.
kept=$object.kept
rm -rf "$kept"
mkdir -p "$kept"
trap 'rm -rf "$kept"' EXIT

"$@" -MD -MF "$kept/dependencies" --keep --keep-dir "$kept" -o "$object"

declare -A known used
while IFS= read -r file; do
  known[$file]=1
done <"$declared"

# `read` fails at the end of the input, because that has no NUL; the array is complete then.
# Splits the rule "object : file file \" into paths without the object, and shortens "bin/../include" to "include".
read -r -d '' -a files < <(tr -d '\\' <"$kept/dependencies" | sed '1s/^[^:]*://') || true
mapfile -t files < <(realpath --canonicalize-missing --no-symlinks --relative-base=. "${files[@]}")
IFS=: read -r -a folders <<<"$system"
undeclared=()
for file in "${files[@]}"; do
  if [[ -n ${known[$file]:-} ]]; then
    used[$file]=1
    continue
  fi
  inside=
  for folder in "${folders[@]}"; do
    [[ $file == "$folder"/* ]] && inside=1
  done
  [[ -n $inside ]] || undeclared+=("$file")
done
if ((${#undeclared[@]})); then
  rm -f "$object"
  printf 'error: %s is included, but no target in deps has it.\n' "${undeclared[@]}" >&2
  printf 'Add the target that has it to the deps of this library.\n' >&2
  exit 1
fi

while IFS= read -r file; do
  [[ -n ${used[$file]:-} ]] || printf '%s\n' "$file"
done <"$declared" >"$unused"
