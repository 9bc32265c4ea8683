/**
 * One hash map per table holds everything that routing looks up by bytes. A *node* is keyed by
 * (kind, parent, bytes), so that tries need no structure of their own: the segments of a path are
 * nodes whose parent is the node of the segment before, and the first one's parent is its hostname
 * group. Adding or removing an entry touches its own nodes only.
 *
 *     table: +0 MAGIC  +4 BUCKETS  +8 MASK  +12 NODES  +16 ROUTES  +32 COUNTS, one by kind
 *
 *     node:  +0 NEXT of the bucket   +4 HASH    +8 PARENT   +12 KIND
 *            +16 KEY LENGTH          +20 USES   +24 FIRST   +28 SECOND   +32 key bytes
 *
 *     kind              parent      key            FIRST                SECOND
 *     KIND_SEGMENT      node        a segment      exact routes         prefix routes
 *     KIND_GROUP+host   scope       hostname       pattern routes       prefix routes of `/`
 *     KIND_LISTENER+h.  0           hostname       scope                -
 *     KIND_ID           route id    -              route                -
 *
 * USES counts children and routes; a node without any is removed, then its parent is looked at.
 * Hashes only choose a bucket; the bytes decide.
 */
import { blockAlloc, blockFree, isReadable } from '../arena'
import { hashBytes, isEqual } from '../bytes'

export const KIND_SEGMENT: u32 = 1
export const KIND_ID: u32 = 2
/** KIND_GROUP + HOST_*, KIND_LISTENER + HOST_*. */
export const KIND_GROUP: u32 = 4
export const KIND_LISTENER: u32 = 8
const KINDS: usize = 12

const MAGIC: u32 = 0x4c425452
const COUNTS: usize = 32
const TABLE_SIZE: usize = COUNTS + 4 * KINDS
const FIRST_BUCKETS: u32 = 64

@unmanaged
export class Table {
  magic: u32
  buckets: u32
  mask: u32
  nodes: u32
  routes: u32
}

@unmanaged
export class Node {
  next: u32
  hash: u32
  parent: u32
  kind: u32
  length: u32
  uses: u32
  first: u32
  second: u32
}

const NODE_SIZE: usize = 32

/** Address of a node's key. */
// @ts-ignore: decorator
@inline
export function keyOf(node: Node): usize {
  return changetype<usize>(node) + NODE_SIZE
}

/** The table of a handle; null when the handle is not one. */
export function tableOf(handle: i32): Table | null {
  if (handle <= 0 || handle & 15 || !isReadable(<usize>handle, TABLE_SIZE)) return null
  const table = changetype<Table>(<usize>handle)
  return table.magic == MAGIC ? table : null
}

function newBuckets(count: u32): usize {
  const buckets = blockAlloc(<usize>count << 2)
  if (buckets != 0) memory.fill(buckets, 0, <usize>count << 2)
  return buckets
}

/** An empty table, or null when there is no room. */
export function newTable(): Table | null {
  const address = blockAlloc(TABLE_SIZE)
  if (address == 0) return null
  const buckets = newBuckets(FIRST_BUCKETS)
  if (buckets == 0) {
    blockFree(address)
    return null
  }
  memory.fill(address, 0, TABLE_SIZE)
  const table = changetype<Table>(address)
  table.magic = MAGIC
  table.buckets = <u32>buckets
  table.mask = FIRST_BUCKETS - 1
  return table
}

/** Frees a table's own blocks; its nodes are gone or are freed by the caller before. */
export function dropTable(table: Table): void {
  table.magic = 0
  blockFree(<usize>table.buckets)
  blockFree(changetype<usize>(table))
}

// @ts-ignore: decorator
@inline
function seedOf(kind: u32, parent: u32): u64 {
  return (<u64>kind << 32) | <u64>parent
}

// @ts-ignore: decorator
@inline
function bucketOf(table: Table, hash: u32): usize {
  return <usize>table.buckets + (<usize>(hash & table.mask) << 2)
}

/** How many nodes of a kind there are: a look-up that can find nothing is not made. */
// @ts-ignore: decorator
@inline
export function countOf(table: Table, kind: u32): u32 {
  return load<u32>(changetype<usize>(table) + COUNTS + (<usize>kind << 2))
}

// @ts-ignore: decorator
@inline
function addCount(table: Table, kind: u32, change: i32): void {
  const count = changetype<usize>(table) + COUNTS + (<usize>kind << 2)
  store<i32>(count, load<i32>(count) + change)
}

/** The node of a key, or null. */
export function findNode(
  table: Table,
  kind: u32,
  parent: u32,
  key: usize,
  length: usize,
): Node | null {
  const hash = hashBytes(key, length, seedOf(kind, parent))
  let at = load<u32>(bucketOf(table, hash))
  while (at != 0) {
    const node = changetype<Node>(<usize>at)
    if (
      node.hash == hash &&
      node.parent == parent &&
      node.kind == kind &&
      <usize>node.length == length &&
      isEqual(keyOf(node), key, length)
    ) {
      return node
    }
    at = node.next
  }
  return null
}

/** Doubles the buckets; without room the chains just get longer. */
function grow(table: Table): void {
  const count = (table.mask + 1) << 1
  const buckets = newBuckets(count)
  if (buckets == 0) return
  const old = <usize>table.buckets
  const oldCount = table.mask + 1
  table.buckets = <u32>buckets
  table.mask = count - 1
  for (let i: u32 = 0; i < oldCount; i++) {
    let at = load<u32>(old + (<usize>i << 2))
    while (at != 0) {
      const node = changetype<Node>(<usize>at)
      at = node.next
      const bucket = bucketOf(table, node.hash)
      node.next = load<u32>(bucket)
      store<u32>(bucket, <u32>changetype<usize>(node))
    }
  }
  blockFree(old)
}

/** The node of a key, made with no uses when it is new; null when there is no room. */
export function obtainNode(
  table: Table,
  kind: u32,
  parent: u32,
  key: usize,
  length: usize,
): Node | null {
  const present = findNode(table, kind, parent, key, length)
  if (present) return present
  const address = blockAlloc(NODE_SIZE + length)
  if (address == 0) return null
  if (table.nodes > table.mask) grow(table)
  memory.fill(address, 0, NODE_SIZE)
  const node = changetype<Node>(address)
  node.hash = hashBytes(key, length, seedOf(kind, parent))
  node.parent = parent
  node.kind = kind
  node.length = <u32>length
  memory.copy(keyOf(node), key, length)
  const bucket = bucketOf(table, node.hash)
  node.next = load<u32>(bucket)
  store<u32>(bucket, <u32>address)
  table.nodes++
  addCount(table, kind, 1)
  if (kind == KIND_SEGMENT) changetype<Node>(<usize>parent).uses++
  return node
}

function unlink(table: Table, node: Node): void {
  let link = bucketOf(table, node.hash)
  const address = <u32>changetype<usize>(node)
  while (load<u32>(link) != address) link = <usize>load<u32>(link)
  store<u32>(link, node.next)
  table.nodes--
  addCount(table, node.kind, -1)
  blockFree(<usize>address)
}

/** Removes an unused node, then each parent that became unused with it. */
export function pruneNode(table: Table, unused: Node): void {
  let node = unused
  while (node.uses == 0) {
    const parent = node.kind == KIND_SEGMENT ? node.parent : 0
    unlink(table, node)
    if (parent == 0) return
    node = changetype<Node>(<usize>parent)
    node.uses--
  }
}
