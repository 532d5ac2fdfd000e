//! Specifications that come with the program. Each is a file in `views/`, to be copied and changed.

/// A specification that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The name by which `plot` finds it.
    pub name: &'static str,
    /// The source of the specification, as TOML.
    pub source: &'static str,
}

macro_rules! views {
    ($($name:literal),* $(,)?) => {
        /// All specifications that come with the program, by name.
        pub const VIEWS: &[View] = &[
            $(View { name: $name, source: include_str!(concat!("../views/", $name, ".toml")) }),*
        ];
    };
}

views!("balancer", "block", "irq", "locks", "markers", "osnoise", "power", "syscalls", "timers", "workqueues",);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, explain};

    #[test]
    fn all_views_are_specifications_that_explain_themselves() {
        assert!(VIEWS.is_sorted_by_key(|view| view.name));
        for View { name, source } in VIEWS {
            let spec = Spec::parse(source).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(spec.title.is_some() && spec.about.is_some() && spec.record.is_some(), "{name}");
            assert!(explain(&spec).lines().count() >= 3, "{name}");
        }
    }
}
