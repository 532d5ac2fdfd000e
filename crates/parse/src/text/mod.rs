//! The texts that explain events: print formats and symbols.

pub(crate) mod expr;
pub(crate) mod printk;
pub(crate) mod symbols;
