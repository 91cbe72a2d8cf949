# Starts the forwarder of a box's doors, and ends once it listens. $1, $2: its program for Python
# and for Node; the rest: PORT:SOCKET. Exit code 3 where the image can run none.
read -r _ || exit 1
python=$1
node=$2
shift 2
if command -v python3; then
    python3 -I -S -c "$python" "$@" &
elif command -v node; then
    node -e "$node" -- "$@" &
elif command -v socat; then
    for door; do
        socat "TCP-LISTEN:${door%%:*},bind=127.0.0.1,fork,reuseaddr" "UNIX-CONNECT:${door#*:}" &
    done
else
    exit 3
fi >/dev/null 2>&1 </dev/null

listens() {
    wanted=$(printf ':%04X' "$1")
    while read -r _ local _ state _; do
        case $local/$state in *"$wanted/0A") return 0 ;; esac
    done </proc/net/tcp
    return 1
}

left=200
for door; do
    until listens "${door%%:*}"; do
        left=$((left - 1))
        kill -0 $! 2>/dev/null && [ $left -gt 0 ] || exit 1
        sleep 0.05
    done
done
