//! The Python module is that of this program. Its own tests are in `python/tests`, which `.ci/run` runs.

use std::path::Path;
use std::process::Command;

/// What `python/generate.py` makes from `python/commands.json` and the schemas is current; a test of the registry compares these with the
/// types. `SCHEDVIZ_BLESS=1` writes it.
#[test]
fn the_generated_files_are_current() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/generate.py");
    let check = if std::env::var_os("SCHEDVIZ_BLESS").is_some() { &[][..] } else { &["--check"] };
    let Ok(ran) = Command::new("python3").arg("-B").arg(script).args(check).output() else {
        eprintln!("skipped: no python3");
        return;
    };
    assert!(ran.status.success(), "{}SCHEDVIZ_BLESS=1 writes them", String::from_utf8_lossy(&ran.stderr));
}
