//! The unit of length.

/// A length in hundredths of a point (1/7200 inch). The unit is fine enough for print; an integer keeps a
/// figure identical on every machine.
pub type Unit = i32;

/// One point, 1/72 inch.
pub const PT: Unit = 100;
