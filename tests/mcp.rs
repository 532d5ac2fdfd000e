//! `schedviz mcp`, asked by the client of the official SDK. A program of its own, with the features `mcp` and `mcp-client`.
#![allow(dead_code, unused_imports, reason = "the tests of `integration` use the rest of these modules")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "tests state what they skip and what they counted")]

mod support;

use question::Answers;
use rmcp::model::{CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{asked, fixture, root, schedviz, scratch};

/// The size of an answer of 6,000 tokens, in bytes.
const BUDGET: usize = 18_000;

/// A conversation with a server.
struct Conversation {
    client: RunningService<RoleClient, ()>,
    _server: tokio::process::Child,
}

impl Conversation {
    /// Begins a conversation about folders, in the root of the repository.
    async fn about(words: &[&str]) -> Conversation {
        let mut server = tokio::process::Command::new(support::built_program());
        server
            .arg("mcp")
            .args(words)
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut server = server.spawn().expect("the program runs");
        let pipes = (server.stdout.take().expect("its output"), server.stdin.take().expect("its input"));
        Conversation { client: ().serve(pipes).await.expect("a conversation"), _server: server }
    }

    /// Calls a tool; the text of its answer, which is within the budget, and whether it is an error.
    async fn call(&self, tool: &str, arguments: Value) -> (String, bool) {
        let request = CallToolRequestParams::new(tool.to_owned());
        let request = request.with_arguments(arguments.as_object().expect("an object").clone());
        let result = self.client.call_tool(request).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        let [content] = result.content.as_slice() else { panic!("{tool}: {:?}", result.content) };
        let text = content.as_text().expect("a text").text.clone();
        assert!(text.len() <= BUDGET, "{tool}: {} bytes", text.len());
        (text, result.is_error == Some(true))
    }

    /// Calls a tool that answers.
    async fn answer(&self, tool: &str, arguments: Value) -> Value {
        let (text, is_error) = self.call(tool, arguments.clone()).await;
        assert!(!is_error, "{tool} {arguments}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Calls a tool that refuses, and returns its reason.
    async fn refusal(&self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments.clone()).await;
        assert!(is_error, "{tool} {arguments}: {text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["error"].as_str().unwrap_or_else(|| panic!("{text}")).to_owned()
    }
}

/// Runs a test on one thread.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
}

/// The definition of a command with the arguments built.
fn definition(name: &str) -> clap::Command {
    let entry = schedviz::COMMANDS.iter().find(|entry| entry.name == name);
    let mut command = entry.unwrap_or_else(|| panic!("there is no command {name}")).definition();
    command.build();
    command
}

/// The arguments of a request for the words of [`asked`]: positional ones by the names of their values, options by their own.
fn request(name: &str, words: &[String]) -> Value {
    let command = definition(name);
    let mut positional = command.get_positionals();
    let mut arguments = serde_json::Map::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some(option) => drop(arguments.insert(option.to_owned(), words.next().expect("a value").as_str().into())),
            None => {
                let argument = positional.next().unwrap_or_else(|| panic!("{name}: {word}"));
                let value = argument.get_value_names().expect("a name")[0].to_lowercase();
                arguments.insert(value, word.as_str().into());
            }
        }
    }
    arguments.into()
}

/// There is no second list: tools and their arguments are those of the registry, and none writes. The list is small enough for every conversation.
#[test]
fn tools_follow_from_the_registry() {
    run(async {
        let conversation = Conversation::about(&["tests/fixtures"]).await;
        let info = conversation.client.peer_info().expect("the server's own words").clone();
        assert!(
            info.instructions.as_ref().is_some_and(|text| text.contains("tests/fixtures") && text.contains("6000"))
        );
        let tools = conversation.client.list_all_tools().await.expect("tools");
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        let of_registry = schedviz::COMMANDS.iter().filter(|entry| entry.answers.is_some() && entry.name != "info");
        let expected: Vec<&str> = ["open", "help"].into_iter().chain(of_registry.map(|entry| entry.name)).collect();
        assert_eq!(names, expected);
        assert!(names.len() > 22 && ["findings", "why", "compare", "list"].iter().all(|name| names.contains(name)));
        for writes in ["record", "cut", "export", "report", "view", "reproduce", "top", "machine", "manual", "mcp"] {
            assert!(!names.contains(&writes), "{writes}");
        }
        for tool in &tools {
            assert_eq!(tool.annotations.as_ref().and_then(|hints| hints.read_only_hint), Some(true));
            let properties = tool.input_schema["properties"].as_object().expect("properties");
            if ["open", "help"].contains(&&*tool.name) {
                continue;
            }
            let command = definition(&tool.name);
            let about = command.get_about().expect("a description").to_string();
            assert!(tool.description.as_ref().is_some_and(|text| text.contains(&about)), "{}", tool.name);
            let argument = |name: &str| {
                let is_it = |arg: &&clap::Arg| {
                    let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_lowercase());
                    arg.get_long().map_or(value.as_deref() == Some(name), |long| long == name)
                };
                command.get_arguments().find(is_it).cloned()
            };
            let paging = ["part", "from", "rows"];
            for (name, property) in properties.iter().filter(|(name, _)| !paging.contains(&name.as_str())) {
                let argument = argument(name).unwrap_or_else(|| panic!("{} has no {name}", tool.name));
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let listed = property["description"].as_str().unwrap_or_default();
                assert!(
                    help.replace('\n', " ").starts_with(listed) && (listed.len() > 5) == (help.len() > 5),
                    "{name}: {listed}"
                );
                assert!(!["Output", "Figure"].contains(&argument.get_help_heading().unwrap_or_default()), "{name}");
            }
            assert!(properties.contains_key("from") && properties.contains_key("rows"));
            // A name stands for one thing.
            assert!(argument("part").is_none() && argument("from").is_none(), "{}", tool.name);
        }
        let size = serde_json::to_string(&tools).expect("JSON").len();
        println!("{} tools in {size} bytes", tools.len());
        assert!(size < 39_000, "the list of tools has {size} bytes");
    });
}

/// Each question is answered within the limit, with the document of the command; what is left out can be had.
#[test]
fn each_tool_answers_within_the_limit() {
    run(async {
        let conversation = Conversation::about(&["tests/fixtures"]).await;
        let mut seen = 0;
        for entry in schedviz::COMMANDS.iter().filter(|entry| entry.answers.is_some()) {
            let Some(words) = asked(entry, "tests/fixtures/hackbench.dat") else { continue };
            let tool = if entry.name == "info" { "open" } else { entry.name };
            let answer = conversation.answer(tool, request(entry.name, &words)).await;
            let prefix = format!("{}/", root().display());
            let line = format!("schedviz {}", words.join(" ").replace(&prefix, ""));
            assert_eq!(answer["command"].as_str().expect("a command").replace(&prefix, ""), line);
            seen += 1;
            if entry.answers == Some(Answers::Lines) {
                assert!(answer["lines"].as_array().is_some_and(|lines| lines.len() > 20), "{answer}");
                continue;
            }
            let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json", "-q"]).collect();
            let whole: Value = serde_json::from_slice(&schedviz(&words).stdout).expect("JSON");
            let Some(left_out) = answer["left_out"].as_array() else {
                assert_eq!(answer["document"], whole, "{tool}");
                continue;
            };
            for left in left_out.iter().filter(|left| !left["of"].is_null()) {
                let part = whole.pointer(left["part"].as_str().expect("a part")).expect("a part of the document");
                let length = part.as_array().map_or_else(|| part.as_object().expect("an object").len(), Vec::len);
                assert_eq!(left["of"], length, "{tool}: {left}");
            }
        }
        assert!(seen > 20, "{seen} tools");
    });
}

/// The rest of a list is had page by page, with the trust in what is around it, and the same request has the same answer.
#[test]
fn pages_make_up_the_whole() {
    run(async {
        let conversation = Conversation::about(&["tests/fixtures", "--tokens", "2000"]).await;
        let words = ["why", "tests/fixtures/hackbench.dat", "--episode", "1", "--json", "-q"];
        let whole: Value = serde_json::from_slice(&schedviz(&words).stdout).expect("JSON");
        let part = "/runs/0/episode/steps";
        let expected = whole.pointer(part).and_then(Value::as_array).expect("steps");
        let (mut rows, mut from, mut calls) = (Vec::new(), json!(0), 0);
        while !from.is_null() {
            let arguments = json!({ "traces": "hackbench.dat", "episode": 1, "part": part, "from": from });
            let answer = conversation.answer("why", arguments.clone()).await;
            assert!(answer.to_string().len() <= 6000);
            assert_eq!(answer, conversation.answer("why", arguments).await);
            assert!(answer["trust"]["/runs/0"]["trust"].is_array(), "{answer}");
            rows.extend(answer["document"].as_array().expect("rows").clone());
            let rest = answer["left_out"].as_array().and_then(|left| left.iter().find(|left| left["part"] == part));
            from = rest.map_or(Value::Null, |rest| rest["from"].clone());
            calls += 1;
        }
        assert!(rows == *expected && calls > 5, "{calls} calls");
        let few = conversation.answer("list", json!({ "trace": "hackbench.dat", "from": 5, "rows": 3 })).await;
        let all = schedviz(&["list", "tests/fixtures/hackbench.dat", "-q"]).success().text();
        let expected: Vec<&str> = all.lines().skip(5).take(3).collect();
        assert_eq!((&few["lines"], &few["left_out"][0]["from"]), (&json!(expected), &json!(8)));
    });
}

/// No name leads out of the folders: neither upwards nor by links, nor by a file that a command would read beside a recording.
#[test]
fn files_outside_of_the_folders_are_refused() {
    let folder = scratch("mcp-outside");
    let (inside, outside) = (folder.join("inside"), folder.join("outside"));
    for folder in [&inside, &outside, &inside.join("below")] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    for name in ["inside/own.dat", "inside/bound.dat", "inside/below/deep.dat", "outside/secret.dat"] {
        std::fs::copy(fixture("hackbench.dat"), folder.join(name)).expect("copied");
    }
    std::fs::copy(fixture("switches.toml"), outside.join("secret.toml")).expect("copied");
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, inside.join(at)).expect("a link");
    link("../outside/secret.dat", "link.dat");
    link("../outside", "way");
    link("../outside/secret.dat", "bound.machine.json");
    link("own.dat", "alias.dat");
    let given = inside.to_str().expect("a path").to_owned();
    run(async {
        let conversation = Conversation::about(&[&given]).await;
        let secret = outside.join("secret.dat").to_str().expect("a path").to_owned();
        let absent = conversation.refusal("open", json!({ "trace": "absent.dat" })).await;
        for name in [
            &*secret,
            "../outside/secret.dat",
            "link.dat",
            "way/secret.dat",
            "below/../../outside/secret.dat",
            "/etc/passwd",
            "",
        ] {
            let why = conversation.refusal("workcons", json!({ "traces": [name] })).await;
            // What exists elsewhere is not told.
            assert_eq!(why, format!("traces: {}", absent.replace("absent.dat", name)).replace("trace: ", ""), "{name}");
        }
        for (tool, arguments) in [
            ("workcons", json!({ "traces": ["bound.dat"] })),
            ("workcons", json!({ "traces": ["own.dat"], "topology": secret })),
            ("workcons", json!({ "group": format!("a={secret}") })),
            ("workcons", json!({ "group": "a=own.dat,../outside/secret.dat" })),
            ("compare", json!({ "base": [format!("{}/*.dat", outside.display())], "new": ["own.dat"] })),
            ("compare", json!({ "base": ["link*.dat"], "new": ["own.dat"] })),
            ("compare", json!({ "folder": "way" })),
            ("offcpu", json!({ "trace": "own.dat", "kallsyms": secret })),
            ("plot", json!({ "spec": outside.join("secret.toml"), "trace": "own.dat" })),
            ("findings", json!({ "trace": "own.dat", "tasks": secret })),
        ] {
            conversation.refusal(tool, arguments).await;
        }
        // What is inside has its own name, and so has a link to it.
        for name in ["own.dat", "alias.dat", "below/deep.dat", &format!("{given}/own.dat")] {
            let answer = conversation.answer("open", json!({ "trace": name })).await;
            let bare = name.replace("alias", "own").rsplit('/').next().expect("a name").to_owned();
            assert_eq!(answer["document"]["trace"], bare);
        }
        let listed = conversation.answer("open", json!({})).await.to_string();
        assert!(listed.contains("own.dat") && listed.contains("deep.dat") && !listed.contains("secret"), "{listed}");
    });
}

/// No argument writes, starts a program or opens the terminal, by whatever name or value it is asked for.
#[test]
fn nothing_is_written() {
    let folder = scratch("mcp-writes");
    std::fs::copy(fixture("hackbench.dat"), folder.join("a.dat")).expect("copied");
    let given = folder.to_str().expect("a path").to_owned();
    let target = folder.join("written").to_str().expect("a path").to_owned();
    run(async {
        let conversation = Conversation::about(&[&given]).await;
        for (tool, arguments) in [
            ("workcons", json!({ "traces": ["a.dat"], "output": target })),
            ("workcons", json!({ "traces": ["a.dat"], "o": target })),
            ("workcons", json!({ "traces": ["a.dat"], "summary": target })),
            ("workcons", json!({ "traces": ["a.dat"], "format": "csv" })),
            ("workcons", json!({ "traces": ["a.dat", format!("-o{target}")] })),
            ("workcons", json!({ "traces": ["a.dat", format!("--output={target}")] })),
            ("whatif", json!({ "traces": ["a.dat"], "as-trace": target })),
            ("stepper", json!({ "trace": "a.dat", "tui": true })),
            ("record", json!({ "command": ["true"] })),
            ("cut", json!({ "trace": "a.dat" })),
            ("export", json!({ "csv": target })),
        ] {
            conversation.refusal(tool, arguments).await;
        }
        let expression = format!("--output={target}");
        let (text, _) = conversation.call("findings", json!({ "trace": "a.dat", "tasks": expression })).await;
        assert!(text.contains("--tasks=--output="), "{text}");
        // Figures are drawn only where one is asked for.
        conversation.answer("dat2graph", json!({ "trace": "a.dat", "rows": 1 })).await;
        let names: Vec<_> = folder.read_dir().expect("the folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["a.dat"]);
    });
    let left = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("a.");
    assert!(!root().read_dir().expect("the repository").flatten().any(left), "nothing is left where the server runs");
}

/// Hostile and broken requests are errors, after which the server answers on.
#[test]
fn hostile_requests_are_errors() {
    run(async {
        let conversation = Conversation::about(&["tests/fixtures"]).await;
        let trace = "hackbench.dat";
        let long = "x".repeat(200_000);
        for (tool, arguments) in [
            ("nothing", json!({})),
            ("findings", json!({})),
            ("findings", json!({ "trace": 7 })),
            ("findings", json!({ "trace": { "a": 1 } })),
            ("findings", json!({ "trace": [trace, trace] })),
            ("findings", json!({ "trace": trace, "nothing": true })),
            ("findings", json!({ "trace": "hackbench.dat\u{0}" })),
            ("findings", json!({ "trace": trace, "tasks": "(" })),
            ("findings", json!({ "trace": trace, "tasks": long })),
            ("findings", json!({ "trace": trace, "min": "-1e999" })),
            ("findings", json!({ "trace": trace, "min": 9_999_999_999_999_999_999_u64 })),
            ("findings", json!({ "trace": trace, "from": -1 })),
            ("findings", json!({ "trace": trace, "part": "/nothing/at/all" })),
            ("findings", json!({ "trace": trace, "part": 5 })),
            ("workcons", json!({ "traces": vec![trace; 1000] })),
            ("workcons", json!({ "traces": [] })),
            ("why", json!({ "traces": [trace], "episode": 18_446_744_073_709_551_615_u64 })),
            ("help", json!({ "about": "no word of the book is this one" })),
        ] {
            let why = conversation.refusal(tool, arguments).await;
            assert!(!why.is_empty() && why.len() < 6000, "{tool}: {why}");
        }
        // Beyond the end there is nothing, whatever the numbers.
        let most = u64::MAX;
        let beyond = conversation
            .answer("dat2graph", json!({ "trace": trace, "part": "/tasks", "from": most, "rows": most }))
            .await;
        assert_eq!(beyond["document"], json!([]));
        // More at a time than the server takes: each is answered or refused.
        let call = || conversation.call("findings", json!({ "trace": trace, "rows": 1 }));
        let mut all = Vec::new();
        for request in (0..40).map(|_| Box::pin(call())).collect::<Vec<_>>() {
            all.push(request);
        }
        let results = joined(all).await;
        let refused = results.iter().filter(|(text, is_error)| *is_error && text.contains("16 questions")).count();
        let answered: BTreeSet<&String> =
            results.iter().filter(|(_, is_error)| !is_error).map(|(text, _)| text).collect();
        assert_eq!((answered.len(), refused), (1, 24), "{results:?}");
    });
}

/// All results of futures that run at the same time.
async fn joined<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = std::pin::Pin::new(future).poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// What a client writes is bounded: a line beyond a mebibyte is dropped, and one that is no request is an error.
#[test]
fn the_line_of_a_request_has_a_limit() {
    let mut server = Command::new(support::built_program());
    let server =
        server.args(["mcp", "tests/fixtures"]).current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = server.stderr(Stdio::null()).spawn().expect("the program runs");
    let mut input = server.stdin.take().expect("its input");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } } });
    let ask = |id: u32, about: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "help", "arguments": { "about": about } } });
    let lines = [
        hello.to_string(),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        ask(2, &"y".repeat(2 << 20)).to_string(),
        "no JSON at all".to_owned(),
        "[".repeat(100_000),
        ask(3, "questions/why.md").to_string(),
    ];
    input.write_all((lines.join("\n") + "\n").as_bytes()).expect("written");
    drop(input);
    let output = server.wait_with_output().expect("it ends with its input");
    let text = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ids: Vec<&Value> = answers.iter().filter(|answer| answer.get("result").is_some()).map(|a| &a["id"]).collect();
    assert_eq!((ids, output.status.code()), (vec![&json!(1), &json!(3)], Some(0)), "{text}");
}

/// Pages of the book are resources, whole or by anchor, and prompts have their arguments in them.
#[test]
fn the_book_and_the_prompts_are_there() {
    run(async {
        let conversation = Conversation::about(&["tests/fixtures"]).await;
        let pages = conversation.client.list_all_resources().await.expect("resources");
        assert!(pages.len() > 35, "{} pages", pages.len());
        for page in &pages {
            let read = conversation.client.read_resource(ReadResourceRequestParams::new(page.uri.clone())).await;
            let text = serde_json::to_value(read.expect("a page")).expect("JSON")["contents"][0]["text"].clone();
            let text = text.as_str().expect("a text").to_owned();
            assert!(text.starts_with("# ") && text.len() <= BUDGET, "{}: {}", page.uri, text.len());
        }
        let section = ReadResourceRequestParams::new("schedviz://book/questions/findings#cost");
        let section = serde_json::to_value(conversation.client.read_resource(section).await.expect("a section"));
        assert!(section.expect("JSON")["contents"][0]["text"].as_str().is_some_and(|text| text.starts_with("*Cost.*")));
        for address in ["schedviz://book/../Cargo.toml", "file:///etc/passwd", "schedviz://book/begin#no-such"] {
            assert!(conversation.client.read_resource(ReadResourceRequestParams::new(address)).await.is_err());
        }
        let prompts = conversation.client.list_all_prompts().await.expect("prompts");
        let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!(names, ["judge-a-patch", "why-was-this-slow", "write-the-mail"]);
        let arguments = json!({ "trace": "hackbench.dat" }).as_object().cloned().expect("an object");
        let prompt = GetPromptRequestParams::new("why-was-this-slow").with_arguments(arguments);
        let prompt = serde_json::to_string(&conversation.client.get_prompt(prompt).await.expect("a prompt"));
        assert!(prompt.expect("JSON").contains("held back the command in hackbench.dat"));
        let options = conversation.answer("help", json!({ "about": "why", "part": "/options" })).await;
        let options = options["document"].as_array().expect("options");
        assert!(options.iter().any(|option| option["name"] == "assume-bound"), "{options:?}");
        assert!(!options.iter().any(|option| option["name"] == "output" || option["name"] == "quiet"));
    });
}

/// "Did the patch help, why, and show me the worst episode" on two folders of runs: three calls, and each answer within the limit.
#[test]
fn a_patch_is_judged_in_four_calls() {
    let folder = scratch("mcp-judge");
    // Five parts a side of one recording: the first half violates work conservation, the end hardly.
    for (side, first) in [("old", 0.25), ("new", 0.75)] {
        std::fs::create_dir_all(folder.join(side)).expect("a folder");
        for run in 0..5 {
            let from = first + 0.07 * f64::from(run);
            let (min, max) = (format!("{from:.2}"), format!("{:.2}", from + 0.07));
            let part = folder.join(side).join(format!("{run}.dat"));
            let part = part.to_str().expect("a path");
            schedviz(&["cut", "tests/fixtures/hackbench.dat", "--min", &min, "--max", &max, "-o", part, "-q"])
                .success();
        }
    }
    let given = folder.to_str().expect("a path").to_owned();
    run(async {
        let conversation = Conversation::about(&[&given]).await;
        let compared = conversation.answer("compare", json!({ "base": ["old/*.dat"], "new": ["new/*.dat"] })).await;
        let finding = compared["document"]["comparisons"][0]["explanation"]["finding"].as_str().expect("a finding");
        assert!(finding.contains("violates work conservation"), "{finding}");
        let rows = compared["document"]["comparisons"][0]["rows"].as_array().expect("rows");
        let violation = rows.iter().find(|row| row["key"] == "violation").expect("the violation");
        assert!(violation["p"].is_number() && violation["base"]["runs"] == 5, "{violation}");
        // Why: the origins of the violation in the run that has the most of it.
        let runs = compared["document"]["groups"][0]["runs"].as_array().expect("runs");
        let most = |a: &&Value, b: &&Value| {
            a["values"]["violation"]
                .as_f64()
                .unwrap_or(0.0)
                .total_cmp(&b["values"]["violation"].as_f64().unwrap_or(0.0))
        };
        let worst = runs.iter().max_by(most).expect("a run")["trace"].as_str().expect("a name").to_owned();
        let name = format!("old/{}", Path::new(&worst).file_name().expect("a name").to_string_lossy());
        let why = conversation.answer("why", json!({ "traces": [name] })).await;
        let of_run = &why["document"]["runs"][0];
        assert!(of_run["violation_percent"].as_f64().is_some_and(|percent| percent > 5.0), "{why}");
        assert!(of_run["waiting"]["rows"][0]["began"].is_string(), "{why}");
        // The worst episode, step by step.
        let arguments = json!({ "traces": [name], "episode": 1, "part": "/runs/0/episode" });
        let episode = conversation.answer("why", arguments).await;
        let steps = episode["document"]["steps"].as_array().expect("steps");
        assert!(steps.len() > 3 && steps.iter().all(|step| step["words"].is_string()), "{episode}");
        assert_eq!(episode["command"].as_str().map(|line| line.ends_with("--episode 1")), Some(true));
    });
}

/// The calls of the transcript in the book.
const TRANSCRIPT: [(&str, &str); 5] = [
    ("open", r#"{"trace":"hackbench.dat"}"#),
    ("findings", r#"{"trace":"hackbench.dat"}"#),
    ("why", r#"{"traces":["hackbench.dat"],"part":"/runs/0/waiting","rows":1}"#),
    ("why", r#"{"traces":["hackbench.dat"],"episode":1,"part":"/runs/0/episode","rows":2}"#),
    ("workcons", r#"{"traces":["../../etc/passwd"]}"#),
];

/// Columns, and lines of an answer, of the transcript.
const TRANSCRIPT_SIZE: (usize, usize) = (118, 9);

/// A text in lines that end behind commas, where it has some.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([',', ' ']) {
        let last = lines.last_mut().expect("a line");
        if last.chars().count() + word.chars().count() > columns && !last.is_empty() {
            lines.push(word.to_owned());
        } else {
            last.push_str(word);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The transcript in the book is what the client gets. `SCHEDVIZ_BLESS=1` writes it.
#[test]
fn the_transcript_of_the_book_is_what_a_client_gets() {
    run(async {
        let conversation = Conversation::about(&["tests/fixtures"]).await;
        let (columns, most) = TRANSCRIPT_SIZE;
        let mut lines = vec!["```text".to_owned()];
        for (tool, arguments) in TRANSCRIPT {
            let (text, _) = conversation.call(tool, serde_json::from_str(arguments).expect("JSON")).await;
            let all = wrapped(&text, columns);
            let cut = (all.len() > most).then(|| format!("… ({} of {} lines)", most, all.len()));
            lines.push(format!("> {tool} {arguments}"));
            lines.extend(all.into_iter().take(most).chain(cut).chain([String::new()]));
        }
        lines.pop();
        lines.push("```".to_owned());
        let mark = "<!-- transcript -->\n";
        let page = std::fs::read_to_string(root().join("docs/questions/mcp.md")).expect("the page");
        let (before, rest) = page.split_once(mark).expect("the mark");
        let behind = rest.strip_prefix("```text\n").map_or(rest, |rest| rest.split_once("\n```\n").expect("an end").1);
        support::kept("docs/questions/mcp.md", &format!("{before}{mark}{}\n{behind}", lines.join("\n")));
    });
}
