#!/bin/bash
# A monitor for mmtests: work conservation and run queues while a test runs, one line of JSON per interval (the document
# schedviz/top/2). Install it as monitors/watch-schedviz.sh and ask for it with
#   export MONITORS_GZIP="$MONITORS_GZIP schedviz"
# MonitorSchedviz.pm reads the log.
exec schedviz top --json --interval "${MONITOR_UPDATE_FREQUENCY:-10}s"
