//! Tables as Apache Parquet, compressed by zstd.
//!
//! Rows are gathered until they fill a row group, which [`Encoders`] encode and compress while the next one is gathered. Row
//! groups are written in their order, so that the bytes of a file do not depend on the number of threads.

mod encoders;
mod gathered;

use crate::output::{Sink, TableWriter};
use crate::schema::{Column, SCHEMA, Type};
use crate::value::Value;
use bytes::Bytes;
use encoders::PendingGroup;
use gathered::{EncodedColumn, Gathered, GroupForm, TextPool};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, Type as Node, TypePtr};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

pub use encoders::Encoders;

/// Rows of a row group. They are held until the group is full: a few MB for each table.
const GROUP: usize = 16_384;

/// Bytes of texts in a group at which it is written early.
const TEXT: usize = 8 << 20;

/// Maximum number of row groups of a table that are encoded at once.
const UNDER_WAY: usize = 3;

/// A function that makes the file of a group and a run. It is called once for each run, and again where the pass of the
/// run begins again.
pub type Make = dyn FnMut(Option<&str>, &str) -> io::Result<Box<dyn Sink>> + Send;

/// A [`Sink`] as the writer of a file.
struct SinkWriter(Box<dyn Sink>);

impl Write for SinkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A table as a file for each run. The group and the run are in the file's path alone, as Hive partitions.
pub struct Parquet {
    make: Box<Make>,
    encoders: Arc<Encoders>,
    form: GroupForm,
    columns: Vec<Gathered>,
    rows: usize,
    /// The texts of the rows that are gathered.
    texts: TextPool,
    /// The group and the run, which a pass that begins again needs once more.
    run: (Option<String>, String),
    file: Option<SerializedFileWriter<SinkWriter>>,
    /// The row groups that are full and not written, in their order.
    under_way: VecDeque<PendingGroup>,
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        // As what it was, so that a full disk shows.
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn node(column: &Column) -> Result<TypePtr, ParquetError> {
    let physical = match column.kind {
        Type::Int32 => Physical::INT32,
        Type::Int64 => Physical::INT64,
        Type::Double => Physical::DOUBLE,
        Type::Text => Physical::BYTE_ARRAY,
        Type::Bool => Physical::BOOLEAN,
    };
    let is_text = column.kind == Type::Text;
    let builder = Node::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(is_text.then_some(LogicalType::String))
        .with_converted_type(if is_text { ConvertedType::UTF8 } else { ConvertedType::NONE });
    builder.build().map(Arc::new)
}

impl Parquet {
    /// A table of these columns, each file of which `make` makes, and whose row groups `encoders` encode.
    pub fn new(table: &str, columns: &[Column], make: Box<Make>, encoders: &Arc<Encoders>) -> io::Result<Parquet> {
        let fields = columns.iter().map(node).collect::<Result<Vec<_>, _>>().map_err(io_error)?;
        let schema = Node::group_type_builder(table).with_fields(fields).build().map_err(io_error)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Without a version, so that the bytes are the same whatever wrote them.
            .set_created_by("schedviz".to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new("schema".to_owned(), SCHEMA.to_owned())]))
            .build();
        let columns_of = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
        Ok(Parquet {
            make,
            encoders: Arc::clone(encoders),
            form: GroupForm { columns: columns_of, properties: Arc::new(properties) },
            columns: columns.iter().map(|column| Gathered::new(column.kind)).collect(),
            rows: 0,
            texts: Default::default(),
            run: Default::default(),
            file: None,
            under_way: VecDeque::new(),
        })
    }

    /// Begins the file of the run.
    fn open(&mut self) -> io::Result<()> {
        let place = SinkWriter((self.make)(self.run.0.as_deref(), &self.run.1)?);
        let (schema, properties) = (self.form.columns.root_schema_ptr(), self.form.properties.clone());
        self.file = Some(SerializedFileWriter::new(place, schema, properties).map_err(io_error)?);
        Ok(())
    }

    /// Removes the rows that are gathered.
    fn take_rows(&mut self) -> Vec<Gathered> {
        (self.rows, self.texts) = (0, Default::default());
        let next = self.columns.iter().map(Gathered::next).collect();
        std::mem::replace(&mut self.columns, next)
    }

    /// Gives the rows that are gathered to the encoders, as a row group, and writes those that are encoded.
    fn flush(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            let rows = self.take_rows();
            self.under_way.push_back(self.encoders.encode(rows, &self.form));
        }
        self.write(UNDER_WAY)
    }

    /// Writes the first row groups that are encoded, until at most this number of others are left.
    fn write(&mut self, left: usize) -> io::Result<()> {
        while let Some(mut first) = self.under_way.pop_front() {
            if self.under_way.len() < left && !first.is_ready() {
                self.under_way.push_front(first);
                break;
            }
            let group = first.wait().map_err(io_error)?;
            self.file.as_mut().map_or(Ok(()), |file| append(file, group)).map_err(io_error)?;
        }
        Ok(())
    }
}

/// Writes a row group at the end of a file.
fn append(file: &mut SerializedFileWriter<SinkWriter>, columns: Vec<EncodedColumn>) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for EncodedColumn { bytes, close } in columns {
        group.append_column(&Bytes::from(bytes), close)?;
    }
    group.close().map(drop)
}

impl TableWriter for Parquet {
    fn begin(&mut self, group: Option<&str>, run: &str) -> io::Result<()> {
        self.run = (group.map(str::to_owned), run.to_owned());
        self.open()
    }

    fn restart(&mut self) -> io::Result<()> {
        let is_empty = self.file.as_ref().is_some_and(|file| file.flushed_row_groups().is_empty());
        if self.rows == 0 && self.under_way.is_empty() && is_empty {
            return Ok(());
        }
        self.take_rows();
        self.under_way.clear();
        self.file = None;
        self.open()
    }

    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        let texts = &mut self.texts;
        self.columns.iter_mut().zip(values).for_each(|(column, value)| column.add(value, texts));
        self.rows += 1;
        if self.rows >= GROUP || self.texts.1 >= TEXT { self.flush() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.write(0)?;
        let Some(file) = self.file.take() else { return Ok(()) };
        let SinkWriter(mut sink) = file.into_inner().map_err(io_error)?;
        sink.flush()?;
        sink.finish()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// The bytes of a file, and whether it is complete.
    type Kept = Arc<Mutex<(Vec<u8>, bool)>>;

    struct KeptSink(Kept);

    impl Write for KeptSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for KeptSink {
        fn cut(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn finish(self: Box<Self>) -> io::Result<()> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
            Ok(())
        }
    }

    /// The file of a table of five row groups and a part of one, after a pass that began again.
    fn written(threads: usize) -> Vec<u8> {
        let files: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let made = Arc::clone(&files);
        let make = move |_: Option<&str>, _: &str| -> io::Result<Box<dyn Sink>> {
            let file = Kept::default();
            made.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&file));
            Ok(Box::new(KeptSink(file)))
        };
        let columns = [Column::new("a", Type::Int64, ""), Column::new("b", Type::Text, "")];
        let encoders = Encoders::for_threads(threads);
        let mut table = Parquet::new("t", &columns, Box::new(make), &encoders).expect("a table");
        table.begin(None, "run").expect("begun");
        for _ in 0..2 {
            table.restart().expect("begun again");
            for n in 0..GROUP as i64 * 5 + 9 {
                let text = Value::Text((n % 7).to_string().into());
                table.row(&[Value::Int(n * n), if n % 3 == 0 { Value::Null } else { text }]).expect("a row");
            }
        }
        table.end().expect("ended");
        Box::new(table).finish().expect("finished");
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let [unfinished, file] = files.as_slice() else { panic!("{} files", files.len()) };
        assert!(!unfinished.lock().unwrap_or_else(PoisonError::into_inner).1);
        let (bytes, is_finished) = file.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert!(is_finished);
        bytes
    }

    #[test]
    fn files_have_the_same_bytes_with_any_number_of_threads() {
        let alone = written(1);
        let reader = parquet::file::serialized_reader::SerializedFileReader::new(Bytes::from(alone.clone()));
        let metadata = parquet::file::reader::FileReader::metadata(&reader.expect("a file")).clone();
        assert_eq!((metadata.num_row_groups(), metadata.file_metadata().num_rows()), (6, GROUP as i64 * 5 + 9));
        for threads in [2, 5] {
            assert!(written(threads) == alone, "{threads} threads");
        }
    }
}
