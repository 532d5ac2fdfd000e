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

# A task has the name of the script that it executes. The job waits without any CPU time until the load of the sixth run begins.
printf '#!/bin/sh\ni=0; while [ $i -lt 8000 ]; do i=$((i + 1)); done\n' >nightly
chmod +x nightly
mkfifo begin
echo 0 >runs.made
(read -r _ <begin; exec ./nightly) &
LOAD='n=$(($(cat runs.made) + 1)); echo $n >runs.made; [ $n = 6 ] && echo >begin
j=0; while [ $j -lt 6 ]; do (i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done) & j=$((j + 1)); done; wait'
schedviz record --runs 10 --variant load= -o runs -- sh -c "$LOAD" >run.log 2>&1 || { echo "FAIL record"; sed 's/^/  /' run.log; }
sed 's/^/  record: /' run.log
# The work outside of the application in each run, as compare has it: the runs in two halves.
schedviz compare --base runs/load.[1-5].dat --new runs/load.[6-9].dat runs/load.10.dat >compare.log 2>&1
sed 's/^/  compare: /' compare.log
schedviz compare --base runs/load.[1-5].dat --new runs/load.[6-9].dat runs/load.10.dat --exclude-contaminated >excluded.log 2>&1
head -12 excluded.log | sed 's/^/  excluded: /'
check "record names the job" grep -q nightly run.log
check "record names one run" [ "$(grep -c 'is contaminated' run.log)" = 1 ]
check "compare names the job" grep -q nightly compare.log
echo ALL DONE
poweroff -f
