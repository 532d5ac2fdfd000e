//! The command line as a figure shows it, and words of it as a shell takes them.

use std::ffi::OsStr;
use std::path::Path;

/// The command line as it can be repeated: what changes neither the figure nor the numbers is left
/// out, so that these are the same whatever the threads and the name of the output. Files have their names alone: their
/// folders are nothing that a figure should show to others.
pub fn repeatable(arguments: impl Iterator<Item = std::ffi::OsString>) -> String {
    let mut words = vec!["schedviz".to_owned()];
    let mut arguments = arguments.skip(1);
    while let Some(argument) = arguments.next() {
        let text = sched::event::escape(argument.as_encoded_bytes());
        match &*text {
            "--threads" | "-o" | "--output" | "--color" | "--format" | "--dpi" => drop(arguments.next()),
            "--no-pager" | "-q" | "--quiet" | "--json" | "-v" | "--verbose" => {}
            t if ["--threads=", "--output=", "--color=", "--format=", "--dpi="].iter().any(|p| t.starts_with(p)) => {}
            t if t.starts_with("-o") && !t.starts_with("--") => {}
            t if words.len() < 64 => words.push(quoted(&without_folders(t))),
            _ => {}
        }
    }
    words.join(" ")
}

/// A word of the command line with the files in it, such as those of a group `NAME=FILE,FILE`, without their folders.
fn without_folders(word: &str) -> String {
    let name = |part: &str| {
        let path = Path::new(part);
        let has_stars = part.contains('*') && path.parent().is_some_and(Path::is_dir);
        let name = path.file_name().filter(|_| part.contains('/') && (has_stars || path.exists()));
        name.map_or_else(|| part.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    // The name of a file can have these characters.
    let whole = name(word);
    if whole != word {
        return whole;
    }
    let parts = word.split_inclusive(['=', ',']).map(|part| {
        let bare = part.trim_end_matches(['=', ',']);
        name(bare) + &part[bare.len()..]
    });
    parts.collect()
}

/// A command line of this program's own words as a figure shows it: its files without their folders.
pub fn shown(line: &str) -> String {
    words(line).iter().map(|word| quoted(&without_folders(word))).collect::<Vec<_>>().join(" ")
}

/// The words of a line that [`quoted`] wrote.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut inside) = (Vec::new(), String::new(), false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => inside = !inside,
            '\\' if !inside => word.extend(chars.next()),
            ' ' if !inside => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

/// A word as a shell takes it, fit to be printed.
pub fn shell_word(word: &OsStr) -> String {
    quoted(&sched::event::escape(word.as_encoded_bytes()))
}

/// A word in the quotes that a shell needs.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_files_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().display().to_string();
        for name in ["a.dat", "b=c,d.dat", "cpus.json"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        for (word, shown) in [
            (format!("{at}/a.dat"), "a.dat"),
            (format!("{at}/b=c,d.dat"), "b=c,d.dat"),
            (format!("--topology={at}/cpus.json"), "--topology=cpus.json"),
            (format!("new={at}/a.dat,{at}/cpus.json"), "new=a.dat,cpus.json"),
            (format!("{at}/*.dat"), "*.dat"),
            // No files.
            ("^kworker/.*".to_owned(), "^kworker/.*"),
            ("sched/sched_switch".to_owned(), "sched/sched_switch"),
            ("/".to_owned(), "/"),
        ] {
            assert_eq!(without_folders(&word), shown, "{word}");
        }
    }

    #[test]
    fn a_line_is_divided_as_it_was_quoted() {
        let all = ["schedviz", "a b.dat", "it's", "--min", "1"];
        let line = all.map(quoted).join(" ");
        assert_eq!(words(&line), all);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it's here.dat");
        std::fs::write(&path, "").expect("written");
        let line = format!("schedviz dat2graph {} --min 1", quoted(&path.display().to_string()));
        assert_eq!(shown(&line), "schedviz dat2graph 'it'\\''s here.dat' --min 1");
    }

    #[test]
    fn the_command_can_be_repeated() {
        let line = "x dat2graph a.dat --threads 2 -o b.pdf --tasks ^k --min=1 -q --output=c.svg";
        let mut words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        words.push("it's".into());
        assert_eq!(repeatable(words.into_iter()), "schedviz dat2graph a.dat --tasks '^k' --min=1 'it'\\''s'");
    }
}
