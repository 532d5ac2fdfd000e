//! The index of a trace: how it is made from events, samples or a file, and the tiles that it gives.

mod builder;
mod file;
pub(crate) mod folds;
mod indexer;
pub(crate) mod rows;
mod sample;
pub(crate) mod scope;
pub(crate) mod store;
pub(crate) mod tiles;
pub(crate) mod trust;
pub(crate) mod viewed;

pub use builder::Publish;
pub use indexer::Indexer;
pub use scope::Scope;
pub use store::Store;
pub use tiles::{Index, List, SumBy};
pub use viewed::Viewed;
