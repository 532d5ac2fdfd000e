//! The part of HTTP/1.1 that the page needs: requests without a body, answers of known length.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The maximum number of bytes of a request.
const MOST: u64 = 8 << 10;
/// The maximum number of parts of a query.
const PARTS: usize = 16;
/// A connection on which nothing arrives is closed after this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time for all of a request from its first byte on.
const WHOLE_REQUEST: Duration = Duration::from_secs(10);
/// The time for all of an answer.
const WHOLE_ANSWER: Duration = Duration::from_secs(120);

/// A connection on which each read and each write, all reads of a request and all writes of an answer have their limit of
/// time: bytes that come one by one hold it no longer than a silence.
pub(crate) struct Timed<'s> {
    stream: &'s TcpStream,
    /// The instant at which the request or the answer must be complete, once its first byte has passed.
    deadline: Option<Instant>,
    /// The time from the first byte to the deadline.
    whole: Duration,
}

impl<'s> Timed<'s> {
    /// The connection for reading requests.
    pub(crate) fn requests(stream: &'s TcpStream) -> Timed<'s> {
        Timed { stream, deadline: None, whole: WHOLE_REQUEST }
    }

    /// The connection for writing answers.
    pub(crate) fn answers(stream: &'s TcpStream) -> Timed<'s> {
        Timed { stream, deadline: None, whole: WHOLE_ANSWER }
    }

    /// Begins another request or answer, with a time of its own.
    pub(crate) fn begin(&mut self) {
        self.deadline = None;
    }

    /// The time that the next read or write may take.
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.min(PATIENCE)) }
    }

    fn passed(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + self.whole);
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let count = self.stream.read(bytes)?;
        self.passed();
        Ok(count)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let count = self.stream.write(bytes)?;
        self.passed();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A request of a browser, without a body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, without a query.
    pub(crate) path: String,
    query: Vec<(String, String)>,
    /// The values of headers that can show that another site asks; each may occur once.
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) site: Option<String>,
    /// Whether the connection is to be closed after the answer.
    pub(crate) closes: bool,
}

/// The reasons for which a request is not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The other side has closed the connection, or is silent.
    Gone,
    /// The request is not one of these; with the status to answer.
    Bad(u16, &'static str),
}

impl From<io::Error> for Unread {
    fn from(_: io::Error) -> Unread {
        Unread::Gone
    }
}

impl Request {
    /// The value of a part of the query.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
    }

    /// The next request of a connection.
    pub(crate) fn read<R: Read>(stream: &mut BufReader<R>) -> Result<Request, Unread> {
        let mut room = stream.take(MOST);
        let mut line = || -> Result<String, Unread> {
            let mut bytes = Vec::new();
            room.read_until(b'\n', &mut bytes)?;
            if bytes.last() != Some(&b'\n') {
                return Err(if room.limit() == 0 { Unread::Bad(431, "the request is too long") } else { Unread::Gone });
            }
            while bytes.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
                bytes.pop();
            }
            String::from_utf8(bytes).map_err(|_| Unread::Bad(400, "the request is not text"))
        };
        let first = line()?;
        let bad = Unread::Bad(400, "this is not a request");
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(bad);
        };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(bad);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').filter(|part| !part.is_empty()).take(PARTS).map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(key, true), decoded(value, true))
        });
        let mut request = Request {
            method: method.to_owned(),
            path: decoded(path, false),
            query: query.collect(),
            closes: version == "HTTP/1.0",
            ..Request::default()
        };
        loop {
            let header = line()?;
            if header.is_empty() {
                return Ok(request);
            }
            let Some((name, value)) = header.split_once(':') else { return Err(bad) };
            if !is_token(name) {
                return Err(bad);
            }
            let value = value.trim().to_owned();
            let once = |place: &mut Option<String>| match place.replace(value.clone()) {
                Some(_) => Err(Unread::Bad(400, "a header is given twice")),
                None => Ok(()),
            };
            match name.to_ascii_lowercase().as_str() {
                "host" => once(&mut request.host)?,
                "origin" => once(&mut request.origin)?,
                "sec-fetch-site" => once(&mut request.site)?,
                "connection" => request.closes |= value.eq_ignore_ascii_case("close"),
                "content-length" if value != "0" => return Err(Unread::Bad(413, "a request has no body here")),
                "transfer-encoding" => return Err(Unread::Bad(413, "a request has no body here")),
                _ => {}
            }
        }
    }
}

/// Whether this is the name of a header. A blank before the colon is none: programs between browser and server read it in
/// different ways.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The text that a part of an address stands for. Bytes that are no text are replaced.
fn decoded(text: &str, is_query: bool) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) if is_query => out.push(b' '),
            (byte, ..) => out.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An answer to a request, of known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
    /// The name of the file that a browser is to save.
    pub(crate) saved_as: Option<String>,
}

/// JSON, as a type of content.
pub(crate) const JSON: &str = "application/json; charset=utf-8";

impl Answer {
    /// An answer of success with this type of content.
    pub(crate) fn of(kind: &'static str, body: Vec<u8>) -> Answer {
        Answer { status: 200, kind, body, saved_as: None }
    }

    /// A refusal, with its reason.
    pub(crate) fn refused(status: u16, why: &str) -> Answer {
        let body = serde_json::json!({ "error": why }).to_string().into_bytes();
        Answer { status, kind: JSON, body, saved_as: None }
    }

    /// Writes the answer; without the body where that is not wanted.
    pub(crate) fn write(&self, out: &mut impl Write, with_body: bool, closes: bool) -> io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            410 => "Gone",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        for (name, value) in HEADERS {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(name) = &self.saved_as {
            head += &format!("Content-Disposition: attachment; filename=\"{name}\"\r\n");
        }
        if closes {
            head += "Connection: close\r\n";
        }
        head += &format!("Content-Type: {}\r\nContent-Length: {}\r\n\r\n", self.kind, self.body.len());
        let mut all = head.into_bytes();
        if with_body {
            all.extend_from_slice(&self.body);
        }
        // One write, so that no packet waits for the acknowledgement of another.
        out.write_all(&all)?;
        out.flush()
    }
}

/// The page loads nothing from elsewhere, runs only its own files, and is shown in no other page.
const HEADERS: [(&str, &str); 6] = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
         worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that come one by one never let a limit for each read pass: the one for all of a request does.
    #[test]
    fn a_request_that_comes_byte_by_byte_has_a_limit_as_a_whole() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (stream, _) = listener.accept().expect("accepted");
        let slow = std::thread::spawn(move || {
            // Until the other side closes the connection.
            while client.write_all(b"G").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut timed = Timed { whole: Duration::from_millis(50), ..Timed::requests(&stream) };
        let mut bytes = Vec::new();
        let error = timed.read_to_end(&mut bytes).expect_err("a limit");
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        // The next request has a time of its own.
        timed.begin();
        assert_eq!(timed.read(&mut [0; 1]).expect("a byte"), 1);
        drop(stream);
        slow.join().expect("ended");
    }

    #[test]
    fn addresses_are_decoded() {
        assert_eq!(decoded("a%20b+c%zz%", false), "a b+c%zz%");
        assert_eq!(decoded("a%20b+c%C3%A9%ff", true), "a b cé\u{fffd}");
    }

    fn read(bytes: &[u8]) -> Result<Request, Option<u16>> {
        Request::read(&mut BufReader::new(bytes)).map_err(|unread| match unread {
            Unread::Gone => None,
            Unread::Bad(status, _) => Some(status),
        })
    }

    #[test]
    fn requests_are_read_and_others_refused() {
        let request = read(b"GET /a%2Fb?from=5&q=x+y%26z&from=6 HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\nrest")
            .expect("one");
        assert_eq!((request.path.as_str(), request.closes, request.host.as_deref()), ("/a/b", true, Some("h")));
        assert_eq!((request.get("from"), request.get("q"), request.get("x")), (Some("5"), Some("x y&z"), None));
        assert_eq!(read(b"GET / HTTP/1.1\r\nHost: h\r\n"), Err(None), "it is not complete");
        for (bytes, status) in [
            (&b"\r\n\r\n"[..], 400),
            (b"GET / HTTP/2\r\n\r\n", 400),
            (b"GET http://x/ HTTP/1.1\r\n\r\n", 400),
            (b"GET / x HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n\xff: x\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nOrigin: a\r\norigin: b\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: a\r\n Origin: b\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n: a\r\n\r\n", 400),
            (&[b'x'; 10_000], 431),
        ] {
            assert_eq!(read(bytes), Err(Some(status)), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn no_bytes_are_a_reason_to_panic() {
        let good = b"GET /token/t/0/at.json?cpu=1&at=%32 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nOrigin: http://x\r\n\r\n";
        let mut rng = testkit::Rng::new(5);
        let mut answered = 0;
        for _ in 0..20_000 {
            let mut bytes = good.to_vec();
            for _ in 0..rng.below(6) {
                let at = rng.below(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] = rng.below(256) as u8,
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, b"\r\n%: /?&="[rng.below(9)]),
                }
            }
            answered += usize::from(read(&bytes).is_ok());
        }
        assert!((2_000..18_000).contains(&answered), "{answered}");
    }

    #[test]
    fn an_answer_is_complete() {
        let mut out = Vec::new();
        let answer = Answer { saved_as: Some("x.pdf".into()), ..Answer::of("text/plain", b"hello".to_vec()) };
        answer.write(&mut out, true, true).expect("a vector");
        let text = String::from_utf8(out).expect("text");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Security-Policy: default-src 'none'; script-src 'self';"));
        assert!(text.ends_with(
            "Content-Disposition: attachment; filename=\"x.pdf\"\r\nConnection: close\r\nContent-Type: text/plain\r\n\
             Content-Length: 5\r\n\r\nhello"
        ));
    }
}
