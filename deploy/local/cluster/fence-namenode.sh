#!/bin/sh
# Fences a NameNode of a local cluster: kills it by its pid file, and exits with 0 only when it is
# proven to be gone.  Called by the ZKFC that takes over, through shell(...), which names the
# victim in the environment.
set -u
id=${target_namenodeid:?'names the NameNode to be fenced; set by the caller'}
pid_file=$(dirname "$0")/../pids/$id.pid

# Whether that process is still the NameNode which we were told to fence.  A process that has ended
# but was not yet waited for has an empty command line; a foreign process with a reused pid has
# another one.
is_victim() {
    tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | awk -v wanted="dfs.ha.namenode.id=$id" '
        $0 == "namenode" { role = 1 }
        $0 == wanted { named = 1 }
        END { exit !(role && named) }'
}

if ! read -r pid <"$pid_file"; then
    echo "cannot fence $id: $pid_file does not tell its pid" >&2
    exit 1
fi
if ! is_victim "$pid"; then
    echo "fenced $id: process $pid has ended already"
    exit 0
fi
kill -KILL "$pid"
tries=0
while is_victim "$pid"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 250 ]; then
        echo "cannot fence $id: process $pid still lives 5 s after SIGKILL" >&2
        exit 1
    fi
    sleep 0.02
done
echo "fenced $id: killed process $pid"
