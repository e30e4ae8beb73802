//! A ring that keeps the last bytes of a stream, within a fixed number of them.

/// The last `limit` bytes of everything pushed, addressed by their offset in the whole stream.
///
/// While the stream is no longer than the limit the storage is a plain vector that grows. Once it is full it
/// never grows or moves again: `head` is both the oldest byte kept and the next one to be overwritten.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    head: usize,
    limit: usize,
    total: u64,
}

impl Ring {
    /// An empty ring. Nothing is allocated before the first byte, so a quiet stream costs none of its budget.
    pub(crate) fn new(limit: usize) -> Ring {
        debug_assert!(limit >= 1, "a budget of zero is refused where requests are resolved");
        Ring { bytes: Vec::new(), head: 0, limit, total: 0 }
    }

    /// Appends a chunk of the stream and forgets what no longer fits.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        // Of a chunk longer than the ring, the beginning would be overwritten by the chunk's own end.
        let chunk = &chunk[chunk.len().saturating_sub(self.limit)..];

        let room = self.limit - self.bytes.len();
        let (appended, overwriting) = chunk.split_at(chunk.len().min(room));
        self.grow_for(appended.len());
        self.bytes.extend_from_slice(appended);
        if overwriting.is_empty() {
            return;
        }

        // Here the ring is full, and `overwriting` is no longer than it: two copies at most.
        let to_the_end = overwriting.len().min(self.limit - self.head);
        let (at_head, at_front) = overwriting.split_at(to_the_end);
        self.bytes[self.head..self.head + at_head.len()].copy_from_slice(at_head);
        self.bytes[..at_front.len()].copy_from_slice(at_front);
        // A head that stands behind the last byte is as good as one at the first.
        self.head = if at_front.is_empty() { self.head + at_head.len() } else { at_front.len() };
    }

    /// How many bytes were ever pushed: the offset at which the stream ends so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The offset in the stream of the oldest byte kept; `total` when none is.
    pub(crate) fn start(&self) -> u64 {
        self.total - self.bytes.len() as u64
    }

    /// How many bytes are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes are kept at most.
    #[cfg(test)]
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The bytes kept from `offset` of the stream on, oldest first, as the two parts they lie in. An offset
    /// before `start` means `start`, one after `total` means `total`.
    pub(crate) fn slices_from(&self, offset: u64) -> (&[u8], &[u8]) {
        // No larger than `len`, so it fits.
        let skipped = (offset.clamp(self.start(), self.total) - self.start()) as usize;
        let (newer, older) = self.bytes.split_at(self.head);
        match skipped.checked_sub(older.len()) {
            None => (&older[skipped..], newer),
            Some(into_newer) => (&newer[into_newer..], &[]),
        }
    }

    /// The same bytes as `slices_from`, in one piece.
    pub(crate) fn copy_from(&self, offset: u64) -> Vec<u8> {
        let (older, newer) = self.slices_from(offset);
        [older, newer].concat()
    }

    /// Makes room for `more` bytes by doubling. The vector's own growth would do the same, but past the limit
    /// too.
    fn grow_for(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let doubled = self.bytes.capacity().saturating_mul(2);
            let target = needed.max(doubled).min(self.limit);
            self.bytes.reserve_exact(target - self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use proptest::prelude::*;

    /// Bytes that tell their own offset, as far as a byte can.
    fn stream(len: usize) -> Vec<u8> {
        (0..len).map(|offset| (offset % 251) as u8).collect()
    }

    fn filled(limit: usize, chunks: &[&[u8]]) -> Ring {
        let mut ring = Ring::new(limit);
        for chunk in chunks {
            ring.push(chunk);
        }
        ring
    }

    // O1
    #[test]
    fn a_quiet_stream_allocates_nothing() {
        let mut ring = Ring::new(usize::MAX);
        ring.push(b"");
        assert_eq!(ring.bytes.capacity(), 0);
        assert_eq!((ring.len(), ring.total(), ring.start()), (0, 0, 0));
        assert!(ring.copy_from(0).is_empty() && ring.copy_from(u64::MAX).is_empty());
    }

    // O1
    #[test]
    fn storage_doubles_and_stops_at_the_limit() {
        let mut ring = Ring::new(1000);
        let mut capacities = vec![0];
        for byte in stream(5000) {
            ring.push(&[byte]);
            if ring.bytes.capacity() != capacities[capacities.len() - 1] {
                capacities.push(ring.bytes.capacity());
            }
        }
        assert_eq!(ring.bytes.capacity(), 1000);
        assert!(capacities.len() <= 12, "grown too often: {capacities:?}");
    }

    // O1
    #[test]
    fn storage_never_exceeds_the_limit_in_one_leap_either() {
        assert_eq!(filled(100, &[&stream(60), &stream(60)]).bytes.capacity(), 100);
        assert_eq!(filled(100, &[&stream(5000)]).bytes.capacity(), 100);
    }

    // O3
    #[test]
    fn exactly_the_limit_drops_nothing_and_one_more_drops_one() {
        let mut ring = filled(4, &[b"ab", b"cd"]);
        assert_eq!((ring.start(), ring.copy_from(0)), (0, b"abcd".to_vec()));
        ring.push(b"e");
        assert_eq!((ring.start(), ring.copy_from(0)), (1, b"bcde".to_vec()));
    }

    // O9
    #[test]
    fn offsets_outside_what_is_kept_are_clamped() {
        let ring = filled(3, &[b"abcde"]);
        assert_eq!(ring.slices_from(0).0.len() + ring.slices_from(0).1.len(), 3);
        assert_eq!(ring.copy_from(1), b"cde");
        assert_eq!(ring.copy_from(4), b"e");
        assert_eq!(ring.copy_from(5), b"");
        assert_eq!(ring.copy_from(u64::MAX), b"");
    }

    proptest! {
        // O1, O3: whatever the chunks, the ring is the end of the stream.
        #[test]
        fn is_the_tail_of_the_stream(
            limit in 1usize..40,
            lengths in prop::collection::vec(0usize..100, 0..30),
            offset in 0u64..1000,
        ) {
            let whole = stream(lengths.iter().sum());
            let mut ring = Ring::new(limit);
            let mut seen = 0;
            for length in lengths {
                ring.push(&whole[seen..seen + length]);
                seen += length;

                let start = seen.saturating_sub(limit);
                prop_assert_eq!(ring.total(), seen as u64);
                prop_assert_eq!(ring.start(), start as u64);
                prop_assert_eq!(ring.len(), seen - start);
                prop_assert_eq!(ring.limit(), limit);
                prop_assert!(ring.bytes.capacity() <= limit);
                prop_assert_eq!(ring.copy_from(0), &whole[start..seen]);

                let from = (offset as usize).clamp(start, seen);
                let (older, newer) = ring.slices_from(offset);
                prop_assert_eq!([older, newer].concat(), &whole[from..seen]);
                prop_assert_eq!(ring.copy_from(offset), &whole[from..seen]);
            }
        }
    }
}
