# MonitorSchedviz.pm
#
# Reads the log of monitors/watch-schedviz.sh. The heading is the name of a number in the documents of `schedviz top --json`:
# violation_percent, cpu_time_lost_percent, running or waiting. The default is the time in violation of work conservation.
package MMTests::MonitorSchedviz;
use MMTests::SummariseMonitor;
our @ISA = qw(MMTests::SummariseMonitor);
use strict;

sub new() {
	my $class = shift;
	my $self = {
		_ModuleName	=> "MonitorSchedviz",
		_PlotType	=> "simple",
		_PlotXaxis	=> "Time",
		_PlotYaxis	=> "Percentage in violation",
		_DefaultPlot	=> "violation_percent",
	};
	bless $self, $class;
	return $self;
}

sub extractReport($$$$) {
	my ($self, $reportDir, $testBenchmark, $subHeading, $rowOrientated) = @_;
	my $key = $subHeading || "violation_percent";
	my $first;

	my $input = $self->SUPER::open_log("$reportDir/schedviz-$testBenchmark");
	while (my $line = <$input>) {
		my ($from) = $line =~ /"from_ns":(\d+)/;
		my ($value) = $line =~ /"\Q$key\E":(-?[0-9.]+(?:e-?[0-9]+)?)/;
		next if !defined $from || !defined $value;
		$first = $from if !defined $first;
		$self->addData($key, ($from - $first) / 1e9, $value);
	}
	close($input);
}

1;
