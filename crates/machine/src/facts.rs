//! A machine as facts with names, for the head of a table.

use crate::Machine;
use sched::event::CleanText;

impl Machine {
    /// The facts that measurements depend on, in the order in which a table has them; those that the file lacks are left
    /// out.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let (cpus, scheduler) = (&self.cpus, &self.scheduler);
        let fact = |text: &Option<CleanText>| text.clone().map(String::from);
        let off: Vec<&str> = scheduler.features.iter().filter_map(|name| name.strip_prefix("NO_")).collect();
        let sysctl = |name: &str| scheduler.tunable(name).map(str::to_owned);
        let virtualised = self.virtualised.map(|is| match (is, &self.hypervisor) {
            (true, Some(name)) => format!("yes ({name})"),
            (true, None) => "yes".to_owned(),
            (false, _) => "no".to_owned(),
        });
        let facts = [
            ("processor", fact(&cpus.model)),
            ("CPUs", (!cpus.places.is_empty()).then(|| self.places_in_words().join(", "))),
            ("online", fact(&cpus.online)),
            ("SMT", fact(&cpus.smt)),
            ("isolated", fact(&cpus.isolated)),
            ("nohz_full", fact(&cpus.nohz_full)),
            ("governor", (!cpus.governors.is_empty()).then(|| cpus.governors.join(" and "))),
            ("virtualised", virtualised),
            ("kernel", fact(&self.kernel.release)),
            ("preemption", fact(&self.kernel.preemption)),
            ("base slice", self.base_slice_ms().map(|slice| format!("{slice} ms"))),
            ("features off", (!scheduler.features.is_empty()).then(|| off.join(" "))),
            ("NUMA balancing", sysctl("numa_balancing")),
            ("sched_ext", fact(&scheduler.ext)),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
