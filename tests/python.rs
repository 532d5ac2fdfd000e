//! The Python module can be generated from this program. Its own tests are in `python/tests`, which `.ci/run` runs on the program of the packages.

use crate::support::{built_program, root, scratch};
use std::process::Command;

/// A kind of argument or a form of a schema that `python/generate.py` does not know is an error of it, found here before a wheel is made.
#[test]
fn the_module_is_generated_from_the_commands_and_the_schemas() {
    let folder = scratch("python");
    let mut command = Command::new("python3");
    command.arg("-B").arg(root().join("python/generate.py")).arg(built_program()).arg(&*folder);
    let Ok(ran) = command.output() else {
        eprintln!("skipped: no python3");
        return;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let made = std::fs::read_to_string(folder.join("_questions.py")).expect("methods");
    assert!(made.contains("def workcons(") && made.contains("def waits("), "{made}");
    assert!(folder.join("answers/workcons.py").is_file());
}
