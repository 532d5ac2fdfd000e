//! A trace as texts name it, with the commands that show a part of it.

use crate::PageAddress;
use crate::text::COLUMNS;
use sched::Dur;
use std::fmt;

/// A trace by its name, with commands on it to be copied and run. They read it as the user did.
#[derive(Clone, Debug)]
pub struct Drawable {
    name: String,
    arguments: Vec<String>,
    shown: Vec<String>,
    window: Vec<String>,
    has_migrations: bool,
    length: Dur,
}

/// A command that answers what a reader of a report would ask next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Draw what each CPU ran during a case.
    Draw,
    /// Print the run queues in the middle of a case.
    Queues,
    /// Give the causes of the migrations during a case.
    Migrations,
    /// Divide the waiting and the idling during a case by how they began and ended.
    Why,
}

impl Drawable {
    /// A trace of this name and length. `arguments`: its path and the options that it is read with, each with its
    /// value, as a shell takes them.
    pub fn new(name: impl Into<String>, arguments: Vec<String>, length: Dur) -> Drawable {
        let (shown, window) = (Vec::new(), Vec::new());
        Drawable { name: name.into(), arguments, shown, window, has_migrations: true, length }
    }

    /// The same trace with the options that choose what of it is shown. `shown`: those of every command, such as the
    /// topology and the CPUs; `window`: those of the window that the user asked for, each with its value.
    #[must_use]
    pub fn showing(self, shown: Vec<String>, window: Vec<String>) -> Drawable {
        Drawable { shown, window, ..self }
    }

    /// The same trace without any recorded migration: no command is given that needs them.
    #[must_use]
    pub fn without_migrations(self) -> Drawable {
        Drawable { has_migrations: false, ..self }
    }

    /// The same trace for commands on all that the user looked at: they have the window that the user asked for.
    #[must_use]
    pub fn in_window(&self) -> Drawable {
        let trace = self.clone();
        Drawable { shown: [self.shown.clone(), self.window.clone()].concat(), ..trace }
    }

    /// The same trace for a command on the file, which has no options but those of reading.
    #[must_use]
    pub fn of_file(&self) -> Drawable {
        self.clone().showing(Vec::new(), Vec::new())
    }

    /// The arguments for a window of what began `start_ns` nanoseconds after the start of the trace and lasted for
    /// `length`, with a quarter more of it on either side, a microsecond at least, where the trace has that.
    pub fn window(&self, start_ns: u64, length: Dur) -> [String; 2] {
        let margin = (length.0 / 4).max(1_000);
        let end = start_ns.saturating_add(length.0);
        // A microsecond after the end, so that rounding to microseconds leaves the last event in.
        let last = end.max(self.length.0.saturating_add(1_000));
        let (from, to) = (start_ns.saturating_sub(margin), end.saturating_add(margin).min(last));
        [format!("--min {:.6}", from as f64 / 1e9), format!("--max {:.6}", to as f64 / 1e9)]
    }

    /// Adds a command on this trace, such as `dat2graph`, with further arguments. A backslash continues a line that
    /// would be longer than a report's.
    pub fn command(&self, out: &mut String, indent: usize, command: &str, more: &[String]) {
        let mut line = format!("{:indent$}schedviz {command}", "");
        // An option that is given anew stands once.
        let option = |word: &String| word.split(' ').next().map(str::to_owned);
        let shown = self.shown.iter().filter(|word| more.iter().all(|given| option(given) != option(word)));
        let mut words = self.arguments.iter().chain(shown).chain(more).peekable();
        while let Some(word) = words.next() {
            // Behind the last word there is no backslash.
            let room = if words.peek().is_some() { COLUMNS - " \\".len() } else { COLUMNS };
            if line.chars().count() + 1 + word.chars().count() > room {
                out.extend([&*line, " \\\n"]);
                line = format!("{:width$}", "", width = indent + 3);
            }
            line.extend([" ", word]);
        }
        out.extend([&*line, "\n"]);
    }

    /// The command line of a command on the trace in one line, as it is copied.
    pub fn one_line(&self, command: &str, more: &[String]) -> String {
        let mut line = String::new();
        self.command(&mut line, 0, command, more);
        line.split(" \\\n").map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// Adds the command that opens a view of the trace in a browser. The page shows all of the trace: the window that the user asked for is
    /// none of its options.
    pub fn view(&self, out: &mut String, indent: usize, address: &PageAddress) {
        let mut trace = self.clone();
        if let Some(path) = trace.arguments.first_mut() {
            // What is in quotes already stays in one pair of them.
            let inner = path.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
            *path = format!("'{}#{address}'", inner.unwrap_or(path));
        }
        trace.shown.retain(|word| !self.window.contains(word));
        trace.command(out, indent, "view", &[]);
    }

    /// Adds the command that opens a view of a case, which `name` names, below a head of its own.
    pub fn next_view(&self, out: &mut String, name: &str, address: &PageAddress) {
        out.extend(["\nNext, on ", name, ":\n"]);
        self.view(out, 2, address);
    }

    /// Adds the command that draws a case.
    pub fn draw(&self, out: &mut String, indent: usize, start_ns: u64, length: Dur) {
        self.command(out, indent, "dat2graph", &self.window(start_ns, length));
    }

    /// Adds the command that draws any of the cases above, with a placeholder for the window.
    pub fn draw_any(&self, out: &mut String) {
        out.push_str("\nTo draw one of them, with a little more on either side:\n");
        self.command(out, 2, "dat2graph", &["--min START".to_owned(), "--max END".to_owned()]);
    }

    /// Adds commands on a case, which `name` names, such as *the longest episode*.
    pub fn next(&self, out: &mut String, name: &str, start_ns: u64, length: Dur, commands: &[Next]) {
        out.extend(["\nNext, on ", name, ":\n"]);
        let window = self.window(start_ns, length);
        for next in commands {
            match next {
                Next::Draw => self.command(out, 2, "dat2graph", &window),
                Next::Queues => {
                    let middle = start_ns.saturating_add(length.0 / 2) as f64 / 1e9;
                    let at = if length.0 < 4_000 { format!("{middle:.9}") } else { format!("{middle:.6}") };
                    self.command(out, 2, "stepper", &[format!("--at {at}"), "--text".to_owned()]);
                }
                Next::Migrations if !self.has_migrations => {}
                Next::Migrations => self.command(out, 2, "migrations", &window),
                Next::Why => self.command(out, 2, "why", &window),
            }
        }
    }
}

impl fmt::Display for Drawable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::Pid;

    fn trace(arguments: &[&str]) -> Drawable {
        Drawable::new("a.dat", arguments.iter().map(|word| (*word).to_owned()).collect(), Dur(7_000_000_000))
    }

    #[test]
    fn a_part_has_something_around_it() {
        let drawn = |start, length| {
            let mut out = String::new();
            trace(&["a.dat"]).draw(&mut out, 0, start, Dur(length));
            out
        };
        assert_eq!(drawn(2_000_000_000, 4_000_000), "schedviz dat2graph a.dat --min 1.999000 --max 2.005000\n");
        assert_eq!(drawn(500, 8), "schedviz dat2graph a.dat --min 0.000000 --max 0.000002\n");
        let to_the_end = "schedviz dat2graph a.dat --min 5.125000 --max 7.000001\n";
        assert_eq!(drawn(5_500_000_000, 1_499_999_999), to_the_end);
        assert_eq!(trace(&[]).to_string(), "a.dat");
    }

    #[test]
    fn a_long_command_goes_on_behind_a_backslash() {
        let mut out = String::new();
        let all = [Next::Draw, Next::Queues, Next::Migrations];
        trace(&["a.dat", "--topology 'a folder/cpus.txt'"]).next(&mut out, "it", 1_000_000, Dur(2_000), &all);
        let expected = "
Next, on it:
  schedviz dat2graph a.dat --topology 'a folder/cpus.txt' --min 0.000999 \\
      --max 0.001003
  schedviz stepper a.dat --topology 'a folder/cpus.txt' --at 0.001001000 \\
      --text
  schedviz migrations a.dat --topology 'a folder/cpus.txt' --min 0.000999 \\
      --max 0.001003
";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_view_is_one_word_for_the_shell() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let address = PageAddress::wait(Pid(7), 2_000, Dur(8_000));
        let mut out = String::new();
        // The window of the user is no option of the page.
        let shown = trace(&["a.dat", "--buffer top"]).showing(words(&["--cpus 0-3"]), words(&["--min 0.2"]));
        shown.in_window().view(&mut out, 2, &address);
        assert_eq!(out, "  schedviz view 'a.dat#qw=0,7,2000,10000' --buffer top --cpus 0-3\n");
        for (path, word) in
            [("'my trace.dat'", "'my trace.dat#qw=0,7,2000,10000'"), ("'a'\\''b'", "'a'\\''b#qw=0,7,2000,10000'")]
        {
            let mut out = String::new();
            trace(&[path]).next_view(&mut out, "it", &address);
            assert_eq!(out, format!("\nNext, on it:\n  schedviz view {word}\n"));
        }
    }

    #[test]
    fn a_command_has_the_options_that_it_takes() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let shown = trace(&["a.dat", "--buffer top"]).showing(words(&["--cpus 0-3"]), words(&["--min 0.2"]));
        assert_eq!(shown.one_line("dat2graph", &[]), "schedviz dat2graph a.dat --buffer top --cpus 0-3");
        assert_eq!(shown.in_window().one_line("why", &[]), "schedviz why a.dat --buffer top --cpus 0-3 --min 0.2");
        assert_eq!(shown.one_line("x", &words(&["--cpus 2"])), "schedviz x a.dat --buffer top --cpus 2");
        assert_eq!(shown.of_file().one_line("info", &[]), "schedviz info a.dat --buffer top");
        let mut out = String::new();
        trace(&["a.dat"]).without_migrations().next(&mut out, "it", 0, Dur(8_000), &[Next::Migrations, Next::Why]);
        assert_eq!(out, "\nNext, on it:\n  schedviz why a.dat --min 0.000000 --max 0.000010\n");
    }
}
