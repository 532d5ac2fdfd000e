//! The prompts: what to ask, in which order, and what may be said.

use rmcp::model::{JsonObject, Prompt, PromptArgument};

/// A prompt, in whose text `{NAME}` stands for an argument.
struct Template {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// The names of the arguments, each with its description.
    arguments: &'static [(&'static str, &'static str)],
    text: &'static str,
}

/// Maximum length of an argument, in bytes.
const MOST_ARGUMENT: usize = 1000;

const RUNS: &[(&str, &str)] =
    &[("base", "The recordings before the patch: old/*.dat"), ("new", "The recordings with the patch: new/*.dat")];

const TEMPLATES: [Template; 3] = [
    Template {
        name: "judge-a-patch",
        title: "Judge a patch",
        about: "Did a scheduler patch help, why, and what does the worst case look like?",
        arguments: RUNS,
        text: "Judge a scheduler patch by its recordings. Before: {base}. With the patch: {new}.\n\n\
1. `compare` with base and new. Begin with the finding in `comparisons`. Report a change only with its p, and call it noise where p is above 0.05. \
With fewer than five runs a side say that hardly any change can be shown; `notes` and `outside` tell what disturbed a run.\n\
2. `findings` on the run of {new} whose violation or elapsed time is the largest in `groups`: what cost the most there, with its certainty.\n\
3. `why` on the same run with episode=1, part=/runs/0/episode: the worst episode, step by step.\n\n\
Answer three questions in this order: did it help, why, what happened in the worst episode. Give every number with the command line of its answer, \
and name what is unknown or withheld. Numbers of a single run prove nothing about the patch.",
    },
    Template {
        name: "why-was-this-slow",
        title: "Why was this slow?",
        about: "What held back the command in one recording?",
        arguments: &[("trace", "The recording")],
        text: "Find out what held back the command in {trace}.\n\n\
1. `open` {trace}: what was recorded and lost. Without the events that a number needs, it is unknown, not zero.\n\
2. `findings` on it: at most eight sentences, the costliest first, each with its certainty and the command that looks closer.\n\
3. Run the tool of the command of the first finding with its options. Narrow it by min and max to the place that it names.\n\n\
Answer with the cause that cost the most, how much it cost in time and in percent of the critical path, and how certain that is. Costs overlap: do not \
add them up. End with the command lines that show the same.",
    },
    Template {
        name: "write-the-mail",
        title: "Write the mail",
        about: "A report for a mailing list on what a patch changed",
        arguments: RUNS,
        text: "Write a plain-text mail to the scheduler's mailing list on the effect of a patch. Before: {base}. With the patch: {new}.\n\n\
1. `compare` with base and new; the kernels, the machine and the number of runs are in it.\n\
2. `why` on one run of each side for the origin that changed the most.\n\n\
Rules: lines of at most 75 characters. The result in the first sentence, with p. Then a table of at most ten rows (metric, before, after, change, p), \
marked changes first; the rows that did not change in one sentence. Then the cause in one paragraph. Then the machine, the kernels, the number of \
runs, and the exact command lines. Claim nothing whose p is above 0.05, and nothing that `notes` or `trust` puts in doubt. No adjectives.",
    },
];

/// The prompts, for a list.
pub(super) fn all() -> Vec<Prompt> {
    let prompt = |template: &Template| {
        let argument =
            |(name, about): &(&str, &str)| PromptArgument::new(*name).with_description(*about).with_required(true);
        let arguments = template.arguments.iter().map(argument).collect();
        Prompt::new(template.name, Some(template.about), Some(arguments)).with_title(template.title)
    };
    TEMPLATES.iter().map(prompt).collect()
}

/// The text of a prompt with its arguments.
pub(super) fn text(name: &str, arguments: &JsonObject) -> Result<String, String> {
    let template = TEMPLATES.iter().find(|template| template.name == name);
    let template = template.ok_or_else(|| format!("there is no prompt {name:?}"))?;
    // An argument may have the mark of another one in it.
    let mut text = String::new();
    let mut rest = template.text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (mark, behind) = behind.split_once('}').unwrap_or((behind, ""));
        let value = arguments.get(mark).and_then(|value| value.as_str()).filter(|value| !value.is_empty());
        let value = value.filter(|value| value.len() <= MOST_ARGUMENT && !value.contains(char::is_control));
        let value = value.ok_or_else(|| format!("the prompt needs {mark}, a text of one line"))?;
        text.extend([before, value]);
        rest = behind;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::mcp::tools::{HELP, OPEN, Tool};
    use serde_json::json;

    /// Words in backquotes that a list of tools does not have are fields of documents.
    #[test]
    fn prompts_name_tools_that_exist() {
        let tools: Vec<&str> = Tool::all().iter().map(|tool| tool.entry.name).chain([OPEN, HELP]).collect();
        for template in &TEMPLATES {
            let words: Vec<&str> = template.text.split('`').skip(1).step_by(2).collect();
            let fields = ["comparisons", "notes", "outside", "groups", "trust"];
            assert!(words.iter().all(|word| tools.contains(word) || fields.contains(word)), "{words:?}");
            assert!(words.iter().any(|word| tools.contains(word)), "{}", template.name);
        }
    }

    #[test]
    fn arguments_take_their_places_once() {
        let arguments = json!({ "base": "{new}", "new": "b.dat" });
        let text = text("judge-a-patch", arguments.as_object().expect("an object")).expect("a text");
        assert!(text.contains("Before: {new}. With the patch: b.dat."), "{text}");
        for (name, arguments) in [
            ("judge-a-patch", json!({ "base": "a" })),
            ("why-was-this-slow", json!({ "trace": "a\nb" })),
            ("none", json!({})),
        ] {
            assert!(super::text(name, arguments.as_object().expect("an object")).is_err(), "{name}");
        }
    }
}
