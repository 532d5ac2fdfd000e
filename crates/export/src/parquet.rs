//! Tables as Apache Parquet, compressed by zstd.

use crate::output::{Sink, TableWriter};
use crate::schema::{Column, SCHEMA, Type};
use crate::value::Value;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type as Node, TypePtr};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a row group. They are held until the group is full: a few MB for each table.
const GROUP: usize = 16_384;

/// Bytes of texts in a group at which it is written early.
const TEXT: usize = 8 << 20;

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

/// The values of a column that are not null.
enum ColumnValues {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
    Bool(Vec<bool>),
}

/// A column of the rows that are gathered.
struct Gathered {
    values: ColumnValues,
    /// The levels of the rows: 1 where a row has a value, 0 where it is null.
    levels: Vec<i16>,
}

impl Gathered {
    fn new(kind: Type) -> Gathered {
        let values = match kind {
            Type::Int32 => ColumnValues::Int32(Vec::new()),
            Type::Int64 => ColumnValues::Int64(Vec::new()),
            Type::Double => ColumnValues::Double(Vec::new()),
            Type::Text => ColumnValues::Text(Vec::new()),
            Type::Bool => ColumnValues::Bool(Vec::new()),
        };
        Gathered { values, levels: Vec::new() }
    }

    /// Adds a value; one of another type than the column's is null. `texts` keeps one copy of equal texts, and its
    /// second part their bytes.
    fn add(&mut self, value: &Value<'_>, texts: &mut (HashMap<String, ByteArray>, usize)) {
        let known = match (&mut self.values, value) {
            (ColumnValues::Int32(values), Value::Int(n)) => i32::try_from(*n).is_ok_and(|n| {
                values.push(n);
                true
            }),
            (ColumnValues::Int64(values), Value::Int(n)) => {
                values.push(*n);
                true
            }
            (ColumnValues::Double(values), Value::Real(x)) => {
                values.push(*x);
                true
            }
            (ColumnValues::Bool(values), Value::Bool(yes)) => {
                values.push(*yes);
                true
            }
            (ColumnValues::Text(values), Value::Text(text)) => {
                let kept = match texts.0.get(text.as_ref()) {
                    Some(kept) => kept.clone(),
                    None => {
                        texts.1 += text.len();
                        let new = ByteArray::from(text.as_ref());
                        texts.0.insert(text.as_ref().to_owned(), new.clone());
                        new
                    }
                };
                values.push(kept);
                true
            }
            _ => false,
        };
        self.levels.push(known.into());
    }

    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, SinkWriter>) -> Result<(), ParquetError> {
        let levels = std::mem::take(&mut self.levels);
        match &mut self.values {
            ColumnValues::Int32(values) => put::<Int32Type>(group, &std::mem::take(values), &levels),
            ColumnValues::Int64(values) => put::<Int64Type>(group, &std::mem::take(values), &levels),
            ColumnValues::Double(values) => put::<DoubleType>(group, &std::mem::take(values), &levels),
            ColumnValues::Text(values) => put::<ByteArrayType>(group, &std::mem::take(values), &levels),
            ColumnValues::Bool(values) => put::<BoolType>(group, &std::mem::take(values), &levels),
        }
    }
}

/// Writes the next column of a row group.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, SinkWriter>,
    values: &[T::T],
    levels: &[i16],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, Some(levels), None)?;
    column.close()
}

/// A table as a file for each run. The group and the run are in the file's path alone, as Hive partitions.
pub struct Parquet {
    make: Box<Make>,
    schema: TypePtr,
    properties: WriterPropertiesPtr,
    columns: Vec<Gathered>,
    rows: usize,
    /// The texts of the group, one copy of each, and the bytes of all.
    texts: (HashMap<String, ByteArray>, usize),
    /// The group and the run, which a pass that begins again needs once more.
    run: (Option<String>, String),
    file: Option<SerializedFileWriter<SinkWriter>>,
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
    /// A table of these columns, each file of which `make` makes.
    pub fn new(table: &str, columns: &[Column], make: Box<Make>) -> io::Result<Parquet> {
        let fields = columns.iter().map(node).collect::<Result<Vec<_>, _>>().map_err(io_error)?;
        let schema = Node::group_type_builder(table).with_fields(fields).build().map_err(io_error)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Without a version, so that the bytes are the same whatever wrote them.
            .set_created_by("schedviz".to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new("schema".to_owned(), SCHEMA.to_owned())]))
            .build();
        Ok(Parquet {
            make,
            schema: Arc::new(schema),
            properties: Arc::new(properties),
            columns: columns.iter().map(|column| Gathered::new(column.kind)).collect(),
            rows: 0,
            texts: Default::default(),
            run: Default::default(),
            file: None,
        })
    }

    /// Begins the file of the run.
    fn open(&mut self) -> io::Result<()> {
        let place = SinkWriter((self.make)(self.run.0.as_deref(), &self.run.1)?);
        let file = SerializedFileWriter::new(place, self.schema.clone(), self.properties.clone());
        self.file = Some(file.map_err(io_error)?);
        Ok(())
    }

    /// Writes the rows that are gathered as a row group.
    fn flush(&mut self) -> io::Result<()> {
        self.texts = Default::default();
        let Some(file) = self.file.as_mut().filter(|_| self.rows > 0) else { return Ok(()) };
        self.rows = 0;
        let columns = &mut self.columns;
        let mut write = || {
            let mut group = file.next_row_group()?;
            columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
            group.close().map(drop)
        };
        write().map_err(io_error)
    }
}

impl TableWriter for Parquet {
    fn begin(&mut self, group: Option<&str>, run: &str) -> io::Result<()> {
        self.run = (group.map(str::to_owned), run.to_owned());
        self.open()
    }

    fn restart(&mut self) -> io::Result<()> {
        if self.rows == 0 && self.file.as_ref().is_some_and(|file| file.flushed_row_groups().is_empty()) {
            return Ok(());
        }
        for column in &mut self.columns {
            column.levels.clear();
            match &mut column.values {
                ColumnValues::Int32(values) => values.clear(),
                ColumnValues::Int64(values) => values.clear(),
                ColumnValues::Double(values) => values.clear(),
                ColumnValues::Text(values) => values.clear(),
                ColumnValues::Bool(values) => values.clear(),
            }
        }
        (self.rows, self.texts, self.file) = (0, Default::default(), None);
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
        let Some(file) = self.file.take() else { return Ok(()) };
        let SinkWriter(mut sink) = file.into_inner().map_err(io_error)?;
        sink.flush()?;
        sink.finish()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
