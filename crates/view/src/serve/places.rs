//! The places of connections. One that has not shown the token yet has a place until others need it: the oldest of them is
//! closed for a new one, so that silent connections of other programs lock no browser out. One that has shown the token
//! keeps its place.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of connections that have not shown the token.
pub(crate) const STRANGERS: usize = 32;

/// The maximum number of connections that have shown the token; browsers open six for each address.
pub(crate) const PROVEN: usize = 64;

/// The places that are taken.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPlaces {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// The number of the next connection.
    next: u64,
    /// The connections that have not shown the token, the oldest first.
    strangers: VecDeque<(u64, Arc<TcpStream>)>,
    /// The numbers of the connections that have shown the token.
    proven: Vec<u64>,
}

impl Taken {
    /// Closes the oldest connection without the token: its thread then ends.
    fn close_oldest(&mut self) {
        if let Some((_, stream)) = self.strangers.pop_front() {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl ConnectionPlaces {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place to a new connection; returns its number.
    pub(crate) fn enter(&self, stream: Arc<TcpStream>) -> u64 {
        let mut taken = self.taken();
        if taken.strangers.len() >= STRANGERS {
            taken.close_oldest();
        }
        let number = taken.next;
        taken.next += 1;
        taken.strangers.push_back((number, stream));
        number
    }

    /// Notes that a connection has shown the token; returns whether there is a place for it.
    pub(crate) fn prove(&self, number: u64) -> bool {
        let mut taken = self.taken();
        if taken.proven.contains(&number) {
            return true;
        }
        let is_known = taken.strangers.iter().any(|(other, _)| *other == number);
        if !is_known || taken.proven.len() >= PROVEN {
            return false;
        }
        taken.strangers.retain(|(other, _)| *other != number);
        taken.proven.push(number);
        true
    }

    /// Closes the oldest connection without the token, for its descriptor.
    pub(crate) fn close_oldest(&self) {
        self.taken().close_oldest();
    }

    /// Frees the place of a connection that has ended.
    pub(crate) fn leave(&self, number: u64) {
        let mut taken = self.taken();
        taken.strangers.retain(|(other, _)| *other != number);
        taken.proven.retain(|other| *other != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn silent_connections_give_way_to_new_ones_and_proven_ones_stay() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let connect = || {
            let client = TcpStream::connect(address).expect("connected");
            (client, Arc::new(listener.accept().expect("accepted").0))
        };
        let places = ConnectionPlaces::default();
        let (mut proven_client, proven) = connect();
        let number = places.enter(proven.clone());
        assert!(places.prove(number) && places.prove(number));
        let mut clients = Vec::new();
        for _ in 0..STRANGERS + 3 {
            let (client, stream) = connect();
            places.enter(stream);
            clients.push(client);
        }
        // The first three were closed, and no other one.
        for client in &mut clients[..3] {
            assert_eq!(client.read(&mut [0; 1]).expect("closed"), 0);
        }
        for client in clients[3..].iter_mut().chain([&mut proven_client]) {
            client.set_nonblocking(true).expect("set");
            assert_eq!(client.read(&mut [0; 1]).expect_err("open").kind(), std::io::ErrorKind::WouldBlock);
        }
        // One that was closed has no place any more, and those with the token have a limit of their own.
        assert!(!places.prove(1));
        places.leave(number);
        let mut numbers = Vec::new();
        for nth in 0..=PROVEN {
            let number = places.enter(proven.clone());
            assert_eq!(places.prove(number), nth < PROVEN);
            numbers.push(number);
        }
        places.leave(numbers[0]);
        assert!(places.prove(numbers[PROVEN]));
    }
}
