//! The local server: connections, and the checks that every request passes.

use crate::http::{Answer, PATIENCE, Request, Unread};
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of connections at a time; browsers open six for each address.
const CONNECTIONS: usize = 64;

/// A server on this machine alone.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

/// Gives the answer to a request by its path behind the token.
pub(crate) type Handler<'h> = dyn Fn(&str, &Request) -> Answer + Sync + 'h;

impl Server {
    /// Listens at this port of 127.0.0.1; 0 for any that is free.
    pub fn new(port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
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
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            loop {
                // A connection that was closed before it was accepted is no reason to stop.
                let Ok((stream, _)) = self.listener.accept() else { continue };
                if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                    open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let open = &open;
                scope.spawn(move || {
                    // A broken connection ends itself alone.
                    let _ = self.converse(stream, handler);
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        })
    }

    /// Answers the requests of a connection.
    fn converse(&self, stream: TcpStream, handler: &Handler<'_>) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut out = stream.try_clone()?;
        let mut stream = BufReader::new(stream);
        loop {
            let request = match Request::read(&mut stream) {
                Ok(request) => request,
                Err(Unread::Gone) => return Ok(()),
                Err(Unread::Bad(status, why)) => return Answer::refused(status, why).write(&mut out, true, true),
            };
            let answer = self.answer(&request, handler);
            answer.write(&mut out, request.method != "HEAD", request.closes)?;
            if request.closes {
                return Ok(());
            }
        }
    }

    /// The answer to a request; a refusal where another site, or another program, asks.
    fn answer(&self, request: &Request, handler: &Handler<'_>) -> Answer {
        let port = self.address.port();
        let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
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

/// Whether two texts are the same, in a time that does not show where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}
