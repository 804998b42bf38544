#!/usr/bin/env bash
# Items on shelves, and what they weigh.
set -euo pipefail

LIMIT_KG=1000
STORE_HOME="${STORE_HOME:-$HOME/.store}"

usage() {
  cat <<EOF
store.sh weight          weigh all items on all shelves together
store.sh restock SHELF   order what is missing

The items lie in $STORE_HOME, one folder for each shelf.
EOF
}

# What is heavier than the limit has been refused,
# so that the sum is small.
weight() {
  local total=0 file
  for file in "$STORE_HOME"/*/*.item; do
    total=$((total + $(cut -d' ' -f1 "$file")))
  done
  echo "$total"
}

function restock {
  local shelf="$1" urgent="${2:-no}" offer
  if [ -z "$shelf" ]; then
    echo "say which shelf: store.sh restock SHELF" >&2
    return 2
  fi
  mkdir -p "$STORE_HOME/$shelf"
  offer="$(curl -fsS "https://supplier.example.com/offers?shelf=$shelf&urgent=$urgent" | head -n 1)"
  if [ -z "$offer" ]; then
    echo "nobody sells anything that fits on shelf $shelf" >&2
    return 1
  elif [ "${offer%% *}" -gt "$LIMIT_KG" ]; then
    echo "too heavy to be put on any shelf of this store: $offer" >&2
    return 1
  else
    echo "$offer" > "$STORE_HOME/$shelf/$(date +%s).item"
  fi

  while read -r line; do
    echo "on shelf $shelf there is now: $line"
  done < <(cat "$STORE_HOME/$shelf"/*.item)
}

case "${1:-}" in
  weight)
    weight
    ;;
  restock)
    shift
    restock "$@"
    ;;
  *)
    usage
    exit 2
    ;;
esac
