use headcount_storage::files::{PRIVATE_FILE, write_atomically};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;

use super::*;

const PROJECT: ProjectId = ProjectId(7);

/// A file without rows, and with our entries, whatever its columns are.
fn forged(schema: TypePtr) -> Vec<u8> {
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::builder().build())).unwrap();
    for entry in footer::entries(&PROJECT.to_string(), &[]) {
        writer.append_key_value_metadata(entry);
    }
    let mut file = writer.into_inner().unwrap();
    let end = file.len() - footer::TRAILER_BYTES;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    assert!(footer::seal(&mut file[end - length..end]));
    file
}

fn open(bytes: &[u8]) -> Result<ExportFile, ExportFileError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    write_atomically(&path, bytes, PRIVATE_FILE).unwrap();
    ExportFile::open(&path)
}

fn refusal(bytes: &[u8]) -> String {
    open(bytes).err().unwrap().to_string()
}

#[test]
fn other_files_and_damaged_ones_get_errors_of_their_own() {
    assert!(refusal(b"PAR1").contains("damaged"));

    let columns = |columns: &str| Arc::new(parse_message_type(&format!("message event {{ {columns} }}")).unwrap());
    assert!(refusal(&forged(columns("required int64 position;"))).contains("columns are not those of an export"));
    let many: String = (0..100_000).map(|number| format!("optional int32 c{number};")).collect();
    assert!(refusal(&forged(columns(&many))).contains("too many columns"));
    let export = forged(message(EXPORT_COLUMNS, &[]).unwrap());
    assert_eq!(open(&export).unwrap().count(), 0);
    assert!(refusal(&export[..export.len() - 1]).contains("damaged"));
    let foreign = SerializedFileWriter::new(Vec::new(), columns("required int64 position;"), Arc::default()).unwrap();
    assert!(refusal(&foreign.into_inner().unwrap()).contains("another program wrote it"));
}

#[test]
fn footers_that_claim_too_much_are_refused() {
    let check = |bytes: &[u8]| ThriftReader::new(bytes).footer(3);
    // A version, then a list of row groups: empty structs.
    assert!(check(&[0x15, 2, 0x39, 0x3c, 0, 0, 0, 0]).is_some());
    assert!(check(&[0x15, 2, 0x39, 0x4c, 0, 0, 0, 0, 0]).is_none(), "four row groups");
    assert!(check(&[0x15, 2, 0x39, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]).is_none(), "four billion row groups");
    assert!(check(&[0x29, 0xf5, 0xff, 0xff, 0xff, 0x7f, 0]).is_none(), "a long list");
    assert!(check(&[0x18, 0xff, 0xff, 0x7f, 0]).is_none(), "a text that is longer than the footer");
    assert!(check(&[&[0x1c; 40][..], &[0; 41]].concat()).is_none(), "deep");
    assert!(check(&[0x1b, 0]).is_none(), "a map");
    assert!(check(&[0x15]).is_none() && check(&[]).is_none(), "cut");
}

/// A page of these numbers, compressed.
fn page(is_dictionary: bool, encoding: i64, values: i64, claimed: i64, data: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(data, 3).unwrap();
    let mut out = Vec::new();
    let mut int = |header: u8, value: i64| {
        out.push(header);
        let mut zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while zigzag >= 0x80 {
            out.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        out.push(zigzag as u8);
    };
    int(0x15, if is_dictionary { 2 } else { 0 });
    int(0x15, claimed);
    int(0x15, packed.len().try_into().unwrap());
    int(0x15, 0);
    int(if is_dictionary { 0x3c } else { 0x1c }, 0);
    out.pop();
    let mut int = |header: u8, value: u8| out.extend([header, value]);
    // Small enough for a byte each.
    assert!(values < 64);
    int(0x15, (values * 2).cast_unsigned() as u8);
    int(0x15, (encoding * 2).cast_unsigned() as u8);
    out.extend([0, 0]);
    out.extend(packed);
    out
}

fn check(column: &str, rows: u64, chunk: &[u8]) -> Option<usize> {
    let column = EXPORT_COLUMNS.iter().find(|it| it.name == column).unwrap();
    let (mut budget, mut inflate) = (MAX_GROUP_BYTES, Decompressor::new().unwrap());
    ChunkCheck { column, rows, budget: &mut budget, inflate: &mut inflate }.run(chunk)
}

#[test]
fn pages_that_claim_too_much_are_refused() {
    let text = |length: usize| [&u32::try_from(length).unwrap().to_le_bytes()[..], &vec![b'x'; length]].concat();
    let size = |data: &[u8]| i64::try_from(data.len()).unwrap();
    let dictionary = |data: &[u8]| page(true, PLAIN, 1, size(data), data);
    let repeated = page(false, RLE_DICTIONARY, 60, 8, &[0; 8]);
    let whole = |dictionary: Vec<u8>| [dictionary, repeated.clone()].concat();
    assert_eq!(check("name", 60, &whole(dictionary(&text(1_000)))), Some(1_000));
    assert_eq!(check("name", 60, &whole(dictionary(&text(MAX_TEXT_BYTES + 1)))), None, "a text that is too long, repeated");
    assert_eq!(check("name", 59, &whole(dictionary(&text(9)))), None, "more values than rows");
    assert_eq!(check("name", 61, &whole(dictionary(&text(9)))), None, "fewer values than rows");
    let bomb = vec![0; 1 << 20];
    assert_eq!(check("name", 60, &page(false, PLAIN, 60, 1 << 30, &bomb)), None, "a page of a gibibyte");
    let pages: Vec<u8> = (0..9).flat_map(|_| page(false, PLAIN, 6, 4 << 20, &[])).collect();
    assert_eq!(check("name", 54, &pages), None, "pages of 36 MiB together");
    assert_eq!(check("name", 60, &page(true, PLAIN, 1, 5, &text(1_000))), None, "more data than it claims");
    assert_eq!(check("name", 60, &page(false, 7, 60, 8, &[0; 8])), None, "texts that repeat the one before");
    assert_eq!(check("position", 60, &page(false, DELTA_BINARY_PACKED, 60, 8, &[128, 2, 4, 60, 0, 0, 0, 0])), Some(0));
    let huge_block = [0xff, 0xff, 0xff, 0xff, 0x0f, 4, 60, 0];
    assert_eq!(check("position", 60, &page(false, DELTA_BINARY_PACKED, 60, 8, &huge_block)), None, "a block of gibibytes");
    assert_eq!(check("name", 1, &[1, 2, 3]), None);
}
