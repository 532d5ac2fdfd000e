//! The places on the time axis of what puts the numbers in doubt: losses and contradictions.

use crate::columns::coding::{DAMAGED, In, Out, Unusable};
use sched::{Cpu, EventIssue, Ts};
use std::io::{self, Read, Write};

/// The maximum number of places of a kind.
const MOST: usize = 200;

/// The first places of each kind of finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    list: Vec<(EventIssue, Vec<(Ts, Cpu)>)>,
}

impl Doubts {
    /// Notes a place, unless there are many of its kind.
    pub(crate) fn add(&mut self, issue: EventIssue, ts: Ts, cpu: Cpu) {
        let at = self.list.iter().position(|(other, _)| *other == issue).unwrap_or_else(|| {
            self.list.push((issue, Vec::new()));
            self.list.len() - 1
        });
        if let Some((_, places)) = self.list.get_mut(at).filter(|(_, places)| places.len() < MOST) {
            places.push((ts, cpu));
        }
    }

    /// Adds the places of a later piece of a pass.
    pub(crate) fn join(&mut self, later: Doubts) {
        for (issue, places) in later.list {
            places.into_iter().for_each(|(ts, cpu)| self.add(issue, ts, cpu));
        }
    }

    /// The places of a kind, in order of time.
    pub(crate) fn of(&self, issue: EventIssue) -> &[(Ts, Cpu)] {
        self.list.iter().find(|(other, _)| *other == issue).map_or(&[], |(_, places)| places.as_slice())
    }

    pub(crate) fn write(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        for issue in EventIssue::ALL {
            let places = self.of(*issue);
            out.number(places.len() as u64)?;
            for (ts, cpu) in places {
                out.signed(ts.0)?;
                out.number(cpu.0.into())?;
            }
        }
        Ok(())
    }

    pub(crate) fn read(from: &mut In<impl Read>) -> Result<Doubts, Unusable> {
        let mut places = Doubts::default();
        for issue in EventIssue::ALL {
            for _ in 0..from.below(MOST as u64)? {
                let (ts, cpu) = (from.ts()?, from.below(Cpu::LIMIT.into())?);
                places.add(*issue, ts, Cpu(cpu.try_into().map_err(|_| DAMAGED)?));
            }
        }
        Ok(places)
    }
}
