//! The server: what the protocol asks for, from tools, book and prompts.

use super::answer::{Answer, Budget};
use super::child::{self, Lines, QuestionLimits};
use super::folders::Folders;
use super::tools::{HELP, INFO, OPEN, PAGING, Tool, object};
use super::words::{CommandLine, Paging};
use super::{book, listing, prompts};
use anyhow::{Context, Result};
use question::Answers;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
    ServerConfig, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// Maximum number of questions that run at the same time; each uses all cores.
const MOST_AT_ONCE: usize = 2;

/// Maximum number of questions that run or wait; a further one is refused.
const MOST_WAITING: usize = 16;

/// Maximum length of a request, in bytes. A longer line is dropped.
const MOST_LINE: usize = 1 << 20;

/// The server for one assistant.
pub(super) struct Server {
    tools: Vec<Tool>,
    folders: Folders,
    budget: Budget,
    limits: QuestionLimits,
    running: Semaphore,
    waiting: AtomicUsize,
}

/// Serves the assistant on standard input and output until the input ends.
pub(super) fn serve(server: Server) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("threads")?;
    let served = runtime.block_on(async {
        let transport = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout()).with_max_line_length(MOST_LINE);
        let service = server.serve(transport).await.context("the assistant said nothing that begins a conversation")?;
        service.waiting().await.context("the conversation")?;
        Ok(())
    });
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    served
}

impl Server {
    /// A server about the recordings in these folders.
    pub(super) fn new(folders: Folders, budget: Budget, limits: QuestionLimits) -> Result<Server> {
        let (running, waiting) = (Semaphore::new(MOST_AT_ONCE), AtomicUsize::new(0));
        Ok(Server { tools: Tool::all(), folders, budget, limits, running, waiting })
    }

    fn instructions(&self) -> String {
        let folders: Vec<String> = self.folders.given().map(|folder| folder.display().to_string()).collect();
        let tokens = self.budget.bytes / 3;
        format!(
            "Recordings of the Linux scheduler in {}. Begin with `{OPEN}`, then `findings`. Each further tool is one question. Times (min, max) are \
seconds from the start of the trace, or 150ms, 20us; tasks is a regular expression on names. A field that ends in _ns is in nanoseconds; null is \
unknown, not zero. `trust` lists losses and doubts: pass them on. An answer has at most {tokens} tokens; `left_out` lists what it lacks, with the part \
and from that a further call takes. exit 2: a limit is exceeded; 3: the runs or the losses allow no verdict. `command` is the line that a person types \
to see the same. `{HELP}` has all options of a tool (about=why), which are accepted as well, and the definition of every number \
(about=why#definitions, or a word).",
            folders.join(", ")
        )
    }

    /// The tools for a list: `open` in place of its command.
    fn listed(&self) -> Vec<rmcp::model::Tool> {
        let hints = || ToolAnnotations::new().read_only(true).open_world(false);
        let text = |about: &str| json!({ "type": "string", "description": about });
        let paging = |names: &[&str]| {
            let wanted = PAGING.into_iter().filter(|(name, ..)| names.contains(name));
            let property = |(name, kind, about): (&str, &str, &str)| {
                (name.to_owned(), json!({ "type": kind, "description": about }))
            };
            wanted.map(property).collect::<Map<String, Value>>()
        };
        let mut of_open = paging(&["part", "from", "rows"]);
        of_open.insert("trace".to_owned(), text("A recording, or a folder; all folders without it"));
        let mut of_help = paging(&["from", "rows"]);
        of_help.insert(
            "about".to_owned(),
            text("A tool, a page of the book with or without #anchor, or a word to search for"),
        );
        let own = [
            (
                OPEN,
                "What is there, and what does a recording hold? Lists the files in a folder, or describes a recording: kernel, clock, CPUs, events, \
losses, and what cannot be trusted",
                of_open,
            ),
            (
                HELP,
                "Which options has a tool, and what does a number mean? All options of a tool, or a section of the book",
                of_help,
            ),
        ];
        let own =
            own.map(|(name, about, properties)| rmcp::model::Tool::new(name, about, object(properties, Vec::new())));
        let of_commands = self.tools.iter().filter(|tool| tool.entry.name != INFO);
        let of_commands =
            of_commands.map(|tool| rmcp::model::Tool::new(tool.entry.name, tool.description(), tool.schema()));
        own.into_iter().chain(of_commands).map(|tool| tool.with_annotations(hints())).collect()
    }

    /// Answers a call of a tool.
    async fn answer(&self, name: &str, mut arguments: Map<String, Value>) -> Answer {
        let paging = match Paging::take(&mut arguments) {
            Ok(paging) => paging,
            Err(why) => return Answer::error(String::new(), why),
        };
        let refused = |why| Answer::error(String::new(), why);
        match name {
            OPEN => {
                let place = arguments.get("trace").and_then(Value::as_str);
                let is_folder = |place: &str| self.folders.locate(place).is_ok_and(|path| path.is_dir());
                if place.is_none_or(is_folder) {
                    return match listing::listing(&self.folders, place) {
                        Ok(listed) => Answer::default().showing(&listed, &paging, self.budget),
                        Err(why) => refused(why),
                    };
                }
                self.asked(INFO, &arguments, &paging).await
            }
            HELP => match self.help(arguments.get("about").and_then(Value::as_str)) {
                Ok(text) => Answer::default().showing(&text, &paging, self.budget),
                Err(why) => refused(why),
            },
            name => self.asked(name, &arguments, &paging).await,
        }
    }

    /// Runs the command of a tool.
    async fn asked(&self, name: &str, arguments: &Map<String, Value>, paging: &Paging) -> Answer {
        let refused = |why| Answer::error(String::new(), why);
        let Some(tool) = self.tools.iter().find(|tool| tool.entry.name == name) else {
            return refused(format!("there is no tool {name:?}"));
        };
        let line = match CommandLine::of(tool, arguments, &self.folders) {
            Ok(line) => line,
            Err(why) => return refused(why),
        };
        let _place = match PlaceInLine::taken(&self.waiting) {
            Ok(place) => place,
            Err(why) => return refused(why),
        };
        let Ok(_permit) = self.running.acquire().await else { return refused("the server ends".to_owned()) };
        let (shown, budget) = (line.shown(), self.budget);
        match line.answers {
            Answers::Document => match child::document(&line.run(), self.limits).await {
                Err(why) => Answer::error(shown, why),
                Ok(ran) => {
                    let paging = paging.clone();
                    // A large document takes a moment, in which other requests go on.
                    let made = move || Answer::of_document(shown, &ran, &paging, budget);
                    let answer = tokio::task::spawn_blocking(made).await;
                    answer.unwrap_or_else(|_| {
                        refused("the answer could not be cut; this is a fault of schedviz".to_owned())
                    })
                }
            },
            Answers::Lines => {
                let most = paging.rows.unwrap_or(usize::MAX);
                let bytes = budget.bytes.saturating_sub(shown.len() * 2 + MOST_BESIDE_LINES);
                let wanted = Lines { from: paging.from, most, bytes };
                match child::lines(&line.run(), wanted, self.limits).await {
                    Err(why) => Answer::error(shown, why),
                    Ok(ran) => Answer::of_lines(shown, ran, paging.from),
                }
            }
        }
    }

    /// The options of a tool, a section of the book, or what a search finds in it.
    fn help(&self, about: Option<&str>) -> Result<Value, String> {
        let Some(about) = about.filter(|about| !about.is_empty()) else {
            let pages = book::PAGES.iter().map(|(name, text)| json!({ "page": name, "title": book::title(text) }));
            return Ok(pages.collect());
        };
        let name = if about == OPEN { INFO } else { about };
        if let Some(tool) = self.tools.iter().find(|tool| tool.entry.name == name) {
            let page = book::section(name).map(|section| json!({ "page": name, "anchors": section.anchors }));
            return Ok(json!({ "about": tool.description(), "options": tool.options(), "book": page }));
        }
        if let Some(section) = book::section(about.trim_start_matches(book::ADDRESS)) {
            return Ok(section.lines.into_iter().map(Value::from).collect());
        }
        let found = book::search(about);
        if found.is_empty() {
            return Err(format!(
                "no tool, page or anchor {about:?}, and no line of the book has it; {HELP} lists the pages"
            ));
        }
        Ok(found.into_iter().map(|(page, lines)| json!({ "page": page, "lines": lines })).collect())
    }

    /// The text of a resource. One larger than an answer ends with a whole line, and says what it lacks.
    fn resource(&self, address: &str) -> Option<String> {
        let section = book::section(address.strip_prefix(book::ADDRESS)?)?;
        let all = section.lines.len();
        let note = |shown: usize| {
            format!(
                "({} of {all} lines; anchors of the page, each a resource behind #: {})",
                shown,
                section.anchors.join(", ")
            )
        };
        let most = self.budget.bytes.saturating_sub(note(all).len());
        let (mut text, mut shown) = (String::new(), 0);
        for line in &section.lines {
            if text.len() + line.len() + 1 > most {
                break;
            }
            text.extend([line, "\n"]);
            shown += 1;
        }
        Some(if shown < all { text + &note(shown) } else { text })
    }
}

/// The bytes that an answer of lines may take besides the lines and twice its command line: messages and what is left out.
const MOST_BESIDE_LINES: usize = 1200;

/// A place among the questions that run or wait.
struct PlaceInLine<'s>(&'s AtomicUsize);

impl PlaceInLine<'_> {
    fn taken(waiting: &AtomicUsize) -> Result<PlaceInLine<'_>, String> {
        let place = PlaceInLine(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING {
            return Ok(place);
        }
        Err(format!("{MOST_WAITING} questions run or wait; ask again after one is answered"))
    }
}

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let own = Implementation::new("schedviz", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answered = self.answer(&request.name, request.arguments.unwrap_or_default());
        // A question that is withdrawn ends, and its child with it.
        let Some(answer) = context.ct.run_until_cancelled(answered).await else {
            return Err(ErrorData::internal_error("the request was withdrawn", None));
        };
        let text = vec![ContentBlock::text(answer.text())];
        let is_error = answer.error.is_some();
        Ok(if is_error { CallToolResult::error(text) } else { CallToolResult::success(text) }.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let page = |(name, text): &(&str, &str)| {
            Resource::new(format!("{}{name}", book::ADDRESS), *name)
                .with_title(book::title(text))
                .with_mime_type("text/markdown")
        };
        Ok(ListResourcesResult::with_all_items(book::PAGES.iter().map(page).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let section = ResourceTemplate::new(format!("{}{{page}}#{{anchor}}", book::ADDRESS), "section")
            .with_description("A section of the book, such as the definition of a number")
            .with_mime_type("text/markdown");
        Ok(ListResourceTemplatesResult::with_all_items(vec![section]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let absent =
            || ErrorData::resource_not_found(format!("there is no page {:?} with this anchor", request.uri), None);
        let text = self.resource(&request.uri).ok_or_else(absent)?;
        let contents = ResourceContents::text(text, request.uri.as_str()).with_mime_type("text/markdown");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = prompts::text(&request.name, &request.arguments.unwrap_or_default());
        let text = text.map_err(|why| ErrorData::invalid_params(why, None))?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}
