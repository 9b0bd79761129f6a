#!/usr/bin/env bash
# Compares the requests a second of this server and of Redis. Prints the table of docs/src/serve.md.
#
# Usage: mini-engine/benches/serve.sh [REQUESTS [ROUNDS]]     (defaults: 100000 and 3)
#
# Both run on this machine, one at a time, with the same durability, on files in a temporary directory (TMPDIR chooses the
# disk). Rounds alternate between the two; each figure is the median of the rounds. MSET has ten keys. With `always` the
# clients send a tenth of the requests. PIPELINES and TESTS in the environment replace '1 16 64' and 'set,get,incr,mset'.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

requests=${1:-100000}
rounds=${2:-3}
pipelines=${PIPELINES:-1 16 64}
tests=${TESTS:-set,get,incr,mset}
for tool in redis-server redis-benchmark redis-cli; do
    command -v "$tool" >/dev/null || { echo "expected $tool, found none (Debian: apt-get install redis-server redis-tools)" >&2; exit 2; }
done
cargo build --release --quiet --bin mini-engine
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
directory=$(mktemp -d)
server=
stop() {
    [[ -z $server ]] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
    server=
}
trap 'stop; rm -rf "$directory"' EXIT

# start WHICH MODE PORT: starts the server WHICH with sync mode MODE.
start() {
    rm -rf "$directory/data"
    mkdir "$directory/data"
    if [[ $1 == redis ]]; then
        redis-server --port "$3" --bind 127.0.0.1 --dir "$directory/data" --save '' --appendonly yes --appendfsync "$2" >/dev/null 2>&1 &
    else
        local durability=everysec
        [[ $2 != always ]] || durability=synced
        "$target/release/mini-engine" serve "$directory/data/db" --listen "127.0.0.1:$3" --durability "$durability" 2>/dev/null &
    fi
    server=$!
    until [[ $(redis-cli -p "$3" ping 2>/dev/null) == PONG ]]; do
        kill -0 "$server" || { echo "$1 did not start" >&2; exit 1; }
        sleep 0.1
    done
}

port=16379
for mode in everysec always; do
    count=$requests
    [[ $mode != always ]] || count=$((requests / 10))
    for pipeline in $pipelines; do
        for ((round = 1; round <= rounds; round++)); do
            for which in redis mini-engine; do
                port=$((port + 1))
                start "$which" "$mode" "$port"
                redis-benchmark -p "$port" -t "$tests" -c 50 -P "$pipeline" -n "$count" -r 100000 --csv </dev/null |
                    awk -F'","' -v which="$which" -v mode="$mode" -v pipeline="$pipeline" \
                        'NR > 1 { gsub(/"/, ""); split($0, field, ","); print mode, pipeline, field[1], which, field[2] }' >>"$directory/found"
                stop
            done
        done
    done
done

date -u '+%Y-%m-%d %H:%M UTC'
redis-server --version
echo "$(nproc) cores, 50 clients, $rounds rounds, $requests requests (always: a tenth)"
echo
echo '| appendfsync | pipeline | command | Redis | mini-engine | ratio |'
echo '|---|---|---|---|---|---|'
sort "$directory/found" | sed 's/MSET (10 keys)/MSET/' | awk '
    function median(list, n, i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    { row = $1 " " $2 " " $3; if (!(row in seen)) { seen[row] = 1; rows[++count] = row } values[row, $4] = values[row, $4] " " $5 }
    END {
        for (r = 1; r <= count; r++) {
            row = rows[r]; split(row, name, " ")
            n = split(values[row, "redis"], list, " "); for (i = 1; i <= n; i++) list[i] += 0; redis = median(list, n)
            m = split(values[row, "mini-engine"], other, " "); for (i = 1; i <= m; i++) other[i] += 0; ours = median(other, m)
            printf "| %s | %d | %s | %d | %d | %.2f |\n", name[1], name[2], name[3], redis, ours, ours / redis
        }
    }' | sort -t '|' -k 2,2r -k 3,3n -k 4,4
