//! The local server: connections, addresses, and the files of the page.

mod address;
mod http;
pub(crate) mod page;
mod paths;
mod places;
mod server;
pub(crate) mod site;

pub use server::Server;
pub use site::Site;
