// The syntax tree: fixed-size nodes in arena scratch, children in a doubly linked list (the compiler
// generates code from the last child to the first).
import { arenaAlloc } from '../arena'
import { ERROR_MEMORY } from '../abi'
import { fail } from './codes'

/** Matches the empty text. */
export const NODE_EMPTY: u32 = 0
/** One code point of the ranges [first, first + count) of the range vector. */
export const NODE_CLASS: u32 = 1
export const NODE_CONCAT: u32 = 2
export const NODE_ALTERNATE: u32 = 3
/** The only child, `first` to `count` times; count -1 is without bound. */
export const NODE_REPEAT: u32 = 4
/** A zero-width condition; `first` is ASSERT_*. */
export const NODE_ASSERT: u32 = 5
/** One code point, `first`. */
export const NODE_CHARACTER: u32 = 6

export const ASSERT_TEXT_START: u32 = 0
export const ASSERT_TEXT_END: u32 = 1
export const ASSERT_LINE_START: u32 = 2
export const ASSERT_LINE_END: u32 = 3
export const ASSERT_WORD: u32 = 4
export const ASSERT_NOT_WORD: u32 = 5
/** Not inside a UTF-8 sequence; only the compiler adds it, at the start of a search. */
export const ASSERT_CHARACTER: u32 = 6

@unmanaged
export class Node {
  kind: u32
  isLazy: bool
/** True if the node can match the empty text. Assertions count as true, even if they cannot. */
  isNullable: bool
  first: u32
  count: i32
  firstChild: usize
  lastChild: usize
  next: usize
  previous: usize
}

let nodesLeft: i32 = 0
let nextNode: usize = 0

/** Room for the nodes of a pattern: there are at most two nodes per byte, and four more. */
export function nodesStart(patternBytes: i32): void {
  nodesLeft = patternBytes * 2 + 8
  nextNode = arenaAlloc(<usize>nodesLeft * offsetof<Node>())
  if (nextNode == 0) nodesLeft = 0
}

/** Makes a node without children. Returns 0 if there is no room. */
export function newNode(kind: u32): usize {
  if (nodesLeft == 0) return fail(ERROR_MEMORY, 0)
  nodesLeft--
  const at = nextNode
  nextNode += offsetof<Node>()
  memory.fill(at, 0, offsetof<Node>())
  changetype<Node>(at).kind = kind
  return at
}

/** Appends a child and updates the parent's nullability, which is true at first in NODE_CONCAT. */
export function appendChild(parentAt: usize, childAt: usize): void {
  const parent = changetype<Node>(parentAt)
  const child = changetype<Node>(childAt)
  child.previous = parent.lastChild
  if (parent.lastChild == 0) parent.firstChild = childAt
  else changetype<Node>(parent.lastChild).next = childAt
  parent.lastChild = childAt
  if (parent.kind == NODE_CONCAT) parent.isNullable = parent.isNullable && child.isNullable
  else parent.isNullable = parent.isNullable || child.isNullable
}
