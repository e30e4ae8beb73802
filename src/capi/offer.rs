//! The offer to keep a command that has outrun its deadline.

use super::boundary::*;
use super::error::shx_error;
use crate::PromotionOffer;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// An offer, which answers once. Freed without an answer, it declines.
pub struct shx_promotion_offer(Mutex<Option<PromotionOffer>>);

impl shx_promotion_offer {
    pub(super) fn of(offer: PromotionOffer) -> shx_promotion_offer {
        shx_promotion_offer(Mutex::new(Some(offer)))
    }

    fn answer(&self, answer: impl FnOnce(PromotionOffer) -> bool) -> bool {
        let offer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        offer.is_some_and(answer)
    }
}

/// Keeps the command: no deadline and no abort token from now on. `kept` (may be null) is set to whether it came in time;
/// false too when it was answered before. The offer is still to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn shx_promotion_offer_accept(
    offer: Option<&shx_promotion_offer>,
    kept: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let accepted = given(offer, "offer")?.answer(PromotionOffer::accept);
        tell(kept, Some(accepted));
        Ok(())
    })
}

/// Stops the command now, as a timeout. `stopped` (may be null) is set to whether this did it. The offer is still to be
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn shx_promotion_offer_decline(
    offer: Option<&shx_promotion_offer>,
    stopped: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut shx_error>>,
) -> shx_status {
    boundary(error, || {
        let declined = given(offer, "offer")?.answer(PromotionOffer::decline);
        tell(stopped, Some(declined));
        Ok(())
    })
}

/// Frees an offer; one that has no answer declines. Null is fine.
#[unsafe(no_mangle)]
pub extern "C" fn shx_promotion_offer_free(offer: Option<Box<shx_promotion_offer>>) {
    free(offer);
}
