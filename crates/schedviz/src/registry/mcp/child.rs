//! A question as a run of this program.
//!
//! The child has no standard input, and ends when the request is withdrawn or takes too long. Its output is bounded: a document beyond the limit is
//! refused as a whole, lines are read no further than the answer needs.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// Maximum size of a document that is read, in bytes.
const MOST_DOCUMENT: u64 = 32 << 20;

/// Maximum size of the messages that are kept, in bytes.
const MOST_MESSAGES: u64 = 64 << 10;

/// Maximum size of a line that is read as one, in bytes.
const MOST_LINE: u64 = 64 << 10;

/// The limits of a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuestionLimits {
    /// The time after which it is given up.
    time: Duration,
}

impl QuestionLimits {
    /// The limits with this number of seconds.
    pub(super) fn seconds(seconds: u32) -> QuestionLimits {
        QuestionLimits { time: Duration::from_secs(seconds.into()) }
    }
}

/// The lines that are wanted of an output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// The index of the first line.
    pub(super) from: usize,
    /// Maximum number of lines.
    pub(super) most: usize,
    /// Maximum size of the lines together, in bytes of JSON.
    pub(super) bytes: usize,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub(super) struct Ran<O> {
    /// The standard output.
    pub(super) output: O,
    /// The standard error, as far as it is kept.
    pub(super) messages: String,
    /// The exit status; none if a signal ended the run, or if no more lines were needed.
    pub(super) code: Option<i32>,
}

/// Some lines of an output.
#[derive(Clone, Debug)]
pub(super) struct SomeLines {
    /// The lines that were read.
    pub(super) lines: Vec<String>,
    /// Whether there are more behind them.
    pub(super) has_more: bool,
}

/// Runs a command whose output is one document.
pub(super) async fn document(words: &[&str], limits: QuestionLimits) -> Result<Ran<Vec<u8>>, String> {
    in_time(limits, async {
        let (mut child, stdout, stderr) = start(words)?;
        let (output, messages) = tokio::join!(bounded(stdout, MOST_DOCUMENT), messages(stderr));
        if output.len() as u64 > MOST_DOCUMENT {
            let most = MOST_DOCUMENT >> 20;
            return Err(format!("the answer is larger than {most} MiB; ask about a shorter window or fewer tasks"));
        }
        Ok(Ran { output, messages, code: code(child.wait().await)? })
    })
    .await
}

/// Runs a command that prints lines, as far as they are wanted.
pub(super) async fn lines(words: &[&str], wanted: Lines, limits: QuestionLimits) -> Result<Ran<SomeLines>, String> {
    in_time(limits, async {
        let (mut child, stdout, stderr) = start(words)?;
        let (found, messages) = tokio::join!(some_lines(stdout, wanted), messages(stderr));
        let output = found?;
        // With lines left in it the child has been told by the closed pipe, or is ended with `child`.
        let code = if output.has_more { None } else { code(child.wait().await)? };
        Ok(Ran { output, messages, code })
    })
    .await
}

/// Waits for a question, up to its time.
async fn in_time<T>(limits: QuestionLimits, question: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let seconds = limits.time.as_secs();
    let late =
        |_| format!("no answer within {seconds} s; ask about a shorter window, with fast-window where it is known");
    tokio::time::timeout(limits.time, question).await.map_err(late)?
}

/// A child with its output and its messages.
type Piped = (Child, tokio::process::ChildStdout, tokio::process::ChildStderr);

fn start(words: &[&str]) -> Result<Piped, String> {
    let program = std::env::current_exe().map_err(|error| format!("the program itself: {error}"))?;
    let mut command = Command::new(program);
    command.args(words).env("COLUMNS", "80").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().map_err(|error| format!("the program itself: {error}"))?;
    match (child.stdout.take(), child.stderr.take()) {
        (Some(stdout), Some(stderr)) => Ok((child, stdout, stderr)),
        _ => Err("the program has no output".to_owned()),
    }
}

fn code(status: std::io::Result<ExitStatus>) -> Result<Option<i32>, String> {
    let status = status.map_err(|error| error.to_string())?;
    match status.code() {
        Some(code) => Ok(Some(code)),
        None => Err(format!("the question ended by itself ({status}); this is a fault of schedviz")),
    }
}

/// The bytes of an output, up to one more than a limit.
async fn bounded(output: impl AsyncRead + Unpin, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A broken pipe ends the output like its end.
    let _ = output.take(most + 1).read_to_end(&mut bytes).await;
    bytes
}

/// The first messages; those beyond the limit are read and dropped, so that the child does not wait.
async fn messages(mut output: impl AsyncRead + Unpin) -> String {
    let kept = bounded(&mut output, MOST_MESSAGES).await;
    let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

/// The lines that are wanted.
async fn some_lines(output: impl AsyncRead + Unpin, wanted: Lines) -> Result<SomeLines, String> {
    let mut reader = BufReader::new(output);
    let (mut lines, mut length, mut index) = (Vec::new(), 0, 0usize);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(MOST_LINE + 1).read_until(b'\n', &mut line).await;
        if read.map_err(|error| error.to_string())? == 0 {
            return Ok(SomeLines { lines, has_more: false });
        }
        if line.len() as u64 > MOST_LINE {
            return Err(format!("line {index} is longer than {} KiB", MOST_LINE >> 10));
        }
        if index >= wanted.from {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            length += serde_json::Value::from(text.as_str()).to_string().len() + 1;
            if lines.len() == wanted.most || length > wanted.bytes {
                return Ok(SomeLines { lines, has_more: true });
            }
            lines.push(text);
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
    }

    /// The child here is this test's own program.
    #[test]
    fn a_question_has_a_time() {
        let none = QuestionLimits { time: Duration::ZERO };
        let why = block_on(document(&["--list"], none)).expect_err("no time");
        assert!(why.starts_with("no answer within 0 s"), "{why}");
        let ran =
            block_on(document(&["--list", "a_question_has"], QuestionLimits::seconds(60))).expect("a list of tests");
        assert!(ran.code == Some(0) && String::from_utf8_lossy(&ran.output).contains("a_question_has_a_time: test"));
        let refused = block_on(document(&["--no-such-option"], QuestionLimits::seconds(60))).expect("an end");
        assert!(refused.code == Some(1) && !refused.messages.is_empty() || refused.code.is_some_and(|code| code > 1));
    }

    /// Lines are read as far as they are wanted.
    #[test]
    fn an_output_is_read_as_far_as_it_is_needed() {
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let of = |from, most, bytes| block_on(some_lines(text.as_bytes(), Lines { from, most, bytes })).expect("lines");
        let few = of(3, 2, 1000);
        assert_eq!((few.lines, few.has_more), (vec!["line 3".to_owned(), "line 4".to_owned()], true));
        assert_eq!(
            (of(998, 9, 1000).lines.len(), of(998, 9, 1000).has_more, of(5000, 9, 1000).lines.len()),
            (2, false, 0)
        );
        assert!(of(0, 999, 100).lines.len() < 12);
        let long = vec![b'x'; 1 << 20];
        assert!(block_on(some_lines(long.as_slice(), Lines { from: 0, most: 1, bytes: 9 })).is_err());
        assert_eq!(block_on(bounded(long.as_slice(), 10)).len(), 11);
        assert_eq!(block_on(messages(long.as_slice())).len() as u64, MOST_MESSAGES + 1);
    }
}
