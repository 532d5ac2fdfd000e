//! The options of a version 7 file: the input is the payload of its first section of options.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut file = vec![0x17, 0x08, 0x44];
    file.extend(b"tracing7\0");
    // Little endian, longs of eight bytes, pages of 4096; no compression.
    file.extend([0, 8]);
    file.extend(4096u32.to_le_bytes());
    file.extend(b"none\0\0");
    let section = file.len() as u64 + 8;
    file.extend(section.to_le_bytes());
    // The header of a section: its kind, its flags, the place of its name, its size.
    file.extend([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    file.extend((bytes.len() as u64).to_le_bytes());
    file.extend(bytes);
    parse::fuzzing::header(&file);
});
