#!/bin/sh
# hosts: several hosts on one machine, for tests and benchmarks of training on several machines.
# Needs Linux, root, ip and tc (package iproute2), nsenter and unshare (util-linux).
#
#   hosts.sh up [RATE [COUNT]]   makes COUNT hosts (default 2, at most 8): hosta, hostb, ...
#                                RATE of each cable, both ways, in tc's notation: 1gbit, 100mbit;
#                                default "none": no limit. Exit code 77 and one line: not
#                                permitted here
#   hosts.sh run HOST COMMAND... runs a command on a host
#   hosts.sh rsh HOST TEXT...    the same for a shell's command, as ssh does it: if HOST loses its
#                                power, this call stays for an hour. For Open MPI:
#                                --mca plm_rsh_agent "FOLDER/hosts.sh rsh"
#   hosts.sh link-down HOST      pulls the host's cable
#   hosts.sh link-up HOST        puts it back; a host without power starts again
#   hosts.sh kill HOST           the host loses its power: no packet leaves it, all processes end
#   hosts.sh down                ends all processes on the hosts, and removes the hosts
#
# HOSTS_NAME chooses one of several groups of hosts; default "pumice".
# HOSTS_PRIVATE=FOLDER, an existing folder: for commands that run and rsh start, each host has its
# own, at first empty, contents of that folder. So the hosts share no disk there.
#
# A host is a network namespace and a UTS namespace (which holds the host's name). Cables are veth
# pairs to a bridge in one more namespace. tbf limits the rate at both ends of a cable. Nothing is
# changed in the machine's own network.
set -eu

group=${HOSTS_NAME:-pumice}
state=/run/pumice-hosts/$group
letters='a b c d e f g h'

die()
{
    echo "hosts.sh: $*" >&2
    exit 2
}

refuse()
{
    echo "skipped: hosts on this machine need $*"
    exit 77
}

hosts()
{
    cat "$state/hosts-list"
}

check_host()
{
    [ -e "$state/uts-$1" ] || die "no host '$1'. First run: hosts.sh up"
}

# ---- making --------------------------------------------------------------------------------

check_rights()
{
    [ "$(id -u)" = 0 ] || refuse "root"
    for tool in ip tc nsenter unshare; do
        command -v $tool >/dev/null || refuse "$tool (packages iproute2 and util-linux)"
    done
    if ! ip netns add "$group-try" 2>/dev/null; then
        refuse "permission to make network namespaces"
    fi
    permitted=yes
    unshare --uts --mount true 2>/dev/null || permitted=
    ip -n "$group-try" link add try type veth peer name try2 2>/dev/null &&
        tc -n "$group-try" qdisc add dev try root tbf rate 1gbit burst 256k latency 20ms \
            2>/dev/null || permitted=
    ip netns delete "$group-try"
    [ "$permitted" ] || refuse "permission for mounts, veth and tbf"
}

# Limits what leaves through a device. burst and latency: what a switch's port keeps.
limit()
{
    [ "$rate" = none ] ||
        tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 128k latency 20ms
}

make_host() # NAME NUMBER
{
    echo "$1" >>"$state/hosts-list" # first, so that down removes what is made
    ip netns add "$group-$1"
    ip -n "$group-$1" link set lo up
    ip link add eth0 netns "$group-$1" type veth peer name "$1" netns "$group-net"
    ip -n "$group-$1" address add "10.77.0.$2/24" dev eth0
    ip -n "$group-$1" link set eth0 up
    ip -n "$group-net" link set "$1" master switch up
    limit "$group-$1" eth0
    limit "$group-net" "$1"
    : >"$state/uts-$1"
    unshare --uts="$state/uts-$1" hostname "$1"
    echo "10.77.0.$2 $1" >>"$state/etc-hosts"
}

# A cable needs some milliseconds before it carries packets.
await_cable()
{
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        case $(ip -n "$group-net" -details link show "$1") in
        *LOWER_UP*"state forwarding"*) return 0 ;;
        esac
        sleep 0.05
    done
    die "the cable of $1 carries no packets after a second"
}

up()
{
    rate=${1:-none}
    count=${2:-2}
    check_rights
    down
    mkdir -p "$state"
    echo "127.0.0.1 localhost" >"$state/etc-hosts"
    ip netns add "$group-net"
    ip -n "$group-net" link add switch type bridge
    ip -n "$group-net" link set switch up
    number=0
    for letter in $letters; do
        number=$((number + 1))
        [ $number -gt "$count" ] || make_host "host$letter" $number
    done
    for host in $(hosts); do
        await_cable "$host"
    done
}

# ---- using ---------------------------------------------------------------------------------

# Replaces this process by a command in the host's namespaces. The command has mounts of its own:
# /etc/hosts, and the private folder.
run()
{
    host=$1
    shift
    check_host "$host"
    private=${HOSTS_PRIVATE:-}
    [ -z "$private" ] || mkdir -p "$state/disk-$host$private"
    # The script in quotes is for the inner shell.
    # shellcheck disable=SC2016
    exec nsenter --net="/run/netns/$group-$host" --uts="$state/uts-$host" \
        unshare --mount sh -c 'mount --bind "$1" /etc/hosts
            [ -z "$3" ] || mount --bind "$2" "$3" || exit 125
            cd . && shift 3 && exec "$@"' \
        sh "$state/etc-hosts" "$state/disk-$host$private" "$private" "$@"
}

kill_processes()
{
    for pid in $(ip netns pids "$group-$1"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

down()
{
    [ -d "$state" ] || return 0
    for host in $(hosts 2>/dev/null); do
        kill_processes "$host"
        ip netns delete "$group-$host" 2>/dev/null || true
        umount "$state/uts-$host" 2>/dev/null || true
    done
    ip netns delete "$group-net" 2>/dev/null || true
    rm -rf "$state"
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
up | down) "$command" "$@" ;;
run)
    [ $# -ge 2 ] || die "run HOST COMMAND..."
    run "$@"
    ;;
rsh)
    [ $# -ge 2 ] || die "rsh HOST TEXT..."
    host=$1
    shift
    code=0
    (run "$host" sh -c "$*") || code=$?
    [ ! -e "$state/off-$host" ] || exec sleep 3600
    exit $code
    ;;
link-down | link-up)
    check_host "$1"
    ip -n "$group-$1" link set eth0 "${command#link-}"
    [ "$command" = link-down ] || await_cable "$1"
    rm -f "$state/off-$1"
    ;;
kill)
    check_host "$1"
    : >"$state/off-$1"
    ip -n "$group-$1" link set eth0 down
    kill_processes "$1"
    ;;
*) die "no command '$command'; see the first lines of this file" ;;
esac
