//! Makes, finds and drops keyspaces.

use crate::db::core::{Core, fail_on_unwind};
use crate::db::write::{persist, wait_for_reserve};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::manifest::KeyspaceMeta;
use crate::options::KeyspaceOptions;
use crate::types::{Durability, KeyspaceRef};

/// The keyspace `name`, which is made if there is none, with `options`; without them, as it is or with the default ones.
pub(crate) fn keyspace(core: &Core, name: &str, options: Option<KeyspaceOptions>) -> Result<KeyspaceRef> {
    core.check_open()?;
    if let Some(open) = core.keyspaces.get(name).filter(|_| options.is_none()) {
        return Ok(KeyspaceRef::new(open));
    }
    options.iter().try_for_each(KeyspaceOptions::validate)?;
    let known = lock(&core.manifest).state().keyspaces.named(name).cloned();
    let is_new = known.is_none_or(|known| options.as_ref().is_some_and(|options| *options != known.options));
    if is_new && !core.store.options.read_only {
        // Not with the lock of the manifest, which a flush that uses the reserve needs.
        drop(wait_for_reserve(core, core.lock(), 0)?);
    }
    let mut manifest = lock(&core.manifest);
    let keyspaces = &manifest.state().keyspaces;
    let known = keyspaces.named(name);
    let is_as_wanted = known.is_some_and(|known| options.as_ref().is_none_or(|options| *options == known.options));
    if let Some(open) = core.keyspaces.get(name).filter(|_| is_as_wanted) {
        return Ok(KeyspaceRef::new(open));
    }
    if known.is_none() && core.store.options.read_only {
        return Err(Error::NoKeyspace { name: name.to_owned() });
    }
    let options = options.unwrap_or_default();
    let meta = match known {
        Some(known) => KeyspaceMeta { options, ..known.clone() },
        None => keyspaces.create(name, options)?,
    };
    core.check_writable(&core.lock())?;
    tracing::debug!(name, id = meta.id, "keyspace");
    fail_on_unwind(core, || core.set_keyspace(&mut manifest, meta)).map(KeyspaceRef::new)
}

/// Drops the keyspace `name`.
pub(crate) fn drop_keyspace(core: &Core, name: &str) -> Result<()> {
    core.check_open()?;
    let find = || core.keyspaces.get(name).ok_or_else(|| Error::NoKeyspace { name: name.to_owned() });
    find()?;
    let _alone = core.keyspaces.hold();
    // The caller may have moved the contents elsewhere. If the drop survives a power cut, so must those writes.
    persist(core, Durability::Synced)?;
    let mut manifest = lock(&core.manifest);
    let open = find()?;
    core.check_writable(&core.lock())?;
    tracing::debug!(name, id = open.prefix.id(), "drops a keyspace");
    fail_on_unwind(core, || core.forget_keyspace(&mut manifest, &open))
}
