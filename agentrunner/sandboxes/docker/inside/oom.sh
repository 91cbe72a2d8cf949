# Sets `killed` to how many processes of this box the kernel has ended for their memory.
oom_kills() {
    killed=0
    for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$file" ] || continue
        while read -r name count; do
            if [ "$name" = oom_kill ]; then killed=$count; fi
        done <"$file"
    done
}
