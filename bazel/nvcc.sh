#!/bin/bash
# Runs nvcc for one source and looks at what it has read.
#
#   nvcc.sh OBJECT UNUSED DECLARED SYSTEM NVCC ARGUMENT...
#
#   OBJECT    to be written
#   UNUSED    to be written: the lines of DECLARED that the compiler did not read
#   DECLARED  a file with the paths of all headers that the target may include, one a line
#   SYSTEM    folders of the host compiler's own headers, separated by colons
#   NVCC      the compiler, then its arguments but for the output
#
# A header that was read and not declared is an error: nothing would be compiled again when it changes.
set -euo pipefail
object=$1 unused=$2 declared=$3 system=$4
shift 4

# Temporary files have names with the number of a process in them, and some of these get into the object; kept ones
# are named after the source.
kept=$object.kept
rm -rf "$kept"
mkdir -p "$kept"
trap 'rm -rf "$kept"' EXIT

"$@" -MD -MF "$kept/dependencies" --keep --keep-dir "$kept" -o "$object"

declare -A known used
while IFS= read -r file; do
  known[$file]=1
done <"$declared"

# The rule "object : file file \" in words, without the name of the object; "bin/../include" is "include".
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
