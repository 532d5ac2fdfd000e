//! Completions: clap's scripts of commands and options, with values that the program takes from the recording on the command line (`values.rs`).

use super::values::Values;
use clap::Command;
use clap_complete::Shell;

/// The script of a shell for this command line.
pub(super) fn script(shell: Shell, command: &mut Command) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, command, "schedviz", &mut text);
    // clap writes UTF-8.
    let text = String::from_utf8_lossy(&text);
    match shell {
        // The last definition of a function and of its completion counts.
        Shell::Bash => format!("{}\n{BASH}", text.replace("-F _schedviz ", "-F _schedviz_with_values ")),
        Shell::Zsh => {
            let text = text.replace("\n_schedviz() {\n", "\n_schedviz_options() {\n");
            let (functions, call) = text.rsplit_once("\nif [ ").unwrap_or((&text, ""));
            format!("{functions}\n{ZSH}\nif [ {call}")
        }
        Shell::Fish => format!("{FISH}\n{}", with_values(&text, command)),
        _ => text.into_owned(),
    }
}

/// The script of fish, whose options with values of a recording ask the program.
fn with_values(text: &str, command: &Command) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let behind = |word: &str| Some(words.get(words.iter().position(|of| *of == word)? + 1)?.trim_end_matches('"'));
        let name = behind("__fish_schedviz_using_subcommand");
        let name = name.or_else(|| behind("\"__fish_schedviz_using_subcommand"));
        let command = name.and_then(|name| command.find_subcommand(name));
        let option = behind("-l").and_then(|long| command?.get_arguments().find(|of| of.get_long() == Some(long)));
        let values = option.and_then(|option| Values::of(command?.get_name(), option));
        out.push_str(line);
        if values.is_some() {
            out.push_str(" -f -a \"(__schedviz_values)\"");
        }
        out.push('\n');
    }
    out
}

/// The program prints the values, or fails, and clap's function goes on.
const BASH: &str = r#"_schedviz_with_values() {
    local values=()
    mapfile -t values < <("${1/#\~\//$HOME/}" complete bash -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    if ((${#values[@]} == 0)); then
        _schedviz "$@"
        return
    fi
    # A description is shown beside others, and inserted never.
    if ((${#values[@]} == 1)) || [[ ${COMP_TYPE-} == 37 || ${COMP_TYPE-} == 42 ]]; then
        COMPREPLY=("${values[@]%%$'\t'*}")
    else
        COMPREPLY=("${values[@]/$'\t'/  }")
    fi
}
"#;

const ZSH: &str = r#"_schedviz() {
    local -a lines values shown
    lines=("${(@f)$("${(Q)words[1]}" complete zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    lines=("${(@)lines:#}")
    if (( $#lines )); then
        values=("${(@)lines%%$'\t'*}")
        shown=("${(@)lines/$'\t'/  }")
        compadd -l -d shown -a values
        return
    fi
    _schedviz_options "$@"
    local ret=$?
    # A recording alone is asked for findings.
    (( CURRENT == 2 )) && _files && ret=0
    return ret
}
"#;

const FISH: &str = r#"function __schedviz_values
    set -l words (commandline -opc)
    command $words[1] complete fish -- $words[2..-1] (commandline -ct) 2>/dev/null
end

# A recording alone is asked for findings.
complete -c schedviz -n "__fish_schedviz_needs_command" -F
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shell: Shell) -> String {
        let mut command = super::super::command_line();
        super::super::define_all(&mut command);
        script(shell, &mut command)
    }

    /// What is put into the text of clap is there: another version could write it otherwise.
    #[test]
    fn scripts_ask_the_program() {
        let bash = text(Shell::Bash);
        assert_eq!(bash.matches("complete -F _schedviz_with_values ").count(), 2, "{bash:.300}");
        let zsh = text(Shell::Zsh);
        for (part, times) in
            [("\n_schedviz_options() {\n", 1), ("\n_schedviz() {\n", 1), ("\nif [ \"$funcstack[1]\"", 1)]
        {
            assert_eq!(zsh.matches(part).count(), times, "{part}");
        }
        let fish = text(Shell::Fish);
        let asking = |command: &str, option: &str| {
            let start = format!("__fish_schedviz_using_subcommand {command}\" -l {option} ");
            let mut lines = fish.lines().filter(|line| line.contains(&start));
            lines.next().unwrap_or_else(|| panic!("{start}")).ends_with(" -a \"(__schedviz_values)\"")
        };
        for (command, option) in [("latency", "pid"), ("why", "cpus"), ("list", "events"), ("findings", "comm")] {
            assert!(asking(command, option), "{command} --{option}");
        }
        assert!(!asking("record", "pid") && !asking("latency", "by"));
    }
}
