//! A contribution: a contributor held to what it has declared.

use super::contributor::{EnvCall, EnvContributor, EnvVariable};
use super::{check_managed_name, check_value};
use crate::error::Error;
use std::any::Any;
use std::collections::{BTreeMap, btree_map};
use std::ffi::{OsStr, OsString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A contributor, and what it has declared. Its name and variables are never asked for again.
pub(super) struct Contribution {
    pub(super) name: String,
    pub(super) variables: Vec<EnvVariable>,
    contributor: Arc<dyn EnvContributor>,
}

impl Contribution {
    /// What the contributor declares, as far as that is its own affair.
    pub(super) fn of(contributor: Arc<dyn EnvContributor>) -> Result<Contribution, Error> {
        let name = unwinding(|| contributor.name().to_owned())
            .map_err(|panic| Error::invalid("environment contributor", format!("without a name {panic}")))?;
        if name.trim().is_empty() {
            return Err(Error::invalid("environment contributor", "has a blank name"));
        }
        let variables = unwinding(|| contributor.variables()).map_err(|panic| refused(&name, panic))?;
        for (at, variable) in variables.iter().enumerate() {
            let key = &variable.name;
            let no = |reason: &str| Err(refused(&name, format!("declares {}, which {reason}", shown(key))));
            if let Err(reason) = check_managed_name(OsStr::new(key)) {
                return no(reason);
            }
            if variables[..at].iter().any(|earlier| earlier.name == *key) {
                return no("it has declared already");
            }
            if variable.description.trim().is_empty() {
                return no("has no description");
            }
        }
        Ok(Contribution { name, variables, contributor })
    }

    pub(super) fn declares(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable.name == name)
    }

    /// Adds the values for one execution.
    pub(super) fn collect(
        &self,
        call: &EnvCall,
        values: &mut BTreeMap<String, OsString>,
    ) -> Result<(), Error> {
        let failed = |variable: Option<&str>, reason: String| Error::ManagedEnv {
            contributor: self.name.clone(),
            variable: variable.map(str::to_owned),
            reason,
        };
        // The error is put into words in here as well: it is the contributor's own code that does it.
        let given = unwinding(|| self.contributor.collect(call).map_err(|error| error.to_string()))
            .map_err(|panic| failed(None, panic))?
            .map_err(|error| failed(None, format!("failed: {error}")))?;
        for (name, value) in given {
            let no = |reason: &str| Err(failed(Some(&name), format!("gives {}{reason}", shown(&name))));
            if !self.declares(&name) {
                return no(", which it has not declared");
            }
            if check_value(&value).is_err() {
                return no(" a value that contains a NUL byte");
            }
            // A variable has one owner, so what is there already is its own.
            match values.entry(name.clone()) {
                btree_map::Entry::Vacant(place) => place.insert(value),
                btree_map::Entry::Occupied(_) => return no(" twice"),
            };
        }
        Ok(())
    }
}

pub(super) fn refused(contributor: &str, reason: impl Into<String>) -> Error {
    Error::invalid(format!("environment contributor {contributor:?}"), reason.into())
}

/// A variable's name in a message: as it is, unless it is no name.
fn shown(name: &str) -> String {
    if check_managed_name(OsStr::new(name)).is_ok() { name.to_owned() } else { format!("{name:?}") }
}

/// Calls a contributor; a panic is told in words to follow its name.
fn unwinding<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // Nothing of ours is half changed by it: a contributor is given only what it may read.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| match message(&*panic) {
        Some(message) => format!("panicked: {message}"),
        None => "panicked".to_owned(),
    })
}

fn message(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}
