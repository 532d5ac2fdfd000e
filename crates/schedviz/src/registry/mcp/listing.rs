//! The files in the folders, for an assistant that does not know their names.

use super::folders::Folders;
use serde_json::{Value, json};
use session::groups::Folder;
use std::path::Path;

/// Maximum depth of folders that are listed.
const DEPTH: usize = 5;

/// Maximum number of files and folders that are listed.
const MOST: usize = 4096;

/// The endings of files that belong to the recording of the same name, or to the list of runs.
const BESIDE: [&str; 2] = [".machine.json", session::runs::FILE];

/// Lists a folder, or all folders without a name: the files of each, sorted, and the variants of a series of runs.
pub(super) fn listing(folders: &Folders, name: Option<&str>) -> Result<Value, String> {
    let (mut listed, mut seen) = (Vec::new(), 0);
    match name {
        Some(name) => list(&folders.locate(name)?, DEPTH, &mut listed, &mut seen),
        None => folders.given().for_each(|folder| list(folder, DEPTH, &mut listed, &mut seen)),
    }
    let beyond = (seen > MOST).then(|| format!("there are more than {MOST} files; open one of the folders"));
    Ok(match beyond {
        None => json!({ "folders": listed }),
        Some(note) => json!({ "folders": listed, "notes": [note] }),
    })
}

fn list(folder: &Path, depth: usize, listed: &mut Vec<Value>, seen: &mut usize) {
    let Ok(entries) = folder.read_dir() else { return };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    let (mut files, mut below) = (Vec::new(), Vec::new());
    for name in names {
        *seen += 1;
        if *seen > MOST {
            break;
        }
        let path = folder.join(&name);
        // A link to a folder can lead anywhere, and around.
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => below.push(path),
            Ok(found) if found.is_file() && !BESIDE.iter().any(|ending| name.ends_with(ending)) => {
                files.push(json!({ "name": name, "bytes": found.len() }));
            }
            _ => {}
        }
    }
    let mut row = json!({ "path": folder.display().to_string(), "files": files });
    if let Ok(Some(runs)) = Folder::open(folder) {
        row["variants"] = runs.groups.iter().map(|(name, runs)| (name.clone(), Value::from(runs.len()))).collect();
    }
    listed.push(row);
    if depth > 0 {
        below.iter().for_each(|folder| list(folder, depth - 1, listed, seen));
    }
}
