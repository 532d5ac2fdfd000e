//! An index in a file, to be used again for the same trace.
//!
//! A file begins with [`MAGIC`], the version of its form and a number that identifies the trace; a digest of all before
//! it is at the end. Numbers have seven bits a byte. Whatever the bytes, reading ends with an index or a reason: lists are
//! no longer than an index can have them, and columns take at most twice the room that an index may take.

use crate::columns::coding::{DAMAGED, Digest, In, Out, Unusable};
use crate::columns::doubts::Doubts;
use crate::columns::lane::LaneColumn;
use crate::columns::longest::{CpuPath, Interval, LISTED, Longest, NAMED};
use crate::columns::machine::MachineColumn;
use crate::columns::moves::MoveCounts;
use crate::columns::tasks::{TaskEntry, Tasks};
use crate::columns::tree::Tree;
use crate::index::scope::Scope;
use crate::index::tiles::{Index, IndexNotes};
use sched::causes::Herd;
use sched::{Comm, Cpu, Pid};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The start of an index file.
const MAGIC: &[u8; 8] = b"SVINDEX\n";
/// The version of the form; another one is not read.
const FORM: u64 = 3;

impl Index {
    /// Writes the index of the trace that this number identifies.
    pub fn write(&self, key: u64, out: impl Write) -> io::Result<()> {
        let mut out = Out { inner: out, digest: Digest::default() };
        out.raw(MAGIC)?;
        out.number(FORM)?;
        out.raw(&key.to_le_bytes())?;
        self.scope.write(&mut out)?;
        self.lanes.iter().try_for_each(|tree| tree.write(&mut out))?;
        self.machine.write(&mut out)?;
        self.moves.write(&mut out)?;
        out.number(self.tasks.list().len() as u64)?;
        self.tasks.list().iter().try_for_each(|task| write_task(task, &mut out))?;
        self.notes.write(&mut out)?;
        let digest = out.digest.value();
        out.inner.write_all(&digest.to_le_bytes())?;
        out.inner.flush()
    }

    /// Reads the index of the trace that this number identifies.
    pub fn read(key: u64, scope: &Scope, from: impl Read) -> Result<Index, Unusable> {
        let mut from = In { inner: from, digest: Digest::default(), room: scope.room.saturating_mul(2) };
        if from.raw::<8>().map_err(|_| Unusable::Foreign)? != *MAGIC {
            return Err(Unusable::Foreign);
        }
        if from.number()? != FORM {
            return Err(Unusable::Stale("another version of schedviz wrote it"));
        }
        if u64::from_le_bytes(from.raw()?) != key {
            return Err(Unusable::Stale("it is of another trace, or of other options of reading"));
        }
        let scope = scope.read(&mut from)?;
        let (base, top) = scope.levels;
        let lanes = scope.cpus.iter().map(|_| Tree::<LaneColumn>::read(base, top, &mut from));
        let lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        let machine = Tree::<MachineColumn>::read(base, top, &mut from)?;
        let moves = MoveCounts::read(&mut from)?;
        let mut tasks = Tasks::default();
        for _ in 0..from.below(Tasks::MOST as u64)? {
            tasks.add(read_task(&mut from)?);
        }
        let notes = IndexNotes::read(&mut from)?;
        let digest = from.digest.value();
        if u64::from_le_bytes(from.raw()?) != digest || from.inner.read(&mut [0])? > 0 {
            return Err(DAMAGED);
        }
        Ok(Index { scope, lanes, machine, moves, tasks: Arc::new(tasks), notes, sampled: None })
    }
}

impl Scope {
    fn write(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        out.signed(self.start.0)?;
        out.number(self.span)?;
        out.number(self.cpus.len() as u64)?;
        self.cpus.iter().try_for_each(|cpu| out.number(cpu.0.into()))?;
        out.number(self.levels.0.into())
    }

    /// The scope with the finest level that a file has; refused if the file is about another part of a trace.
    fn read(&self, from: &mut In<impl Read>) -> Result<Scope, Unusable> {
        let other = Unusable::Stale("it is of another part of the trace");
        if (from.signed()?, from.number()?, from.number()?) != (self.start.0, self.span, self.cpus.len() as u64) {
            return Err(other);
        }
        for cpu in &self.cpus {
            if from.number()? != u64::from(cpu.0) {
                return Err(other);
            }
        }
        let base = from.below(self.levels.1.into())? as u32;
        Ok(Scope { levels: (base, self.levels.1), ..self.clone() })
    }
}

fn write_task(task: &TaskEntry, out: &mut Out<impl Write>) -> io::Result<()> {
    out.signed(task.pid.0.into())?;
    out.raw(task.comm.array())?;
    out.number(task.run_ns)?;
    out.option(task.home.map(|cpu| cpu.0.into()))?;
    out.option(task.parent.map(|pid| pid.0.into()))?;
    out.number(task.application.into())
}

fn read_task(from: &mut In<impl Read>) -> Result<TaskEntry, Unusable> {
    let (pid, comm, run_ns) = (Pid(from.small()?), Comm::from_array(from.raw()?), from.number()?);
    let home = from.option()?.map(|cpu| cpu.try_into().map(Cpu)).transpose().map_err(|_| DAMAGED)?;
    let parent = from.option()?.map(|pid| pid.try_into().map(Pid)).transpose().map_err(|_| DAMAGED)?;
    Ok(TaskEntry { pid, comm, run_ns, home, parent, application: from.below(1)? > 0 })
}

impl IndexNotes {
    fn write(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        for list in [&self.episodes, &self.waits] {
            let (intervals, dropped) = list.list();
            out.number(dropped)?;
            out.number(intervals.len() as u64)?;
            intervals.iter().try_for_each(|interval| write_interval(interval, out))?;
        }
        let (herds, dropped) = &self.herds;
        out.number(*dropped)?;
        out.number(herds.len() as u64)?;
        for Herd { start, end, orig, dest, tasks } in herds {
            out.signed(start.0)?;
            out.signed(end.0)?;
            [orig.0, dest.0, *tasks].iter().try_for_each(|number| out.number((*number).into()))?;
        }
        out.option(self.command.map(|ns| ns as i64))?;
        out.number(self.losses)?;
        self.places.write(out)
    }

    fn read(from: &mut In<impl Read>) -> Result<IndexNotes, Unusable> {
        let mut notes = IndexNotes::default();
        for list in [&mut notes.episodes, &mut notes.waits] {
            let (dropped, count) = (from.number()?, from.below(LISTED as u64)?);
            let intervals = (0..count).map(|_| read_interval(from)).collect::<Result<Vec<_>, _>>()?;
            *list = Longest::of(&intervals, dropped);
        }
        notes.herds.1 = from.number()?;
        for _ in 0..from.below(LISTED as u64)? {
            let (start, end) = (from.ts()?, from.ts()?);
            let mut number = || from.below(u32::MAX.into()).map(|number| number as u32);
            notes.herds.0.push(Herd { start, end, orig: Cpu(number()?), dest: Cpu(number()?), tasks: number()? });
        }
        notes.command = from.option()?.map(|ns| ns as u64);
        notes.losses = from.number()?;
        notes.places = Doubts::read(from)?;
        Ok(notes)
    }
}

fn write_interval(interval: &Interval, out: &mut Out<impl Write>) -> io::Result<()> {
    out.signed(interval.from.0)?;
    out.signed(interval.to.0)?;
    let path = interval.cpus;
    out.number(path.map_or(0, |path| path.number().into()))?;
    path.iter().flat_map(CpuPath::named).try_for_each(|cpu| out.number(cpu.0.into()))?;
    out.option(interval.task.map(|(pid, _)| pid.0.into()))?;
    interval.task.map_or(Ok(()), |(_, comm)| out.raw(comm.array()))
}

fn read_interval(from: &mut In<impl Read>) -> Result<Interval, Unusable> {
    let (start, to) = (from.ts()?, from.ts()?);
    let number = from.below(u32::MAX.into())? as u32;
    let cpus = (0..number.min(NAMED as u32)).map(|_| Ok(Cpu(from.below(Cpu::LIMIT.into())? as u32)));
    let cpus = cpus.collect::<Result<Vec<_>, Unusable>>()?;
    let cpus = (number > 0).then(|| CpuPath::known(&cpus, number).ok_or(DAMAGED)).transpose()?;
    let pid = from.option()?.map(|pid| pid.try_into().map(Pid)).transpose().map_err(|_| DAMAGED)?;
    let comm = pid.map_or(Ok(Comm::EMPTY), |_| from.raw().map(Comm::from_array))?;
    let task = pid.map(|pid| (pid, comm));
    Ok(Interval { from: start, to, cpus, task })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Indexer, List};
    use sched::Pass;
    use testkit::{Rng, Simulation};

    fn simulated(seed: u64, cpus: u32) -> (Index, Scope) {
        let events = Simulation::run(seed, cpus, 3_000).events;
        let cpus: Vec<Cpu> = (0..cpus).map(Cpu).collect();
        let scope = Scope::of_trace(events[0].ts, events[events.len() - 1].ts, &cpus, 0).with_room(60_000);
        let pass = Pass::over(events.as_slice()).run(|| Indexer::new(&scope));
        (pass.unwrap_or_else(|never| match never {}).output, scope)
    }

    fn file(index: &Index) -> Vec<u8> {
        let mut bytes = Vec::new();
        index.write(7, &mut bytes).expect("a vector");
        bytes
    }

    /// All tiles and lists.
    fn content(index: &Index) -> Vec<Vec<u8>> {
        let mut content = Vec::new();
        let (base, top) = index.levels();
        for level in base..=top {
            for tile in (0..).take_while(|tile| index.has_tile(level, *tile)) {
                content.extend((0..).map_while(|group| index.lanes(level, group, tile)));
                content.extend(index.machine(level, tile));
                content.extend(index.sum(level, 0..index.cpus().len(), tile, crate::SumBy::Task));
            }
        }
        let lists = [List::Episodes, List::Waits].map(|list| index.list(list));
        let facts = format!("{lists:?} {:?} {:?} {}", index.herds(), index.command(), index.losses());
        content.push(format!("{facts} {:?} {}", index.tasks().list(), index.size()).into_bytes());
        content
    }

    #[test]
    fn the_bytes_do_not_depend_on_a_thread_for_the_columns() {
        // Enough for several looks at the size.
        let events = Simulation::run(5, 6, 150_000).events;
        let cpus: Vec<Cpu> = (0..6).map(Cpu).collect();
        let scope = Scope::of_trace(events[0].ts, events[events.len() - 1].ts, &cpus, 0).with_room(400_000);
        let with = |threads| {
            let pass = Pass::over(events.as_slice()).run(|| Indexer::publishing(&scope, None, None, threads));
            file(&pass.unwrap_or_else(|never| match never {}).output)
        };
        let alone = with(None);
        assert!(alone.len() > 100_000, "{} bytes", alone.len());
        let publish = |index: Index| assert!(index.size() > 0);
        std::thread::scope(|threads| {
            let indexer = || Indexer::publishing(&scope, None, Some(&publish), Some(threads));
            let pass = Pass::over(events.as_slice()).run(indexer).unwrap_or_else(|never| match never {});
            assert!(file(&pass.output) == alone);
        });
    }

    #[test]
    fn an_index_is_read_as_it_was_written() {
        for (seed, cpus) in [(1, 4), (2, 70)] {
            let (index, scope) = simulated(seed, cpus);
            let bytes = file(&index);
            let read = Index::read(7, &scope, bytes.as_slice()).expect("the same");
            assert!(content(&read) == content(&index));
            assert_eq!(file(&read), bytes);
        }
    }

    #[test]
    fn a_file_takes_no_more_room_than_an_index() {
        let (index, scope) = simulated(1, 4);
        let bytes = file(&index);
        let room = index.size() / 2 - 100;
        assert_eq!(Index::read(7, &scope.clone().with_room(room), bytes.as_slice()).err(), Some(DAMAGED));
        assert!(Index::read(7, &scope.with_room(room + 200), bytes.as_slice()).is_ok());
    }

    #[test]
    fn files_of_other_traces_are_refused() {
        let (index, scope) = simulated(1, 4);
        let bytes = file(&index);
        let refused = |key, scope: &Scope, bytes: &[u8]| Index::read(key, scope, bytes).err();
        assert_eq!(refused(7, &scope, b""), Some(Unusable::Foreign));
        assert_eq!(refused(7, &scope, b"\x17\x08\x44tracing and more"), Some(Unusable::Foreign));
        assert!(matches!(refused(8, &scope, &bytes), Some(Unusable::Stale(why)) if why.contains("another trace")));
        let other = simulated(3, 4).1;
        assert!(matches!(refused(7, &other, &bytes), Some(Unusable::Stale(why)) if why.contains("another part")));
        let mut newer = bytes.clone();
        newer[8] += 1;
        assert!(matches!(refused(7, &scope, &newer), Some(Unusable::Stale(why)) if why.contains("version")));
        assert_eq!(refused(7, &scope, &[&bytes[..], b"x"].concat()), Some(DAMAGED), "it is longer");
    }

    /// Replaces the digest by that of the bytes, as in a forged file.
    fn forged(mut bytes: Vec<u8>) -> Vec<u8> {
        let end = bytes.len().saturating_sub(8);
        let mut digest = Digest::default();
        digest.add(&bytes[..end]);
        bytes.truncate(end);
        bytes.extend(digest.value().to_le_bytes());
        bytes
    }

    #[test]
    fn no_bytes_are_a_reason_to_panic() {
        let (index, scope) = simulated(1, 2);
        let good = file(&index);
        let mut rng = Rng::new(11);
        let (mut refused, mut read) = (0, 0);
        for round in 0..400 {
            let mut bytes = good.clone();
            // Most numbers are in the last part.
            let early = good.len() - rng.below(good.len().min(if round % 2 == 0 { 20_000 } else { usize::MAX }));
            for _ in 0..=rng.below(3) {
                let at = (early + rng.below(64)).min(good.len() - 1);
                match rng.below(3) {
                    0 => bytes.truncate(at + 1),
                    1 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
                    _ if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
                    _ => {}
                }
            }
            if bytes != good {
                assert!(Index::read(7, &scope, bytes.as_slice()).is_err());
            }
            // Where the digest is right again, either the rest is not, or all of it can be shown.
            match Index::read(7, &scope, forged(bytes).as_slice()) {
                Ok(index) => {
                    content(&index);
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 40 && read > 40, "{refused} refused, {read} read");
    }
}
