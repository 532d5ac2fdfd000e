//! The local server: connections, and the checks that every request passes.

use crate::serve::http::{Answer, Request, Timed, Unread};
use crate::serve::places::ConnectionPlaces;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A server on this machine alone.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

/// A function that answers a request, given its path behind the token. It is called on the threads of the connections,
/// several at once.
pub(crate) type Handler<'h> = dyn Fn(&str, &Request) -> Answer + Sync + 'h;

/// The time until another connection is accepted where the process has no descriptor left for one.
const WITHOUT_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Whether a failure to accept a connection is over with that connection, so that the next one can be accepted at once.
fn is_over(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// The next connection. Where the process has no descriptors, room is made and a while passes before the next attempt: the
/// connection stays in the queue, and another attempt would fail at once.
fn next<T>(
    mut accept: impl FnMut() -> io::Result<T>,
    mut make_room: impl FnMut(),
    mut wait: impl FnMut(Duration),
) -> T {
    loop {
        match accept() {
            Ok(accepted) => return accepted,
            Err(error) if is_over(&error) => {}
            Err(_) => {
                make_room();
                wait(WITHOUT_DESCRIPTORS);
            }
        }
    }
}

impl Server {
    /// Listens at this port of 127.0.0.1; 0 for any that is free.
    pub fn new(port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            let reason = match error.kind() {
                io::ErrorKind::PermissionDenied => "only root may listen at this port; choose one from 1024 on",
                io::ErrorKind::AddrInUse => "another program listens at this port; choose another one",
                _ => return error,
            };
            io::Error::new(error.kind(), reason)
        })?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Server { address: listener.local_addr()?, listener, token })
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/index.html", self.address, self.token)
    }

    /// Serves until the process ends.
    pub(crate) fn serve(&self, handler: &Handler<'_>) -> io::Result<()> {
        let places = ConnectionPlaces::default();
        std::thread::scope(|scope| {
            loop {
                let (stream, _) = next(|| self.listener.accept(), || places.close_oldest(), std::thread::sleep);
                let stream = Arc::new(stream);
                let number = places.enter(stream.clone());
                let places = &places;
                // Where no thread can be started the connection is closed.
                let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                    // A broken connection ends itself alone.
                    let _ = self.converse(&stream, handler, &mut || places.prove(number));
                    places.leave(number);
                });
                if started.is_err() {
                    places.leave(number);
                }
            }
        })
    }

    /// Answers the requests of a connection. `proven` is called at each request with the token, and returns whether there is
    /// a place for the connection.
    fn converse(&self, stream: &TcpStream, handler: &Handler<'_>, proven: &mut dyn FnMut() -> bool) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut out = Timed::answers(stream);
        let mut requests = BufReader::new(Timed::requests(stream));
        loop {
            requests.get_mut().begin();
            out.begin();
            let request = match Request::read(&mut requests) {
                Ok(request) => request,
                Err(Unread::Gone) => return Ok(()),
                Err(Unread::Bad(status, why)) => return Answer::refused(status, why).write(&mut out, true, true),
            };
            let with_place = |path: &str, request: &Request| match proven() {
                true => handler(path, request),
                false => Answer::refused(503, "there are too many connections"),
            };
            let answer = self.answer(&request, with_place);
            answer.write(&mut out, request.method != "HEAD", request.closes)?;
            if request.closes {
                return Ok(());
            }
        }
    }

    /// The answer to a request; a refusal where another site, or another program, asks.
    fn answer(&self, request: &Request, handler: impl FnOnce(&str, &Request) -> Answer) -> Answer {
        let ours = hosts(self.address.port());
        if !request.host.as_ref().is_some_and(|host| ours.contains(host)) {
            // A name that another site has resolved to this machine.
            return Answer::refused(403, "the host is not this one");
        }
        let is_ours =
            |origin: &String| origin.strip_prefix("http://").is_some_and(|host| ours.iter().any(|o| o == host));
        if !request.origin.as_ref().is_none_or(is_ours) {
            return Answer::refused(403, "the origin is not this page");
        }
        // A link on another site may open the page, whose address has the token, but nothing else.
        let is_page = [format!("/{}/", self.token), format!("/{}/index.html", self.token)].contains(&request.path);
        if request.site.as_deref() == Some("cross-site") && !is_page {
            return Answer::refused(403, "another site asks");
        }
        if request.method != "GET" && request.method != "HEAD" {
            return Answer::refused(405, "only GET and HEAD are answered");
        }
        let path = request.path.strip_prefix('/').and_then(|path| path.split_once('/'));
        match path {
            Some((token, path)) if same(token, &self.token) => handler(path, request),
            _ => Answer::refused(404, "no such page; open the address that schedviz view has printed"),
        }
    }
}

/// The names of this server in requests. Browsers leave the port of HTTP out.
fn hosts(port: u16) -> Vec<String> {
    let names = ["127.0.0.1", "localhost"];
    let with_port = names.iter().map(|name| format!("{name}:{port}"));
    with_port.chain(names.iter().filter(|_| port == 80).map(|name| (*name).to_owned())).collect()
}

/// Whether two texts are the same, in a time that does not show where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process without descriptors does not try again at once, and closes silent connections for the next one.
    #[test]
    fn accepting_waits_where_there_are_no_descriptors() {
        let errors = |kinds: &[io::ErrorKind]| kinds.iter().map(|kind| io::Error::from(*kind)).collect::<Vec<_>>();
        let mut failures = errors(&[io::ErrorKind::ConnectionAborted, io::ErrorKind::Interrupted]);
        // EMFILE, ENFILE, ENOMEM.
        failures.extend([24, 23, 12].map(io::Error::from_raw_os_error));
        let (mut failures, mut rooms, mut waits) = (failures.into_iter(), 0, Vec::new());
        let accepted = next(|| failures.next().map_or(Ok(7), Err), || rooms += 1, |time| waits.push(time));
        assert_eq!((accepted, rooms, waits), (7, 3, vec![WITHOUT_DESCRIPTORS; 3]));
    }

    #[test]
    fn the_port_of_http_is_left_out_by_browsers() {
        assert_eq!(hosts(80), ["127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"]);
        assert_eq!(hosts(8080), ["127.0.0.1:8080", "localhost:8080"]);
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_with_a_remedy() {
        let first = Server::new(0).expect("a port");
        let error = Server::new(first.address.port()).expect_err("it is taken");
        assert_eq!(error.to_string(), "another program listens at this port; choose another one");
    }
}
