//! A machine as facts with names, for the head of a table.

use crate::Machine;

impl Machine {
    /// The facts that measurements depend on, in the order in which a table has them; those that the file lacks are left
    /// out.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let (cpus, scheduler) = (&self.cpus, &self.scheduler);
        let off: Vec<&str> = scheduler.features.iter().filter_map(|name| name.strip_prefix("NO_")).collect();
        let sysctl = |name: &str| scheduler.tunable(name).map(str::to_owned);
        let virtualised = self.virtualised.map(|is| match (is, &self.hypervisor) {
            (true, Some(name)) => format!("yes ({name})"),
            (true, None) => "yes".to_owned(),
            (false, _) => "no".to_owned(),
        });
        let facts = [
            ("processor", cpus.model.clone()),
            ("CPUs", (!cpus.places.is_empty()).then(|| self.places_in_words().join(", "))),
            ("online", cpus.online.clone()),
            ("SMT", cpus.smt.clone()),
            ("isolated", cpus.isolated.clone()),
            ("nohz_full", cpus.nohz_full.clone()),
            ("governor", (!cpus.governors.is_empty()).then(|| cpus.governors.join(" and "))),
            ("virtualised", virtualised),
            ("kernel", self.kernel.release.clone()),
            ("preemption", self.kernel.preemption.clone()),
            ("base slice", self.base_slice_ms().map(|slice| format!("{slice} ms"))),
            ("features off", (!scheduler.features.is_empty()).then(|| off.join(" "))),
            ("NUMA balancing", sysctl("numa_balancing")),
            ("sched_ext", scheduler.ext.clone()),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
