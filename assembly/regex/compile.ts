// Compiles a syntax tree to a program, from the pattern's end to its beginning, so that the instruction
// after each construct is known.
//
// Alternatives are in the order in which a backtracking matcher would try them, and the
// engine uses the first that succeeds, as JavaScript and Perl do. One of their rules
// needs care: if an optional repetition would match nothing, the next alternative is taken instead
// (`(?:|a)*` matches all of 'aaa'). While one position is explored each instruction is visited once,
// which implements the rule for `*`: a thread that returns to the loop without consuming a byte finds it
// visited. A bounded optional repetition gets a separate jump after its body, and OP_ENTER marks
// that jump as visited before the body is explored. step.ts describes nested repetitions of this kind.
// RE2 and Go use another rule here.
import { REGEX_PROGRAM_TOO_LARGE } from '../abi'
import { errorCode, fail, MAX_COMPILE_STEPS } from './codes'
import { ASSERT_CHARACTER, ASSERT_LINE_END, ASSERT_LINE_START, ASSERT_TEXT_END, ASSERT_TEXT_START, ASSERT_WORD, Node, NODE_ALTERNATE, NODE_ASSERT, NODE_CHARACTER, NODE_CLASS, NODE_CONCAT, NODE_REPEAT } from './node'
import { builderStart, emit, emitAssert, emitRange, finishProgram, KIND_LAZY, NOWHERE, OP_ENTER, OP_JUMP, OP_LOOP, OP_MATCH, OP_SPLIT, patch, PROGRAM_LINES, PROGRAM_NESTED, PROGRAM_REVERSE, PROGRAM_WORDS } from './program'
import { addRange, dropRanges, rangeCount } from './ranges'
import { emitClass, emitReverseClass, utf8Start } from './utf8'

let isReverse: bool = false
let bits: u32 = 0
let steps: u32 = 0

/**
 * Returns the program of a tree. A forward program has two entries, one for a match that begins here and one for a
 * search; a reverse program has only the first. Returns 0 after a failure.
 */
export function compileTree(root: usize, reverse: bool): usize {
  isReverse = reverse
  bits = reverse ? PROGRAM_REVERSE : 0
  steps = 0
  builderStart()
  utf8Start()
  const anchored = generate(root, emit(OP_MATCH, 0))
  if (errorCode != 0) return 0
  if (reverse) return finishProgram(anchored, NOWHERE, bits)
// A match may not begin inside a character. Only an empty match could, and JavaScript has none there.
  const begin = emitAssert(ASSERT_CHARACTER, anchored)
  const search = emit(OP_SPLIT, begin, 0)
  patch(search, begin, emitRange(0, 255, search))
  return finishProgram(anchored, search, bits)
}

function generate(at: usize, next: u32): u32 {
  if (errorCode != 0) return 0
  if (++steps > MAX_COMPILE_STEPS) return <u32>fail(REGEX_PROGRAM_TOO_LARGE, 0)
  const node = changetype<Node>(at)
  if (node.kind == NODE_CHARACTER) return generateCharacter(node.first, next)
  if (node.kind == NODE_CLASS) return generateClass(node.first, <u32>node.count, next)
  if (node.kind == NODE_CONCAT) return generateConcat(node, next)
  if (node.kind == NODE_ALTERNATE) return generateAlternate(node, next)
  if (node.kind == NODE_REPEAT) return generateRepeat(node, next)
  if (node.kind == NODE_ASSERT) return generateAssert(node.first, next)
  return next
}

function generateCharacter(point: u32, next: u32): u32 {
  if (point < 0x80) return emitRange(point, point, next)
  const first = rangeCount()
  addRange(point, point)
  const target = generateClass(first, 1, next)
  dropRanges(first)
  return target
}

function generateClass(first: u32, count: u32, next: u32): u32 {
  return isReverse ? emitReverseClass(first, count, next) : emitClass(first, count, next)
}

function generateConcat(node: Node, next: u32): u32 {
  let target = next
  let child = isReverse ? node.firstChild : node.lastChild
  while (child != 0) {
    target = generate(child, target)
    child = isReverse ? changetype<Node>(child).next : changetype<Node>(child).previous
  }
  return target
}

function generateAlternate(node: Node, next: u32): u32 {
  let child = node.lastChild
  let target = generate(child, next)
  for (child = changetype<Node>(child).previous; child != 0; child = changetype<Node>(child).previous) {
    target = emit(OP_SPLIT, generate(child, next), target)
  }
  return target
}

function generateAssert(kind: u32, next: u32): u32 {
  if (kind >= ASSERT_WORD) bits |= PROGRAM_WORDS
  if (kind == ASSERT_LINE_START || kind == ASSERT_LINE_END) bits |= PROGRAM_LINES
  return emitAssert(isReverse ? mirrored(kind) : kind, next)
}

/** Returns the assertion for a reverse program, in which the start and the end of the text are exchanged. */
function mirrored(kind: u32): u32 {
  if (kind == ASSERT_TEXT_START) return ASSERT_TEXT_END
  if (kind == ASSERT_TEXT_END) return ASSERT_TEXT_START
  if (kind == ASSERT_LINE_START) return ASSERT_LINE_END
  return kind == ASSERT_LINE_END ? ASSERT_LINE_START : kind
}

function generateRepeat(node: Node, next: u32): u32 {
  const child = node.firstChild
  if (!isReverse && changetype<Node>(child).isNullable && holdsRepeat(child)) bits |= PROGRAM_NESTED
  let target = next
  let copies = node.first
  if (node.count < 0) {
    const loop = emit(changetype<Node>(child).isNullable ? OP_LOOP | laziness(node) : OP_SPLIT, 0)
    const body = generate(child, loop)
    if (node.isLazy) patch(loop, next, body)
    else patch(loop, body, next)
    target = loop
// The loop's body is also the last mandatory copy, unless it may match nothing.
    if (copies > 0 && !changetype<Node>(child).isNullable) {
      target = body
      copies--
    }
  } else {
    for (let i = copies; i < <u32>node.count && errorCode == 0; i++) target = generateOptional(node, target, next)
  }
  for (let i: u32 = 0; i < copies && errorCode == 0; i++) target = generate(child, target)
  return target
}

function laziness(node: Node): u32 {
  return node.isLazy ? KIND_LAZY : 0
}

function holdsRepeat(at: usize): bool {
  const node = changetype<Node>(at)
  if (node.kind == NODE_REPEAT) return true
  for (let child = node.firstChild; child != 0; child = changetype<Node>(child).next) {
    if (holdsRepeat(child)) return true
  }
  return false
}

/** Adds an optional repetition, which continues with `more` or directly with `next`. */
function generateOptional(node: Node, more: u32, next: u32): u32 {
  if (!changetype<Node>(node.firstChild).isNullable) {
    const body = generate(node.firstChild, more)
    return node.isLazy ? emit(OP_SPLIT, next, body) : emit(OP_SPLIT, body, next)
  }
  const jump = emit(OP_JUMP, more)
  const body = generate(node.firstChild, jump)
  return node.isLazy ? emit(OP_ENTER | KIND_LAZY, next, body, jump) : emit(OP_ENTER, body, next, jump)
}
