//! Tables as comma-separated values (RFC 4180, with a header and lines that end in a newline).

use crate::output::{Sink, TableWriter};
use crate::schema::Column;
use crate::value::Value;
use session::csv::guarded;
use std::io::{self, Write};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 16;

/// A table as a file of comma-separated values. The group and the run stand in front of each row.
pub struct Csv {
    out: Box<dyn Sink>,
    buffer: Vec<u8>,
    /// The bytes written before the buffer.
    written: u64,
    /// The bytes of all before the rows of the run.
    start: u64,
    /// The fields of the group and the run.
    prefix: Vec<u8>,
}

impl Csv {
    /// Begins a table with the header of these columns.
    pub fn new(out: Box<dyn Sink>, columns: &[Column]) -> io::Result<Csv> {
        let mut csv = Csv { out, buffer: Vec::with_capacity(BUFFER), written: 0, start: 0, prefix: Vec::new() };
        csv.buffer.extend_from_slice(b"group,run");
        for column in columns {
            csv.buffer.push(b',');
            csv.buffer.extend_from_slice(column.name.as_bytes());
        }
        csv.buffer.push(b'\n');
        csv.write()?;
        Ok(csv)
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.written = self.written.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }
}

/// Adds a text, in quotes if it contains a separator; an empty text as well, since an empty field is null. A text that a spreadsheet
/// would take for a formula gets an apostrophe, as in every other table.
fn put_text(text: &str, out: &mut Vec<u8>) {
    let text = guarded(text);
    if !text.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

fn put(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Int(n) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        // The shortest decimal that reads as the same number. Writing to a vector cannot fail.
        Value::Real(x) => drop(write!(out, "{x}")),
        Value::Text(text) => put_text(text, out),
        Value::Bool(yes) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
    }
}

impl TableWriter for Csv {
    fn begin(&mut self, group: Option<&str>, run: &str) -> io::Result<()> {
        self.prefix.clear();
        if let Some(group) = group {
            put_text(group, &mut self.prefix);
        }
        self.prefix.push(b',');
        put_text(run, &mut self.prefix);
        self.write()?;
        self.start = self.written;
        Ok(())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.buffer.clear();
        if self.written > self.start {
            self.out.cut(self.start)?;
            self.written = self.start;
        }
        Ok(())
    }

    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        self.buffer.extend_from_slice(&self.prefix);
        for value in values {
            self.buffer.push(b',');
            put(value, &mut self.buffer);
        }
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER { self.write() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.write()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write()?;
        self.out.flush()?;
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("whole").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Shared {
        fn cut(&mut self, to: u64) -> io::Result<()> {
            self.0.lock().expect("whole").truncate(to as usize);
            Ok(())
        }

        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn rows_of_a_run_that_restarts_are_written_once() {
        let shared = Shared::default();
        let columns = [Column::new("a", crate::Type::Int64, ""), Column::new("b", crate::Type::Text, "")];
        let mut csv = Box::new(Csv::new(Box::new(shared.clone()), &columns).expect("a header"));
        csv.begin(None, "one, or two").expect("begun");
        let row = [Value::Int(-5), Value::Text("say \"x\"".into())];
        csv.row(&row).expect("a row");
        csv.end().expect("ended");
        csv.begin(Some("=g"), "r").expect("begun");
        // More than the buffer holds: some of the rows that are forgotten were written.
        for _ in 0..BUFFER {
            csv.row(&row).expect("a row");
        }
        csv.restart().expect("restarted");
        csv.row(&[Value::Null, Value::Text("".into())]).expect("a row");
        csv.row(&[Value::Real(-0.1), Value::Text("=1+1,".into())]).expect("a row");
        csv.finish().expect("finished");
        let text = String::from_utf8(shared.0.lock().expect("whole").clone()).expect("text");
        assert_eq!(text, "group,run,a,b\n,\"one, or two\",-5,\"say \"\"x\"\"\"\n'=g,r,,\"\"\n'=g,r,-0.1,\"'=1+1,\"\n");
    }
}
