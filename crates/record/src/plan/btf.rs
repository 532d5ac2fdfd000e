//! The kernel's type information (BTF): offsets of the members of structures.
//!
//! The file is `/sys/kernel/btf/vmlinux`. Only what probes need is read: structures, their members, sizes, and the names of
//! functions. The bytes are not trusted: every place is checked, and chains of types have a limit.

use std::collections::HashMap;

/// The greatest size of a file.
pub const MAX_BYTES: usize = 128 << 20;

/// The greatest number of types in a chain of typedefs, qualifiers and anonymous members.
const MAX_DEPTH: usize = 32;

/// The reason why type information cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// The file is no BTF.
    #[error("this is no BTF: the magic number is missing")]
    Magic,
    /// The file is too large.
    #[error("the BTF is larger than {MAX_BYTES} bytes")]
    Size,
    /// The file ends within a type.
    #[error("the BTF is cut off")]
    Cut,
    /// The file has a kind of type that this reader does not know, so later types cannot be found.
    #[error("the BTF has an unknown kind of type, {0}")]
    Kind(u32),
}

/// Kinds of types.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC: u32 = 12;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// A type in the type information.
#[derive(Clone, Copy, Debug)]
struct BtfType {
    kind: u32,
    /// The size in bytes, or the type that this one refers to.
    size_or_type: u32,
    /// The number of members.
    count: usize,
    /// Offsets of members have the size of a bit field in their upper byte.
    has_bitfields: bool,
    /// The place of what follows the type.
    at: usize,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructMember {
    /// The offset in bytes.
    pub offset: u32,
    /// The number of the type.
    type_id: u32,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// A signed number of bytes.
    Signed(u32),
    /// An unsigned number of bytes.
    Unsigned(u32),
    /// A pointer, of the kernel's word size.
    Pointer,
    /// An array, which probes read as text.
    Array,
    /// A value that no probe can read.
    Other,
}

/// The type information of a kernel (BTF), as `/sys/kernel/btf/vmlinux` has it.
#[derive(Clone, Debug)]
pub struct Btf {
    data: Vec<u8>,
    big_endian: bool,
    /// The place of the strings.
    strings: usize,
    /// Types of the file; the index is the number of the type, and number 0 is `void`.
    types: Vec<BtfType>,
    structs: HashMap<Vec<u8>, u32>,
    functions: HashMap<Vec<u8>, u32>,
}

impl Btf {
    /// Reads a file.
    pub fn parse(data: Vec<u8>) -> Result<Btf, BtfError> {
        if data.len() > MAX_BYTES {
            return Err(BtfError::Size);
        }
        let big_endian = match data.get(..2) {
            Some([0x9f, 0xeb]) => false,
            Some([0xeb, 0x9f]) => true,
            _ => return Err(BtfError::Magic),
        };
        let void = BtfType { kind: 0, size_or_type: 0, count: 0, has_bitfields: false, at: 0 };
        let mut btf =
            Btf { data, big_endian, strings: 0, types: vec![void], structs: HashMap::new(), functions: HashMap::new() };
        let word = |at: usize| btf.word(at).ok_or(BtfError::Cut);
        let (header, types, length, strings) = (word(4)?, word(8)?, word(12)?, word(16)?);
        let at = |offset: u32| (header as usize).checked_add(offset as usize).ok_or(BtfError::Cut);
        let (start, strings) = (at(types)?, at(strings)?);
        let end = start.checked_add(length as usize).filter(|end| *end <= btf.data.len()).ok_or(BtfError::Cut)?;
        btf.strings = strings;
        btf.read_types(start, end)?;
        Ok(btf)
    }

    fn read_types(&mut self, mut at: usize, end: usize) -> Result<(), BtfError> {
        while at < end {
            let name = self.word(at).ok_or(BtfError::Cut)?;
            let info = self.word(at + 4).ok_or(BtfError::Cut)?;
            let size_or_type = self.word(at + 8).ok_or(BtfError::Cut)?;
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let following = match kind {
                kind::INT | kind::VAR | kind::DECL_TAG => 4,
                kind::ARRAY => 12,
                kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
                kind::ENUM | kind::FUNC_PROTO => 8 * count,
                kind::PTR | 7..=12 | 16 | kind::TYPE_TAG => 0,
                other => return Err(BtfError::Kind(other)),
            };
            let number = u32::try_from(self.types.len()).map_err(|_| BtfError::Size)?;
            let found = BtfType { kind, size_or_type, count, has_bitfields: info >> 31 == 1, at: at + 12 };
            self.types.push(found);
            let name = self.text(self.strings.saturating_add(name as usize)).to_vec();
            match kind {
                // The first definition of a name counts.
                kind::STRUCT if !name.is_empty() => drop(self.structs.entry(name).or_insert(number)),
                kind::FUNC => drop(self.functions.entry(name).or_insert(number)),
                _ => {}
            }
            at += 12 + following;
        }
        if at == end { Ok(()) } else { Err(BtfError::Cut) }
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes: [u8; 4] = self.data.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// The text at a place, without its final zero.
    fn text(&self, at: usize) -> &[u8] {
        let rest = self.data.get(at..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn get(&self, number: u32) -> Option<&BtfType> {
        self.types.get(number as usize)
    }

    /// Whether the kernel has a function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name.as_bytes())
    }

    /// The structure of this name.
    pub fn structure(&self, name: &str) -> Option<u32> {
        self.structs.get(name.as_bytes()).copied()
    }

    /// A member of a structure or a union, also one within an anonymous member.
    pub fn member(&self, structure: u32, name: &str) -> Option<StructMember> {
        self.member_within(structure, name.as_bytes(), 0, MAX_DEPTH)
    }

    fn member_within(&self, number: u32, name: &[u8], base: u32, depth: usize) -> Option<StructMember> {
        let structure = self.get(number).filter(|t| t.kind == kind::STRUCT || t.kind == kind::UNION)?;
        let depth = depth.checked_sub(1)?;
        (0..structure.count).find_map(|i| {
            let at = structure.at + 12 * i;
            let (own, type_id, bits) = (self.word(at)?, self.word(at + 4)?, self.word(at + 8)?);
            let bits = if structure.has_bitfields { bits & 0x00ff_ffff } else { bits };
            let offset = base.checked_add(bits / 8)?;
            let own = self.text(self.strings.saturating_add(own as usize));
            match own {
                own if own == name => Some(StructMember { offset, type_id }),
                [] => self.member_within(self.resolved(type_id)?, name, offset, depth),
                _ => None,
            }
        })
    }

    /// The type behind typedefs and qualifiers.
    fn resolved(&self, mut number: u32) -> Option<u32> {
        for _ in 0..MAX_DEPTH {
            let found = self.get(number)?;
            match found.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    number = found.size_or_type;
                }
                _ => return Some(number),
            }
        }
        None
    }

    /// The structure that a member is.
    pub fn inner(&self, member: StructMember) -> Option<u32> {
        self.resolved(member.type_id)
    }

    /// The structure that a member points to.
    pub fn pointed(&self, member: StructMember) -> Option<u32> {
        let pointer = self.get(self.resolved(member.type_id)?).filter(|t| t.kind == kind::PTR)?;
        self.resolved(pointer.size_or_type)
    }

    /// The names of the values of a member that is an enumeration, each with its number.
    pub fn enumerators(&self, member: StructMember) -> Vec<(String, u32)> {
        let found = self.resolved(member.type_id).and_then(|number| self.get(number));
        let Some(found) = found.filter(|t| t.kind == kind::ENUM) else { return Vec::new() };
        let enumerator = |nth: usize| {
            let at = found.at + 8 * nth;
            let name = self.text(self.strings.saturating_add(self.word(at)? as usize));
            Some((String::from_utf8_lossy(name).into_owned(), self.word(at + 4)?))
        };
        (0..found.count).map_while(enumerator).collect()
    }

    /// The form of an element of a member that is an array.
    pub fn element(&self, member: StructMember) -> ValueForm {
        let array = self.resolved(member.type_id).and_then(|number| self.get(number));
        let element = array.filter(|t| t.kind == kind::ARRAY).and_then(|array| self.word(array.at));
        element.map_or(ValueForm::Other, |type_id| self.form(StructMember { offset: 0, type_id }))
    }

    /// The form of a member's value.
    pub fn form(&self, member: StructMember) -> ValueForm {
        let Some(found) = self.resolved(member.type_id).and_then(|number| self.get(number)) else {
            return ValueForm::Other;
        };
        let size = found.size_or_type;
        match found.kind {
            kind::PTR => ValueForm::Pointer,
            kind::ARRAY => ValueForm::Array,
            kind::ENUM if !matches!(size, 1 | 2 | 4 | 8) => ValueForm::Other,
            kind::ENUM => ValueForm::Signed(size),
            // Bit 0 of the encoding: signed.
            kind::INT if self.word(found.at).is_some_and(|encoding| encoding >> 24 & 1 == 1) => ValueForm::Signed(size),
            kind::INT => ValueForm::Unsigned(size),
            _ => ValueForm::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumerations_have_names() {
        // struct s { enum e m; }; enum e { migrate_load, migrate_new = 4 };
        let strings = b"\0s\0m\0migrate_load\0migrate_new\0";
        let types: [u32; 13] = [1, kind::STRUCT << 24 | 1, 4, 3, 2, 0, 0, kind::ENUM << 24 | 2, 4, 5, 0, 18, 4];
        let mut data = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, 4 * types.len() as u32, 4 * types.len() as u32, strings.len() as u32] {
            data.extend(word.to_le_bytes());
        }
        types.iter().for_each(|word| data.extend(word.to_le_bytes()));
        data.extend(strings);
        let btf = Btf::parse(data).unwrap();
        let member = btf.member(btf.structure("s").unwrap(), "m").unwrap();
        assert_eq!(btf.enumerators(member), [("migrate_load".to_owned(), 0), ("migrate_new".to_owned(), 4)]);
        assert!(btf.enumerators(StructMember { offset: 0, type_id: 1 }).is_empty());
    }

    #[test]
    fn damaged_files_are_refused() {
        assert_eq!(Btf::parse(vec![]).unwrap_err(), BtfError::Magic);
        assert_eq!(Btf::parse(vec![0x9f, 0xeb, 1, 0]).unwrap_err(), BtfError::Cut);
        let whole = include_bytes!("../../../../tests/fixtures/btf-6.12.btf");
        assert!(Btf::parse(whole.to_vec()).is_ok());
        for end in 0..whole.len() {
            // A cut within the strings leaves the types; their names are then shorter.
            let _ = Btf::parse(whole[..end].to_vec());
        }
        for at in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 0xff;
            if let Ok(btf) = Btf::parse(damaged) {
                let member = btf.structure("lb_env").and_then(|s| btf.member(s, "sd"));
                let _ = member.map(|m| (btf.pointed(m), btf.inner(m), btf.form(m)));
            }
        }
    }
}
