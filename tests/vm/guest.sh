#!/bin/busybox sh
# Runs inside the virtual machine of tests/vm/run, as its first process: records, and checks each recording.
/bin/busybox --install -s /bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /tmp
mount -t tracefs t /sys/kernel/tracing; mount -t debugfs d /sys/kernel/debug
export PATH=/bin HOME=/tmp
T=/sys/kernel/tracing
# The program records without trace-cmd, which is here to compare.
mkdir /tools; mv /bin/trace-cmd /tools/; TRACE_CMD=/tools/trace-cmd
# The names of a kernel's symbols are most of a trace, and take long to read under emulation.
: >/tmp/empty; mount --bind /tmp/empty /proc/kallsyms
cd /tmp
echo "kernel $(uname -r)"

# check NAME COMMAND...: one check; what it printed is shown if it fails.
check() {
  name=$1; shift
  if "$@" >check.log 2>&1; then echo "PASS $name"; else echo "FAIL $name"; sed 's/^/  /' check.log; [ -f run.log ] && sed 's/^/  run: /' run.log; fi
}
# record STATUS ARGUMENTS...: records, and expects this exit status.
record() {
  expected=$1; shift
  schedviz record "$@" >run.log 2>&1
  status=$?
  [ $status = "$expected" ] || { echo "exit status $status, not $expected"; return 1; }
}
untouched() {
  ls $T/instances; cat $T/dynamic_events $T/instances/other/set_event
  [ "$(ls $T/instances)" = other ] && [ -z "$(cat $T/dynamic_events)" ] && [ "$(cat $T/instances/other/set_event)" = irq:irq_handler_entry ] &&
    [ "$(cat $T/tracing_on)" = 1 ] && [ -z "$(cat $T/set_event)" ]
}
await_recording() {
  i=0
  while [ $i -lt 150 ] && ! [ "$(cat $T/instances/schedviz_[0-9]*/tracing_on 2>/dev/null)" = 1 ]; do sleep 0.2; i=$((i + 1)); done
}
printed() { grep -q -- "$1" run.log; }
# events FILE NAME: the number of events of this name in a file, as trace-cmd prints them.
events() { $TRACE_CMD report "$1" 2>/dev/null | grep -c " $2:"; }

# The instance of another tracer, which has to stay as it is.
mkdir $T/instances/other
echo 1 >$T/instances/other/events/irq/irq_handler_entry/enable

LOAD='i=0; while [ $i -lt 8 ]; do dd if=/dev/zero of=/dev/null bs=64k count=400 2>/dev/null & i=$((i + 1)); done; wait'
check "a load with --why" record 0 --why -o why.dat -- sh -c "$LOAD"
sed 's/^/  /' run.log
check "all is recorded" printed "recorded .* events on 4 CPUs"
check "trace-cmd opens it" [ "$(events why.dat sched_switch)" -gt 16 ]
check "the balancer's events are in it" [ "$(events why.dat load_balance)" -gt 0 ]
check "the machine is beside it" grep -q '"nodes"' why.machine.json
schedviz workcons why.dat --forked >workcons.log 2>&1
check "the traced command is found" grep -q 'waiting tasks of the application' workcons.log
check "nothing is left" untouched

# Three tasks that are bound to CPU 1, to CPUs 2 and 3 a second later, and to none after another one.
cat >rebound.sh <<'SCRIPT'
pids=
for i in 1 2 3; do taskset 2 sh -c 'while :; do :; done' & pids="$pids $!"; done
sleep 1; for pid in $pids; do taskset -p c $pid; done
sleep 1; for pid in $pids; do taskset -p f $pid; done
sleep 0.2; kill $pids; echo $pids >pids
SCRIPT
# masks PID: the first bytes of the sets of CPUs that the records of a task show, in order of time. The report of trace-cmd 3.1.6
# prints elements of arrays as zero, but for -R.
masks() { $TRACE_CMD report -R rebound.dat 2>/dev/null | sed -n "s/.* set_affinity: .* pid=$1 .*mask=ARRAY\[\([0-9a-f]*\)[],].*/\1/p" | tr '\n' ' '; }
bound_and_rebound() {
  for pid in $(cat pids); do
    echo "$pid: $(masks $pid)"
    [ "$(masks $pid)" = "02 0c 0f " ] || return 1
  done
}
# violated LIMIT WAITERS: whether the violation by these waiters is above a percentage.
violated() { schedviz workcons rebound.dat --max-violation $1 --waiters $2; [ $? = 2 ]; }
check "the picks of the fair class" record 0 --why=picks -o picks.dat -- sh -c "chrt --batch 0 true; $LOAD"
sed 's/^/  /' run.log
check "a change of the policy is recorded" [ "$(events picks.dat set_params)" -gt 0 ]
# Kernels before 6.6 have no such numbers.
has_picks() {
  case $(uname -r) in
    6.1.*) printed "probe pick .*missing" ;;
    *) printed "probe pick .*[1-9][0-9]* records" && [ "$(events picks.dat pick)" -gt 16 ] ;;
  esac
}
check "the numbers of both tasks of a switch are recorded" has_picks
check "requests are followed" sh -c "schedviz preemptions picks.dat >run.log 2>&1"
sed 's/^/  /' run.log
check "picks are explained" sh -c "schedviz picks picks.dat >run.log 2>&1"
sed 's/^/  /' run.log
check "a load that is bound meanwhile" record 0 --why -o rebound.dat -- sh rebound.sh
check "each change of the CPUs is recorded" bound_and_rebound
check "tasks wait while CPUs idle" violated 40 all
check "these tasks may not use the idle CPUs" sh -c "schedviz workcons rebound.dat --max-violation 30 --waiters movable"
rm rebound.machine.json
check "the records alone show that" sh -c "schedviz workcons rebound.dat --max-violation 30 --waiters movable"
check "a pinned load" record 0 -o pinned.dat -- taskset 1 sh -c "$LOAD"
# Another program than that of chrt, which is busybox here as the shell is: a reading between the two would find two policies of one program.
check "a command of SCHED_IDLE without --why" record 0 -o idle.dat -- chrt --idle 0 schedviz report why.dat -q -o idle-report
check "its policy is known" sh -c "schedviz fairness idle.dat --by params | grep -q '^SCHED_IDLE '"
check "interrupts and clocks" record 0 --irq --frequency -C mono -o irq.dat -- sh -c 'exit 7'
check "the command's status" printed "exit status: 7"
clock_of() { schedviz info $1 | grep -q "^clock *$2,"; }
check "the clock has its name" clock_of irq.dat mono
not_replaced() { record 1 -o irq.dat -- slep && printed "cannot run slep" && clock_of irq.dat mono; }
check "a command that cannot run replaces nothing" not_replaced

# The kernel's own buffer is another tracer's.
echo 1 >$T/events/sched/sched_switch/enable
own_buffer() { record 0 -o own.dat -- sh -c 'sleep 0.5' && [ "$(cat $T/tracing_on)" = 1 ] && [ "$(cat $T/set_event)" = sched:sched_switch ] && grep -q sched_switch: $T/trace; }
check "the kernel's own buffer stays in use" own_buffer
echo 0 >$T/events/sched/sched_switch/enable; : >$T/trace

# Another program's probe in a group called lb.
echo 'p:lb/idle schedule' >>$T/dynamic_events
beside_lb() { record 0 --why -o beside.dat -- sleep 0.2 && record 0 --clean && grep -q '^p:lb/idle schedule' $T/dynamic_events; }
check "a group lb of another program stays" beside_lb
echo '-:lb/idle' >>$T/dynamic_events
MANY='i=0; while [ $i -lt 200 ]; do echo x | cat >/dev/null; i=$((i + 1)); done'
check "a loss" record 3 -b 8 -o lossy.dat -- sh -c "$MANY"
check "the loss is printed" printed "LOST: "
check "top" sh -c "(sleep 0.5; $LOAD) & schedviz top --count 3 --interval 700ms --text >run.log 2>&1"
check "top counts migrations" printed "migrations/s"
check "top shows its own share" printed "schedviz itself"
check "top shows queues" printed "waiting tasks"
# Four tasks on CPU 1: no other CPU may run them. They are there before the first interval and until the last one has ended.
field() { sed -n "$1s/.*\"$2\":\([0-9.][0-9.]*\).*/\1/p" top.json; }
bound() {
  pids=; for i in 1 2 3 4; do taskset 2 sh -c 'while :; do :; done' & pids="$pids $!"; done; sleep 1
  schedviz top --count 3 --interval 1s --json >top.json 2>run.log
  kill $pids; wait $pids 2>/dev/null
  cat top.json
  [ "$(field 3 cpus)" = 4 ] && awk -v v="$(field 3 violation_percent)" -v w="$(field 3 waiting)" 'BEGIN { exit !(v < 30 && w > 1) }'
}
check "bound tasks are no violation for top" bound
echo "  bound: violation $(field 3 violation_percent) %, unknown $(field 3 unknown_percent) %, own $(field 3 own_percent) %"
quiet() {
  schedviz top --count 3 --interval 1s --json >top.json 2>run.log
  cat top.json
  [ "$(field 3 cpus)" = 4 ] && awk -v e="$(field 3 events)" -v o="$(field 3 own_events)" 'BEGIN { exit !(e + o < 3000) }'
}
check "top is quiet on an idle machine" quiet
echo "  idle: $(field 3 events) events of others, $(field 3 own_events) of its own, $(field 3 own_percent) % of a CPU, unknown $(field 3 unknown_percent) %"
beside_top() {
  schedviz top --count 3 --interval 1s --text >top.log 2>&1 & sleep 1
  record 0 -o beside.dat -- sleep 0.3 && printed "as well: its cost is in this recording" && record 0 --clean && wait $! && grep -q 'migrations/s' top.log
}
check "a recording beside top" beside_top
check "nothing is left after top" untouched
check "a flight recorder" record 0 --until 'waiting>0/1s' -o until.dat -- sh -c "$LOAD; sleep 2"
check "it says what it saved" printed "saved the last"
check "the command was read until then" grep -q '"running"' until.machine.json
check "trace-cmd opens what it saved" [ "$(events until.dat sched_switch)" -gt 16 ]
check "a limit that is not exceeded" record 3 --until 'violation>101%/300ms' -o never.dat -- sleep 1
check "nothing is saved then" [ ! -e never.dat ]
check "nothing is left after --until" untouched
# A CPU that is offline when the instances are made.
echo 0 >/sys/devices/system/cpu/cpu3/online
check "a stream with an offline CPU" record 0 --stream -o offline.dat -- sh -c "$LOAD"
check "trace-cmd opens it too" [ "$(events offline.dat sched_switch)" -gt 16 ]
check "a recording with an offline CPU" record 0 -o offline.dat -- sh -c "$LOAD"
check "a flight recorder with an offline CPU" record 0 --until 'waiting>0/1s' -o offline.dat -- sh -c "$LOAD; $LOAD"
check "top with an offline CPU" sh -c "schedviz top --count 2 --interval 500ms --text >run.log 2>&1"
echo 1 >/sys/devices/system/cpu/cpu3/online
check "nothing is left with an offline CPU" untouched
check "a stream" record 0 --stream --irq -o stream.dat -- sh -c "$LOAD; $LOAD"
check "trace-cmd opens a stream" [ "$(events stream.dat sched_switch)" -gt 16 ]
check "nothing is left after --stream" untouched
check "a dry run" record 0 --dry-run --time 60 -- sh -c "$LOAD; $LOAD; $LOAD"
few() { schedviz record --dry-run --time 60 -- sleep 5 >run.log 2>&1 && awk '$1 == "all" { gsub(",", "", $2); n = $2 + 0 } END { exit !(n > 0 && n < 5000) }' run.log; }
check "a dry run counts no markers of its own" few
sed -n 's/^ *all/  dry run of an idle machine: all/p' run.log
check "stacks" record 0 --stacks -o stacks.dat -- sh -c "$LOAD; $MANY"
check "trace-cmd opens them" [ "$(events stacks.dat kernel_stack)" -gt 16 ]
schedviz offcpu stacks.dat --by both >offcpu.log 2>&1
check "switches have stacks" sh -c "tr -s '\n ' ' ' <offcpu.log | grep -q ' [1-9][0-9]* of [0-9]* switches have a stack'"
sed -n '1,2s/^/  /p' offcpu.log
check "a dry run with stacks" sh -c 'schedviz record --dry-run --stacks -- sleep 5 >run.log 2>&1 && grep -q "costs about [0-9]* ns with its stack" run.log'
sed -n 's/^ *a switch or wakeup/  a switch or wakeup/p' run.log
check "nothing is left after stacks" untouched
check "runs" record 0 --runs 2 --variant a= --variant b= --untraced 1 -o runs -- sh -c 'sleep 0.1'
check "runs are listed" [ "$(grep -c '"variant"' runs/runs.json)" = 6 ]

# Bandwidth control: three soakers in a cgroup below one that may use 20 of every 50 ms. One of them runs before the recording,
# the others are forked in the cgroup meanwhile; a soaker outside shares CPU 0 with one of them.
G=/sys/fs/cgroup/limited
mkdir -p /sys/fs/cgroup; mount -t cgroup2 c /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; mkdir $G
echo +cpu >$G/cgroup.subtree_control; mkdir $G/inner; echo 20000 50000 >$G/cpu.max
echo 'while :; do :; done' >soak.sh
echo 'echo $$ >/sys/fs/cgroup/limited/inner/cgroup.procs
taskset $1 sh soak.sh & trap "kill $!; exit" TERM; wait' >inside.sh
echo 'taskset 1 sh soak.sh & a=$!
sh inside.sh 1 & b=$!
sh inside.sh 4 & c=$!
sleep 2; kill $a $b $c; sleep 0.2' >throttled.sh
sh inside.sh 2 & early=$!
sleep 1
check "throttling" record 0 --why -o throttled.dat -- sh throttled.sh
check "the kernel takes the probes on it" printed "probe throttle .*throttling by cpu.max"
check "the same without probes" record 0 -o waiting.dat -- sh throttled.sh
kill $early
schedviz workcons throttled.dat --waiters all --json >throttled.json 2>run.log
schedviz workcons waiting.dat --waiters all --json >waiting.json 2>run.log
schedviz workcons throttled.dat --waiters all >run.log 2>&1
# The violation in percent of the time; the throttled time of tasks; that of the cgroup by the kernel, in ns.
violation() { awk -F': ' '/"violation": [{]/ { found = 1 } found && /"percent"/ { print $2 + 0; exit }' "$1"; }
by_state=$(awk -F': ' '/"throttled_task_ns"/ { print $2 + 0 }' throttled.json)
by_kernel=$(awk -F': ' '/"throttled_usec"/ { at[++n] = $2 + 0 } END { printf "%.0f", 1000 * (at[2] - at[1]) }' throttled.machine.json)
echo "  throttled: $by_state ns by the state, $by_kernel ns by the kernel; violation $(violation throttled.json) %, $(violation waiting.json) % if throttled tasks count as waiting"
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(b > 0 && a > 0.8 * b && a < 1.5 * b) }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b / 2) }'; }
check "the throttled time is that of cpu.stat" near "$by_state" "$by_kernel"
check "throttled tasks do not wait" less "$(violation throttled.json)" "$(violation waiting.json)"
# The kernel does not record an end of throttling in an interrupt that arrives within another probe's handler, which is rare: then a throttled
# task seems to run, and the recording has to tell of the hit.
told() { ! grep -q unseen-unthrottle throttled.json || { grep -q '"unthrottle": [1-9]' throttled.machine.json && grep -q missed-probes throttled.json; }; }
check "no throttled task ran, or the hit that shows why is counted as missed" told
sed -n '/"missed_probes"/,/}/s/^/  /p' throttled.machine.json

# Four cgroups that are made meanwhile: weights 100 and 200, a limit of CPU time, and a limit with a burst. Two tasks in each.
cat >four.sh <<'SCRIPT'
C=/sys/fs/cgroup
for g in w100 w200 max burst; do mkdir $C/$g; done
echo 200 >$C/w200/cpu.weight
echo 20000 50000 >$C/max/cpu.max
echo 20000 50000 >$C/burst/cpu.max; echo 20000 >$C/burst/cpu.max.burst
pids=
for g in w100 w100 w200 w200 max max burst burst; do
  sh -c "echo \$\$ >$C/$g/cgroup.procs; exec sh soak.sh" & pids="$pids $!"
done
sleep 1.5; kill $pids; wait; sleep 0.1
SCRIPT
check "four cgroups" record 0 -o four.dat -- sh four.sh
schedviz neighbours four.dat --by cgroup >four.log 2>&1
sed -n '/^pressure/,$s/^/  /p' four.log
schedviz neighbours four.dat --by cgroup --json >four.json 2>run.log
cp four.log run.log
check "their cgroups are recorded" sh -c 'for g in w100 w200 max burst; do grep -q "^/$g " four.log || exit 1; done'
# Between the instants of the kernel's own sums and those of the events the emulation stops a CPU for milliseconds, behind an interrupt that it
# sends or on a busy machine: under load up to 5 % of the pressure and 6 % of the CPU time were seen.
pressed() {
  awk -F': ' -v wider="$(sed -n 's/.*"kernel_wider_ns": \([0-9]*\).*/\1/p' four.json)" '
    function away(kernel, least, most) { return least - kernel > (least / 10 > 2e7 ? least / 10 : 2e7) || kernel - most - wider > (most / 10 > 2e7 ? most / 10 : 2e7) }
    { v = $2 + 0 } /"some_least_ns"/ { least = v } /"some_most_ns"/ { most = v } /"full_least_ns"/ { fleast = v } /"full_most_ns"/ { fmost = v }
    /"kernel_some_ns": [0-9]/ { n++; if (away(v, least, most)) { print "some", v, least, most; bad++ } }
    /"kernel_full_ns": [0-9]/ { if (away(v, fleast, fmost)) { print "full", v, fleast, fmost; bad++ } }
    END { print n, "groups"; exit !(n >= 5 && !bad) }' four.json
}
check "the pressure is near the kernel's" pressed
used() { awk -F': ' '/"run_ns"/ { run = $2 + 0 } /"kernel_run_ns"/ && $2 + 0 > 1e8 { n++; d = $2 - run; if (d < 0) d = -d; if (d > 0.1 * $2 + 2e7) bad++ } END { exit !(n >= 4 && !bad) }' four.json; }
check "the CPU time is that of cpu.stat" used
rmdir /sys/fs/cgroup/w100 /sys/fs/cgroup/w200 /sys/fs/cgroup/max /sys/fs/cgroup/burst 2>/dev/null

schedviz record --why -o term.dat -- sleep 100 >run.log 2>&1 & pid=$!
await_recording
kill -TERM $pid; wait $pid; status=$?
check "SIGTERM" [ $status = 143 ]
check "the recording is saved" [ -s term.dat ]
check "nothing is left after SIGTERM" untouched

schedviz record --why -o live.dat -- sleep 3 >live.log 2>&1 & pid=$!
await_recording
left_alone() { record 0 --clean && printed "nothing to remove" && printed "left alone" && wait $pid && [ -s live.dat ]; }
check "a running recording is not cleaned" left_alone

schedviz record --why -o kill.dat -- sleep 1 >run.log 2>&1 & pid=$!
await_recording
kill -KILL $pid; wait $pid 2>/dev/null; sleep 1
check "a killed recording is in the way" record 1 -o again.dat -- true
check "its rest is removed" record 0 --clean
check "nothing is left after --clean" untouched

chmod 777 /tmp
check "no rights" su nobody -c 'schedviz record -o /tmp/nobody.dat -- true >/tmp/nobody.log 2>&1; [ $? = 1 ]'
cp nobody.log run.log
check "the right is named" printed "no permission to "
check "nothing is changed" untouched

echo 0 >/sys/kernel/debug/kprobes/enabled
switched_off() { record 1 --why -o off.dat -- true && printed "kprobes are switched off" && [ ! -e off.dat ]; }
check "kprobes that are switched off" switched_off
echo 1 >/sys/kernel/debug/kprobes/enabled
# Probes at the entry of functions need it: those that are taken do not fire then.
echo 0 >/proc/sys/kernel/ftrace_enabled
check "probes that do not fire" record 0 --why -o silent.dat -- sleep 0.5
grep MISSING run.log | sed 's/^/  /'
echo 1 >/proc/sys/kernel/ftrace_enabled

# The last check: it cannot be taken back.
mount -t securityfs s /sys/kernel/security
if [ -f /sys/kernel/security/lockdown ]; then
  echo confidentiality >/sys/kernel/security/lockdown
  locked() { record 1 -o locked.dat -- true && [ "$(grep -c 'locked down' run.log)" = 1 ] && ! printed "run this as root"; }
  check "a lockdown is named" locked
fi
echo "ALL DONE"
poweroff -f
