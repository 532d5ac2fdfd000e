//! The rows of a row group, and the form that they have in a file.

use crate::schema::Type;
use crate::value::Value;
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescPtr};
use std::collections::HashMap;

/// The texts of a row group, one copy of each, and the bytes of all.
pub(super) type TextPool = (HashMap<String, ByteArray>, usize);

/// The shape of a file: its columns, and how they are encoded.
#[derive(Clone)]
pub(super) struct GroupForm {
    pub(super) columns: SchemaDescPtr,
    pub(super) properties: WriterPropertiesPtr,
}

/// A column of a row group as it stands in a file.
pub(super) struct EncodedColumn {
    pub(super) bytes: Vec<u8>,
    pub(super) close: ColumnCloseResult,
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
pub(super) struct Gathered {
    values: ColumnValues,
    /// The levels of the rows: 1 where a row has a value, 0 where it is null.
    levels: Vec<i16>,
}

impl Gathered {
    pub(super) fn new(kind: Type) -> Gathered {
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
    pub(super) fn add(&mut self, value: &Value<'_>, texts: &mut TextPool) {
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

    /// The column as it stands in a file.
    fn encode(&self, column: ColumnDescPtr, form: &GroupForm) -> Result<EncodedColumn, ParquetError> {
        match &self.values {
            ColumnValues::Int32(values) => encode::<Int32Type>(column, form, values, &self.levels),
            ColumnValues::Int64(values) => encode::<Int64Type>(column, form, values, &self.levels),
            ColumnValues::Double(values) => encode::<DoubleType>(column, form, values, &self.levels),
            ColumnValues::Text(values) => encode::<ByteArrayType>(column, form, values, &self.levels),
            ColumnValues::Bool(values) => encode::<BoolType>(column, form, values, &self.levels),
        }
    }

    /// An empty column of the same type, with room for as many rows.
    pub(super) fn next(&self) -> Gathered {
        let rows = self.levels.len();
        let values = match &self.values {
            ColumnValues::Int32(_) => ColumnValues::Int32(Vec::with_capacity(rows)),
            ColumnValues::Int64(_) => ColumnValues::Int64(Vec::with_capacity(rows)),
            ColumnValues::Double(_) => ColumnValues::Double(Vec::with_capacity(rows)),
            ColumnValues::Text(_) => ColumnValues::Text(Vec::with_capacity(rows)),
            ColumnValues::Bool(_) => ColumnValues::Bool(Vec::with_capacity(rows)),
        };
        Gathered { values, levels: Vec::with_capacity(rows) }
    }
}

/// The columns of a row group as they stand in a file.
pub(super) fn encode_group(gathered: &[Gathered], form: &GroupForm) -> Result<Vec<EncodedColumn>, ParquetError> {
    let columns = form.columns.columns().iter().zip(gathered);
    columns.map(|(column, gathered)| gathered.encode(column.clone(), form)).collect()
}

fn encode<T: DataType>(
    column: ColumnDescPtr,
    form: &GroupForm,
    values: &[T::T],
    levels: &[i16],
) -> Result<EncodedColumn, ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut sink));
    let mut writer = get_typed_column_writer::<T>(get_column_writer(column, form.properties.clone(), pages));
    writer.write_batch(values, Some(levels), None)?;
    let close = writer.close()?;
    Ok(EncodedColumn { bytes: sink.into_inner()?, close })
}
