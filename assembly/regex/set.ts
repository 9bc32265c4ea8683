// Mask sets: patterns and builtins in order of preference, each with the text that replaces its matches.
//
//   +0  reference count (its handle, and streams)   +4  members   +8  DETECT_* bits   +12 bound of held bytes, or -1
//   +16 groups of triggers   +20 1 if it has lists of words
//   +24 members, 16 bytes each:  record of a regex or of words, or 0 | DETECT_*, NO_DETECT or WORDS | replacement address | its length
import { blockAlloc, blockFree } from '../arena'
import { ERROR_ARGUMENT, ERROR_MEMORY, REGEX_NO_SPANS } from '../abi'
import { groupsOf, prepareTriggers } from './builtin-filter'
import { compileBuiltin, isPattern } from './builtin-patterns'
import { DETECT_COUNT, REACH } from './detect'
import { dropHandle, HANDLE_SET, newHandle, recordOf } from './handles'
import { UNBOUNDED } from './hold'
import { holdOf, regexFree, regexOf, releaseRegex, retainRegex } from './index'
import { R_REVERSE } from './run'
import { newWords, W_LONGEST } from './words'

const SET_USERS: usize = 0
export const SET_MEMBERS: usize = 4
export const SET_DETECTS: usize = 8
export const SET_HOLD: usize = 12
export const SET_TRIGGERS: usize = 16
export const SET_HAS_WORDS: usize = 20
const SET_HEAD: usize = 24
/** The DETECT_* of a pattern of the user. */
const NO_DETECT: i32 = -1
/** Stands for a DETECT_*: the member is a list of words. */
export const WORDS: i32 = -2
export const MEMBER_REGEX: usize = 0
export const MEMBER_DETECT: usize = 4
export const MEMBER_TEXT: usize = 8
export const MEMBER_TEXT_LENGTH: usize = 12
/** Maximum number of patterns and builtins of a set; the memory of a stream grows with them. */
export const MEMBER_LIMIT: i32 = 64
/** Maximum bytes of a replacement. */
const TEXT_LIMIT: i32 = 1024

export function setOf(handle: i32): usize {
  return recordOf(handle, HANDLE_SET)
}

/** Returns the record of a set's member. */
// @ts-ignore: decorator
@inline
export function memberOf(set: usize, index: i32): usize {
  return set + SET_HEAD + (<usize>index << 4)
}

/** Makes an empty set. Returns a handle, or ERROR_MEMORY. */
export function newSet(): i32 {
  const set = blockAlloc(SET_HEAD + (<usize>MEMBER_LIMIT << 4))
  if (set == 0) return ERROR_MEMORY
  memory.fill(set, 0, SET_HEAD)
  store<u32>(set, 1, SET_USERS)
  const handle = newHandle(set, HANDLE_SET)
  if (handle < 0) blockFree(set)
  return handle
}

/** Appends a member. Returns 0, or a code. No stream may exist yet. */
function addMember(set: usize, regex: usize, detect: i32, text: usize, length: i32): i32 {
  const count = load<i32>(set, SET_MEMBERS)
  const isShared = load<u32>(set, SET_USERS) > 1
  if (count >= MEMBER_LIMIT || isShared || length < 0 || length > TEXT_LIMIT) return ERROR_ARGUMENT
  const copy = blockAlloc(<usize>max(length, 1))
  if (copy == 0) return ERROR_MEMORY
  memory.copy(copy, text, length)
  const member = memberOf(set, count)
  store<u32>(member, <u32>regex, MEMBER_REGEX)
  store<i32>(member, detect, MEMBER_DETECT)
  store<u32>(member, <u32>copy, MEMBER_TEXT)
  store<i32>(member, length, MEMBER_TEXT_LENGTH)
  store<i32>(set, count + 1, SET_MEMBERS)
  return 0
}

function raiseHold(set: usize, bytes: i32): void {
  const present = load<i32>(set, SET_HOLD)
  if (present == UNBOUNDED) return
  store<i32>(set, bytes == UNBOUNDED ? UNBOUNDED : max(present, bytes), SET_HOLD)
}

/** Adds a pattern, which the set keeps even if its handle is freed. */
export function addPattern(handle: i32, regexHandle: i32, text: usize, length: i32): i32 {
  return addRegex(handle, regexHandle, NO_DETECT, text, length)
}

function addRegex(handle: i32, regexHandle: i32, detect: i32, text: usize, length: i32): i32 {
  const set = setOf(handle)
  const regex = regexOf(regexHandle)
  if (set == 0 || regex == 0) return ERROR_ARGUMENT
  if (load<u32>(regex, R_REVERSE) == 0) return REGEX_NO_SPANS
  const code = addMember(set, regex, detect, text, length)
  if (code < 0) return code
  retainRegex(regex)
// One more byte shows that a match does not continue; three bytes may be an incomplete character.
  const hold = holdOf(regex)
  raiseHold(set, hold == UNBOUNDED ? UNBOUNDED : hold + 4)
  return 0
}

/** Adds a builtin. */
export function addDetector(handle: i32, detect: i32, text: usize, length: i32): i32 {
  const set = setOf(handle)
  if (set == 0 || detect < 0 || detect >= DETECT_COUNT) return ERROR_ARGUMENT
  prepareTriggers()
  store<u32>(set, load<u32>(set, SET_TRIGGERS) | groupsOf(detect), SET_TRIGGERS)
  if (isPattern(detect)) {
    const regex = compileBuiltin(detect)
    if (regex < 0) return regex
    const code = addRegex(handle, regex, detect, text, length)
    regexFree(regex)
    return code
  }
  const code = addMember(set, 0, detect, text, length)
  if (code < 0) return code
  store<u32>(set, load<u32>(set, SET_DETECTS) | (1 << detect), SET_DETECTS)
  raiseHold(set, REACH + 4)
  return 0
}

/** Adds a list of words, one a line. */
export function addWords(handle: i32, list: usize, listLength: i32, text: usize, length: i32): i32 {
  const set = setOf(handle)
  if (set == 0) return ERROR_ARGUMENT
  const words = newWords(list, listLength)
  if (words < 0) return words
  const code = addMember(set, words, WORDS, text, length)
  if (code < 0) {
    blockFree(words)
    return code
  }
  store<u32>(set, 1, SET_HAS_WORDS)
  raiseHold(set, load<i32>(words, W_LONGEST) + 4)
  return 0
}

export function retainSet(set: usize): void {
  store<u32>(set, load<u32>(set, SET_USERS) + 1, SET_USERS)
}

/** Removes a reference; the last one frees the set. */
export function releaseSet(set: usize): void {
  const users = load<u32>(set, SET_USERS) - 1
  store<u32>(set, users, SET_USERS)
  if (users > 0) return
  for (let i = 0; i < load<i32>(set, SET_MEMBERS); i++) {
    const member = memberOf(set, i)
    const record = load<u32>(member, MEMBER_REGEX)
    if (load<i32>(member, MEMBER_DETECT) == WORDS) blockFree(record)
    else if (record != 0) releaseRegex(record)
    blockFree(load<u32>(member, MEMBER_TEXT))
  }
  blockFree(set)
}

/** Frees a set when its streams are freed too. Unknown handles are ignored. */
export function freeSet(handle: i32): void {
  const set = setOf(handle)
  if (set == 0) return
  dropHandle(handle)
  releaseSet(set)
}
