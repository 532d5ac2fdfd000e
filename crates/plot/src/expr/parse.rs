//! From a text to a condition.

use super::lex::{Token, tokens};
use super::{EventValue, Expr, ExprError, MAX_DEPTH, Node, Operand, Regexes};

/// Parses a condition by itself.
///
/// # Errors
///
/// The first part that does not belong to a condition, with its offset and the remedy.
pub fn parse(source: &str) -> Result<Expr, ExprError> {
    parse_with(source, &mut Regexes::default())
}

/// Parses a condition of a specification, whose conditions share their regular expressions and the limit on these.
///
/// # Errors
///
/// The first part that does not belong to a condition, with its offset and the remedy.
pub fn parse_with(source: &str, regexes: &mut Regexes) -> Result<Expr, ExprError> {
    let tokens = tokens(source)?;
    let mut parser = Parser { tokens: &tokens, at: 0, end: source.len(), depth: 0, regexes };
    let root = parser.any()?;
    match parser.peek() {
        None => Ok(Expr { source: source.to_owned(), root }),
        Some(_) => parser.error("`and`, `or` or the end of the condition is expected here"),
    }
}

struct Parser<'t> {
    tokens: &'t [(Token, usize)],
    at: usize,
    end: usize,
    depth: usize,
    regexes: &'t mut Regexes,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(_, at)| *at)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, ExprError> {
        Err(ExprError { at: self.place(), message: message.into() })
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_there = self.peek() == Some(token);
        self.at += usize::from(is_there);
        is_there
    }

    fn any(&mut self) -> Result<Node, ExprError> {
        let mut nodes = vec![self.all()?];
        while self.take(&Token::Or) {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self) -> Result<Node, ExprError> {
        let mut nodes = vec![self.one()?];
        while self.take(&Token::And) {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) })
    }

    fn one(&mut self) -> Result<Node, ExprError> {
        if self.depth == MAX_DEPTH {
            return self.error(format!("the condition is nested more than {MAX_DEPTH} deep"));
        }
        if self.take(&Token::Not) {
            self.depth += 1;
            let node = self.one()?;
            self.depth -= 1;
            return Ok(Node::Not(Box::new(node)));
        }
        if self.take(&Token::Open) {
            self.depth += 1;
            let node = self.any()?;
            self.depth -= 1;
            return if self.take(&Token::Close) { Ok(node) } else { self.error("`)` is expected here") };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Node, ExprError> {
        let left = self.operand()?;
        let at = self.place();
        let negated = self.take(&Token::Not);
        if self.take(&Token::In) {
            let list = self.list()?;
            return Ok(Node::In { left, list, negated, at });
        }
        if negated {
            return self.error("`in` is expected behind `not` here");
        }
        match self.peek().cloned() {
            Some(Token::Compare(how)) => {
                self.at += 1;
                let right = self.operand()?;
                Ok(Node::Compare { left, how, right, at })
            }
            Some(token @ (Token::Matches | Token::NotMatches)) => {
                self.at += 1;
                let place = self.place();
                let Some(Token::Text(pattern)) = self.peek().cloned() else {
                    return self.error("a regular expression in quotation marks is expected here");
                };
                self.at += 1;
                let regex = self.regexes.compile(&pattern).map_err(|message| ExprError { at: place, message })?;
                Ok(Node::Match { left, regex, negated: token == Token::NotMatches, at })
            }
            _ => self.error("a comparison is expected here, such as `!= 0` or `=~ \"text\"`"),
        }
    }

    fn list(&mut self) -> Result<Vec<Operand>, ExprError> {
        if !self.take(&Token::OpenList) {
            return self.error("a list is expected here, such as [1, 2]");
        }
        let mut list = vec![self.operand()?];
        while self.take(&Token::Comma) {
            list.push(self.operand()?);
        }
        if self.take(&Token::CloseList) { Ok(list) } else { self.error("`,` or `]` is expected here") }
    }

    fn operand(&mut self) -> Result<Operand, ExprError> {
        let mut parts = vec![self.atom()?];
        while self.take(&Token::Bits) {
            parts.push(self.atom()?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Operand::And(parts) })
    }

    fn atom(&mut self) -> Result<Operand, ExprError> {
        let at = self.place();
        let operand = match self.peek().cloned() {
            Some(Token::Name(name)) => Operand::Name { name, at },
            Some(Token::Number(n)) => Operand::Constant { value: EventValue::Number(n), at },
            Some(Token::Text(text)) => Operand::Constant { value: EventValue::Text(text), at },
            _ => return self.error("a field, a number or a text is expected here"),
        };
        self.at += 1;
        Ok(operand)
    }
}
