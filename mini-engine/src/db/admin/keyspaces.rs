//! Creates, finds and drops keyspaces.

use crate::db::core::{Core, fail_on_unwind};
use crate::db::write::{persist, wait_for_reserve};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::manifest::KeyspaceMeta;
use crate::options::KeyspaceOptions;
use crate::types::{Durability, KeyspaceRef};

/// The keyspace `name`, created if it does not exist. It gets `options` if they are given; otherwise it keeps its own, or has the defaults.
pub(crate) fn keyspace(core: &Core, name: &str, options: Option<KeyspaceOptions>) -> Result<KeyspaceRef> {
    core.check_open()?;
    if let Some(open) = core.keyspaces.get(name).filter(|_| options.is_none()) {
        return Ok(KeyspaceRef::new(open));
    }
    options.iter().try_for_each(KeyspaceOptions::validate)?;
    loop {
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
        let state = core.lock();
        core.check_writable(&state)?;
        if !core.is_covered(&state, 0) {
            // The manifest's lock is not held here: compactions that free space need it.
            drop(state);
            drop(manifest);
            drop(wait_for_reserve(core, core.lock(), 0)?);
            continue;
        }
        drop(state);
        let options = options.unwrap_or_default();
        let meta = match known {
            Some(known) => KeyspaceMeta { options, ..known.clone() },
            None => keyspaces.create(name, options)?,
        };
        tracing::debug!(name, id = meta.id, "keyspace");
        return fail_on_unwind(core, || core.set_keyspace(&mut manifest, meta)).map(KeyspaceRef::new);
    }
}

/// Drops the keyspace `name`.
pub(crate) fn drop_keyspace(core: &Core, name: &str) -> Result<()> {
    core.check_open()?;
    let find = || core.keyspaces.get(name).ok_or_else(|| Error::NoKeyspace { name: name.to_owned() });
    find()?;
    let _alone = core.keyspaces.hold();
    // The caller may have moved the contents elsewhere before. If the drop survives a power failure, those writes must survive it too.
    persist(core, Durability::Synced)?;
    let mut manifest = lock(&core.manifest);
    let open = find()?;
    core.check_writable(&core.lock())?;
    tracing::debug!(name, id = open.prefix.id(), "drops a keyspace");
    fail_on_unwind(core, || core.forget_keyspace(&mut manifest, &open))
}
