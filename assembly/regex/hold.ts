// Computes at compile time how long a search can stay undecided, so that a host that streams knows
// before the first byte how much text it must hold back.
//
// A thread of a match is *undecided* until it has accepted, and again between two acceptances of a match
// that continues. If the bound is N, no thread consumes more than N bytes without accepting or dying, and
// earlier text is decided. There is no bound if an unbounded repetition must be
// followed by more (`a+b`), including assertions. `ab{3,}` has a bound, because after its third b
// every further one only makes the match longer.
import { Node, NODE_ALTERNATE, NODE_ASSERT, NODE_CHARACTER, NODE_CLASS, NODE_CONCAT, NODE_REPEAT } from './node'
import { rangeHigh } from './ranges'

/** No bound. */
export const UNBOUNDED: i32 = -1
/** Larger bounds count as no bound, because no host should hold back that much text. */
const LARGEST: i32 = 1 << 20

function utf8Bytes(point: u32): i32 {
  if (point < 0x80) return 1
  if (point < 0x800) return 2
  return point < 0x10000 ? 3 : 4
}

function bounded(bytes: i64): i32 {
  return bytes > LARGEST ? UNBOUNDED : <i32>bytes
}

/**
 * Returns the number of bytes that a thread can consume in this node without accepting. `isTail`: whatever
 * follows the node may match nothing without a condition, so that a thread that leaves the node accepts.
 */
export function undecidedBytes(at: usize, isTail: bool): i32 {
  const node = changetype<Node>(at)
  if (node.kind == NODE_CHARACTER) return utf8Bytes(node.first)
  if (node.kind == NODE_CLASS) return node.count == 0 ? 0 : utf8Bytes(rangeHigh(node.first + <u32>node.count - 1))
  if (node.kind == NODE_CONCAT) return undecidedInConcat(node, isTail)
  if (node.kind == NODE_ALTERNATE) return undecidedInAlternate(node, isTail)
  return node.kind == NODE_REPEAT ? undecidedInRepeat(node, isTail) : 0
}

function undecidedInConcat(node: Node, isTail: bool): i32 {
  let total: i64 = 0
  let tail = isTail
  for (let child = node.lastChild; child != 0; child = changetype<Node>(child).previous) {
    const bytes = undecidedBytes(child, tail)
    if (bytes == UNBOUNDED) return UNBOUNDED
    total += bytes
    tail = tail && isFreelyNullable(child)
  }
  return bounded(total)
}

function undecidedInAlternate(node: Node, isTail: bool): i32 {
  let most = 0
  for (let child = node.firstChild; child != 0; child = changetype<Node>(child).next) {
    const bytes = undecidedBytes(child, isTail)
    if (bytes == UNBOUNDED) return UNBOUNDED
    most = max(most, bytes)
  }
  return most
}

function undecidedInRepeat(node: Node, isTail: bool): i32 {
  if (node.count == 0) return 0
  const isEndless = node.count < 0
  if (isEndless && !isTail) return UNBOUNDED
  const bytes = undecidedBytes(node.firstChild, isTail && node.first <= 1)
  if (bytes == UNBOUNDED) return UNBOUNDED
  const rounds: i64 = isEndless ? <i64>node.first + 1 : node.count
  return bounded(rounds * <i64>bytes)
}

/** Returns true if the node can match nothing at any position. */
function isFreelyNullable(at: usize): bool {
  const node = changetype<Node>(at)
  return node.isNullable && !holdsAssertion(at)
}

function holdsAssertion(at: usize): bool {
  const node = changetype<Node>(at)
  if (node.kind == NODE_ASSERT) return true
  for (let child = node.firstChild; child != 0; child = changetype<Node>(child).next) {
    if (holdsAssertion(child)) return true
  }
  return false
}
