#!/bin/busybox sh
# Runs inside the virtual machine of tests/vm/contaminated, as its first process: ten runs of one load, beside which a job is started in the
# sixth. record and compare have to name that run, and the job, and no other run.
/bin/busybox --install -s /bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /tmp
mount -t tracefs t /sys/kernel/tracing
export PATH=/bin HOME=/tmp
: >/tmp/empty; mount --bind /tmp/empty /proc/kallsyms
cd /tmp
echo "kernel $(uname -r)"
check() {
  name=$1; shift
  if "$@" >check.log 2>&1; then echo "PASS $name"; else echo "FAIL $name"; sed 's/^/  /' check.log; fi
}

# A task has the name of the script that it executes.
printf '#!/bin/sh\ni=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done\n' >nightly
chmod +x nightly
# Once five runs are there, the job starts as soon as the next one is being recorded.
(
  while [ "$(ls runs/*.dat 2>/dev/null | wc -l)" -lt 5 ]; do sleep 0.5; done
  until [ "$(cat /sys/kernel/tracing/instances/schedviz_[0-9]*/tracing_on 2>/dev/null)" = 1 ]; do sleep 0.1; done
  ./nightly
) &
LOAD='j=0; while [ $j -lt 6 ]; do (i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done) & j=$((j + 1)); done; wait'
schedviz record --runs 10 --variant load= -o runs -- sh -c "$LOAD" >run.log 2>&1 || { echo "FAIL record"; sed 's/^/  /' run.log; }
sed 's/^/  record: /' run.log
# The work outside of the application in each run, as compare has it: the runs in two halves.
schedviz compare --base runs/load.[1-5].dat --new runs/load.[6-9].dat runs/load.10.dat >compare.log 2>&1
sed 's/^/  compare: /' compare.log
schedviz compare --base runs/load.[1-5].dat --new runs/load.[6-9].dat runs/load.10.dat --exclude-contaminated >excluded.log 2>&1
head -12 excluded.log | sed 's/^/  excluded: /'
check "record names the job" grep -q nightly run.log
check "record names no other run" [ "$(grep -c 'load\.[0-9]*\.dat' run.log)" -le 1 ]
check "compare names the job" grep -q nightly compare.log
echo ALL DONE
poweroff -f
