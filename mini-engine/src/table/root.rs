//! [`Root`]: what an open table keeps in memory, the parts that lead to its data blocks.

use std::path::Path;
use std::sync::Arc;

use super::filter::Filter;
use super::format::{FOOTER_LEN, Footer, Handle};
use super::frame::BlockLocation;
use super::index::Index;
use super::properties::{Properties, TableMeta};
use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::File;

/// What an open table keeps in memory, beside its file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: Arc<dyn File>,
    pub(super) root: Arc<Root>,
}

/// The parts of a table that lead to its data blocks.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) filter: Option<Filter>,
    pub(super) index: Index,
    pub(super) properties: Properties,
}

impl Root {
    /// Bytes of memory that the filter and the index take.
    pub(super) fn memory_len(&self) -> usize {
        self.index.memory_len() + self.filter.as_ref().map_or(0, Filter::memory_len)
    }
}

impl Opened {
    /// Reads the root of table `number`, and describes the table by it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`]; [`Error::UnsupportedVersion`].
    pub(super) fn read(file: Arc<dyn File>, path: &Path, number: u64) -> Result<(Opened, TableMeta)> {
        let (footer, size) = read_footer(&*file, path, number)?;
        let location = |handle| BlockLocation { path, number, handle };
        let malformed = |handle: Handle| move |error: Malformed| error.in_file(path, handle.offset);
        let filter = match footer.filter.len {
            0 => None,
            _ => {
                let block = location(footer.filter).read(&*file)?;
                let contents = block.contents();
                let decoded = Filter::decode(contents);
                let decoded = decoded.map_err(|expected| Malformed { offset: contents.len(), expected });
                Some(decoded.map_err(malformed(footer.filter))?)
            }
        };
        let block = location(footer.index).read(&*file)?;
        let index = Index::decode(block, footer.filter.offset).map_err(malformed(footer.index))?;
        let block = location(footer.properties).read(&*file)?;
        let properties = Properties::decode(block.contents()).map_err(malformed(footer.properties))?;
        let meta = properties.meta(number, size);
        Ok((Opened { file, root: Arc::new(Root { filter, index, properties }) }, meta))
    }
}

/// The footer and the length of the file. Every byte of the file belongs to a block or to the footer.
fn read_footer(file: &dyn File, path: &Path, number: u64) -> Result<(Footer, u64)> {
    let size = file.len().map_err(Error::io("read the length of", path))?;
    let Some(offset) = size.checked_sub(FOOTER_LEN as u64) else {
        let what = format!("table footer: expected {FOOTER_LEN} bytes, found a file of {size}");
        return Err(Error::corruption(path, 0, what));
    };
    let mut bytes = [0; FOOTER_LEN];
    file.read_exact_at(&mut bytes, offset).map_err(Error::io("read", path))?;
    let footer = Footer::decode(&bytes, path, number, offset)?;
    let ends = [footer.filter, footer.index, footer.properties].map(Handle::end);
    if ends != [footer.index.offset, footer.properties.offset, offset].map(Some) {
        let what = format!("block handles: expected them to meet each other and the footer, found {footer:?}");
        return Err(Error::corruption(path, offset, what));
    }
    Ok((footer, size))
}
