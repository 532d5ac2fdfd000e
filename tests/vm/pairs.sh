#!/bin/busybox sh
# Runs inside the virtual machine of tests/vm/pairs, as its first process: records each load under each setting, round after round, into the
# folder of the host. A setting is SLICE-BALANCING[-steal]: the base slice in microseconds, new-idle balancing off, without NI_RANDOM or with it,
# and STEAL on.
/bin/busybox --install -s /bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /tmp
mount -t tracefs t /sys/kernel/tracing; mount -t debugfs d /sys/kernel/debug
export PATH=/bin HOME=/tmp
while read -r module; do insmod "/modules/$module"; done </modules/order
mkdir /out; mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 out /out || poweroff -f
exec >/out/log 2>&1
S=/sys/kernel/debug/sched
grep ' pv_native_safe_halt$' /proc/kallsyms | cut -d' ' -f1 >/out/halt; sync
while ! [ -e /out/patched ]; do sleep 0.1; done
# The names of a kernel's symbols are most of a trace, and take long to read.
: >/tmp/empty; mount --bind /tmp/empty /proc/kallsyms
pairs prepare 0
echo Y >$S/verbose
domains() { echo $S/domains/cpu*/domain*/max_newidle_lb_cost; }
costs() { for d in $(domains); do echo "$(cat ${d%/*}/name) $(cat $d)"; done; }
# What a search costs while it is done: from zero on, by one unrecorded run of each load. What went before, the machine stood still at times.
for d in $(domains); do echo 0 >$d; done
# program LOAD RUN: the command of a run.
program() { if [ -x /programs/$1 ]; then echo "/programs/$1"; else echo "pairs $1 $2"; fi; }
for load in $LOADS; do pairs short 0; $(program $load 0); done
for d in $(domains); do cat $d >/tmp/cost$(echo $d | tr / -); done
costs >/out/costs
# CFS has no base slice.
request=$S/base_slice_ns; [ -e $request ] || request=$S/min_granularity_ns
default=$(cat $request)
set_up() {
  slice=${1%%-*}; [ $slice = default ] && slice=$default || slice=${slice}000
  echo $slice >$request
  if grep -qw -e STEAL -e NO_STEAL $S/features; then
    case $1 in *-steal) echo STEAL >$S/features ;; *) echo NO_STEAL >$S/features ;; esac
  fi
  case $1 in
    *-off | *-off-*) for d in $(domains); do echo 100000000000 >$d; done ;;
    *) for d in $(domains); do cat /tmp/cost$(echo $d | tr / -) >$d; done ;;
  esac
  case $1 in *-classic | *-classic-*) echo NO_NI_RANDOM >$S/features ;; *) echo NI_RANDOM >$S/features ;; esac
}
# The tasks stolen so far, as the series counts them behind the nine fields that every kernel has.
steals() { awk '/^cpu/ && NF == 17 { n += $16 } END { print n + 0 }' /proc/schedstat; }
cd /tmp; uname -r; cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list
run=1
while [ $run -le $RUNS ]; do
  for load in $LOADS; do
    for setting in $SETTINGS; do
      set_up $setting
      pairs short 0
      before=$(steals)
      schedviz record -q --whatif --buffer 1M -o /tmp/run.dat -- $(program $load $run) || echo "FAIL $setting $load $run"
      for part in dat machine.json; do cp run.$part /out/$setting.$load.$run.$part; done
      rm run.*; echo "$(cut -d' ' -f1 /proc/uptime) $setting $load $run stolen $(($(steals) - before))"
    done
  done
  run=$((run + 1))
done
sync; echo ALL DONE
poweroff -f
