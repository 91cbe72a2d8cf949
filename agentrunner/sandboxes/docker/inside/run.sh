# One command in a box, and the end of all that it leaves behind. The words are the command.
#
# First it waits for a line: what is printed before the engine's client listens may be lost. Then
# it empties what an earlier command left, while nothing else of this user lives, and says so:
# "clean N", N being how many processes the kernel has ended for their memory. Only after that
# line has the command started.
#
# Defined in front of this: `oom_kills`, `home`, and `scratch PLACE ACTION...`, which is find on a scratch place
# without what is mounted there: the repository may be below /tmp.
trap : TERM INT HUP
exec 3>&2 2>/dev/null
read -r _ || exit 1

filled() {
    for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        if [ -e "$entry" ] || [ -L "$entry" ]; then return 0; fi
    done
    return 1
}

state=clean
for place in /tmp /var/tmp "$home" /dev/shm /dev/mqueue; do
    [ -w "$place" ] || case $place in /dev/*) ;; *) state=unwritable ;; esac
    filled "$place" || continue
    scratch "$place" -type d ! -perm -0700 -exec chmod u+rwx {} \;
    scratch "$place" -delete
    left=$(scratch "$place" -print) && [ -z "$left" ] || state=dirty
done
if [ -w /dev ]; then # uid 0 owns it
    for entry in /dev/* /dev/.[!.]*; do
        case ${entry#/dev/} in
        console | core | fd | full | mqueue | null | ptmx | pts | random | shm) ;;
        stdin | stdout | stderr | tty | urandom | zero | '.[!.]*') ;;
        *) state=dirty ;;
        esac
    done
fi
for file in /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg; do
    if [ -r "$file" ]; then
        { read -r _ && read -r _ && state=dirty; } <"$file"
    fi
done

oom_kills
echo "$state $killed"
[ "$state" = clean ] || exit 0
(exec "$@" 2>&3 3>&-)
code=$?
kill -9 -1
exit "$code"
