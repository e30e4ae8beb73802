//! The offer to keep a command that has outrun its deadline.

use std::fmt;
use std::sync::Arc;

/// Whoever runs the command that an offer is about. For providers of executions; callers answer the
/// [`PromotionOffer`].
pub trait OfferBackend: Send + Sync {
    /// Keeps the command. `false` when it came too late.
    fn accept(&self) -> bool;

    /// Stops the command as a timeout. `false` when something else has ended it, or the offer was answered.
    fn decline(&self) -> bool;
}

/// A command has reached its deadline and still runs: keep it, or stop it.
///
/// The offer answers once. Dropped, or not answered within the answer window (1 s by default, from the deadline), it
/// declines: a forgotten offer is an ordinary timeout, never a process that nobody watches. While it is open the command
/// runs on, and its end, an abort or a `kill()` still take it away; the offer then accepts nothing.
pub struct PromotionOffer {
    /// `None` once answered.
    backend: Option<Arc<dyn OfferBackend>>,
}

impl PromotionOffer {
    /// An offer that `backend` is told the answer of. For providers of executions.
    #[must_use]
    pub fn new(backend: Arc<dyn OfferBackend>) -> PromotionOffer {
        PromotionOffer { backend: Some(backend) }
    }

    /// Keeps the command. From now on there is no deadline and no abort token: only `kill()` and the disposal of the
    /// service stop it. Output, handle, spill file and stdin go on without a gap.
    ///
    /// `false` when it came too late: the command has ended, was aborted or killed, or the answer window is over. The
    /// execution's result then says which.
    #[must_use = "an offer can come too late"]
    pub fn accept(mut self) -> bool {
        self.backend.take().is_some_and(|backend| backend.accept())
    }

    /// Stops the command now, as a timeout. `false` when something else has ended it.
    pub fn decline(mut self) -> bool {
        self.backend.take().is_some_and(|backend| backend.decline())
    }
}

impl Drop for PromotionOffer {
    fn drop(&mut self) {
        if let Some(backend) = self.backend.take() {
            backend.decline();
        }
    }
}

impl fmt::Debug for PromotionOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromotionOffer").finish_non_exhaustive()
    }
}
