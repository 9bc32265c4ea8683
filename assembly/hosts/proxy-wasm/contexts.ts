// Contexts by the id that the host gives them: open addressing, at most three quarters full.
//
//   entry, 8 bytes:  id u32 (0: free) | record u32
import { blockAlloc, blockFree } from '../../arena'

let table: usize = 0
let slots: u32 = 0
let used: u32 = 0

function grow(): bool {
  const before = table
  const size = slots
  const bigger = blockAlloc(<usize>max(size * 2, 64) << 3)
  if (bigger == 0) return false
  table = bigger
  slots = max(size * 2, 64)
  memory.fill(table, 0, <usize>slots << 3)
  for (let i: u32 = 0; i < size; i++) {
    const id = load<u32>(before + (<usize>i << 3))
    if (id != 0) store<u64>(slotOf(id), load<u64>(before + (<usize>i << 3)))
  }
  if (before != 0) blockFree(before)
  return true
}

/** The slot of an id, or the free one where it would be. */
function slotOf(id: u32): usize {
  let index = (id * 0x9e3779b1) & (slots - 1)
  let at = table + (<usize>index << 3)
  while (load<u32>(at) != 0 && load<u32>(at) != id) {
    index = (index + 1) & (slots - 1)
    at = table + (<usize>index << 3)
  }
  return at
}

/** The record of a context, or 0. */
export function recordOfContext(id: u32): usize {
  return slots == 0 ? 0 : load<u32>(slotOf(id), 4)
}

/** Keeps a record; false if there is no memory. */
export function keepContext(id: u32, record: usize): bool {
  if (used * 4 >= slots * 3 && !grow()) return false
  const at = slotOf(id)
  if (load<u32>(at) == 0) used++
  store<u32>(at, id)
  store<u32>(at, <u32>record, 4)
  return true
}

/** Forgets a context. Entries behind it move up, so that no gap is left. */
export function dropContext(id: u32): void {
  if (slots == 0) return
  let gap = slotOf(id)
  if (load<u32>(gap) == 0) return
  used--
  store<u64>(gap, 0)
  let index = (<u32>((gap - table) >> 3) + 1) & (slots - 1)
  for (let at = table + (<usize>index << 3); load<u32>(at) != 0; at = table + (<usize>index << 3)) {
    const entry = load<u64>(at)
    store<u64>(at, 0)
    store<u64>(slotOf(<u32>entry), entry)
    index = (index + 1) & (slots - 1)
  }
}
