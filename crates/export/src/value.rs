//! The value of a field.

use sched::{Comm, Cpu, Dur, Pid, Ts};
use std::borrow::Cow;

/// The value of a field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'v> {
    /// No value: it is unknown, or the row has none.
    Null,
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Real(f64),
    /// A text in UTF-8.
    Text(Cow<'v, str>),
    /// Yes or no.
    Bool(bool),
}

impl<'v> Value<'v> {
    /// A command name, escaped as in every other output; null where none was seen.
    pub fn command(name: &'v Comm) -> Value<'v> {
        if name.is_empty() { Value::Null } else { Value::Text(sched::event::escape(name.as_bytes())) }
    }
}

macro_rules! from {
    ($($type:ty, $value:ident => $into:expr;)+) => {$(
        impl<'v> From<$type> for Value<'v> {
            fn from($value: $type) -> Value<'v> {
                $into
            }
        }
    )+};
}
from! {
    i64, n => Value::Int(n);
    u64, n => Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    u32, n => Value::Int(n.into());
    i32, n => Value::Int(n.into());
    usize, n => Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    bool, yes => Value::Bool(yes);
    f64, x => if x.is_finite() { Value::Real(x) } else { Value::Null };
    &'v str, text => Value::Text(text.into());
    String, text => Value::Text(text.into());
    Ts, ts => Value::Int(ts.0);
    Dur, length => length.0.into();
    Cpu, cpu => cpu.0.into();
    Pid, pid => pid.0.into();
}

impl<'v, T: Into<Value<'v>>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Value<'v> {
        value.map_or(Value::Null, Into::into)
    }
}
