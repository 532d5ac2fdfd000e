//! Finds libtraceevent if the feature `system` is on.
#![allow(clippy::print_stdout)]

fn main() {
    #[cfg(feature = "system")]
    if let Err(e) = pkg_config::Config::new().atleast_version("1.1").probe("libtraceevent") {
        println!("cargo::error=the feature libtraceevent needs libtraceevent-dev and pkg-config: {e}");
    }
}
