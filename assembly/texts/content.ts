// Finds the texts of requests and answers, and masks them. In requests, adjacent text parts are one text; in
// answers, all text parts of a message are.
import { TEXTS_COMPLETIONS, TEXTS_EMBEDDINGS, TEXTS_HIDDEN, TEXTS_MESSAGES, TEXTS_NOT_TEXT, TEXTS_RESPONSES, TEXTS_TOKEN_COUNT } from './abi'
import { failure, isAscii, setFailure } from './bytes'
import { maskError } from './forms'
import { addToGroup, beginGroup, maskGroup, maskOne } from './group'
import {
  AUDIO, CHOICES, CONTENT, CONTEXT, DATA, INPUT, INSTRUCTIONS, LOGS, MESSAGE, MESSAGES, OUTPUT, OUTPUTS, PREDICTION, PROMPT,
  REFUSAL, RESULTS, ROLE, SOURCE, STDERR, STDOUT, SYSTEM, TEXT, TITLE, TRANSCRIPT, TYPE, VARIABLES,
} from './names'
import { isGuarded, rw } from './state'
import {
  isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, member, memberOf, node, NODE_FOLDED, NODE_SCALARS, readText, textLength, textStart,
} from './tape'

// @ts-ignore: decorator
@inline
function bit(name: i32): u64 {
  return (<u64>1) << (<u64>name)
}

const NESTED: u64 = bit(CONTENT) | bit(OUTPUT) | bit(OUTPUTS) | bit(RESULTS)
const PLAIN: u64 = bit(TITLE) | bit(CONTEXT) | bit(STDOUT) | bit(STDERR) | bit(LOGS)
const GUARDED: u64 = NESTED | PLAIN | bit(ROLE) | bit(REFUSAL) | bit(TYPE) | bit(TEXT) | bit(SOURCE) | bit(DATA) | bit(VARIABLES)

function has(names: u64, name: u32): bool {
  return ((names >> name) & 1) != 0
}

/** True while a request is read, in which no text may be hidden. */
let isStrict: bool = false

/**
 * Refuses an object in which a provider could read another text than the guards: a name that occurs twice, or
 * that differs from a guarded one only in case.
 */
function checkNames(object: i32, names: u64): void {
  if (!isGuarded()) return
  let seen: u64 = 0
  for (let i = node(object).child; i != 0; i = node(i).next) {
    const name = <u32>node(i).name
    if (name == 0) continue
    const isFolded = (node(i).flags & NODE_FOLDED) != 0
    if (isFolded ? isStrict && has(names, name) : has(seen, name)) return setFailure(TEXTS_HIDDEN)
    if (!isFolded) seen |= bit(name)
  }
}

/** Number of the member's name, 0 if it only could be read as it. */
// @ts-ignore: decorator
@inline
function nameAt(index: i32): u32 {
  return node(index).flags & NODE_FOLDED ? 0 : node(index).name
}

/** Is the member `type` this text? */
export function hasType(object: i32, text: string): bool {
  const type = memberOf(object, TYPE, KIND_STRING)
  if (type == 0) return false
  readText(type)
  return isAscii(textStart, textLength, text)
}

/** The string with the text of a part, or 0. A string is its own text. */
export function textOf(part: i32): i32 {
  if (isKind(part, KIND_STRING)) return part
  if (!isKind(part, KIND_OBJECT)) return 0
  const text = memberOf(part, TEXT, KIND_STRING)
  if (text != 0 && !hasType(part, 'reasoning_text') && !hasType(part, 'summary_text')) return text
  if (hasType(part, 'output_audio')) {
    const transcript = memberOf(part, TRANSCRIPT, KIND_STRING)
    if (transcript != 0) return transcript
  }
  return hasType(part, 'refusal') ? memberOf(part, REFUSAL, KIND_STRING) : 0
}

/** A text, a list of parts, or a single part. */
function maskContent(content: i32, areOneText: bool = false): void {
  if (isKind(content, KIND_STRING)) maskOne(content)
  else if (isKind(content, KIND_OBJECT)) maskPart(content)
  else if (isKind(content, KIND_ARRAY)) {
    if (areOneText) maskAnswerParts(content)
    else maskRequestParts(content)
  }
}

function maskPart(part: i32): void {
  checkPart(part)
  const text = textOf(part)
  if (text == 0) return maskNested(part)
  beginGroup()
  addToGroup(text)
  addToGroup(part)
  maskGroup(true)
}

function checkPart(part: i32): void {
  if (!isGuarded() || !isKind(part, KIND_OBJECT)) return
  checkNames(part, GUARDED)
  const text = member(part, TEXT)
  if (isStrict && (isKind(text, KIND_OBJECT) || isKind(text, KIND_ARRAY))) setFailure(TEXTS_NOT_TEXT)
  const source = memberOf(part, SOURCE, KIND_OBJECT)
  if (source != 0) checkNames(source, GUARDED)
}

function maskRequestParts(list: i32): void {
  beginGroup()
  for (let part = node(list).child; part != 0 && failure == 0; part = node(part).next) {
    checkPart(part)
    if (isStrict && isGuarded() && isKind(part, KIND_ARRAY)) return setFailure(TEXTS_NOT_TEXT)
    const text = textOf(part)
    if (text != 0) {
      addToGroup(text)
      addToGroup(part)
    } else {
      maskGroup(true)
      maskNested(part)
    }
  }
  maskGroup(true)
}

function addParts(list: i32, keepsParts: bool): void {
  for (let part = isKind(list, KIND_ARRAY) ? node(list).child : 0; part != 0; part = node(part).next) {
    checkPart(part)
    const text = textOf(part)
    if (text == 0) continue
    addToGroup(text)
    if (keepsParts) addToGroup(part)
  }
}

function maskOtherParts(list: i32): void {
  for (let part = node(list).child; part != 0 && failure == 0; part = node(part).next) {
    if (textOf(part) == 0) maskNested(part)
  }
}

function maskAnswerParts(list: i32): void {
  beginGroup()
  addParts(list, true)
  maskGroup(true)
  maskOtherParts(list)
}

/** Masks the texts inside a part: tool results, documents, search results. */
export function maskNested(part: i32): void {
  if (!isKind(part, KIND_OBJECT)) return
  for (let i = node(part).child; i != 0 && failure == 0; i = node(i).next) {
    const name = nameAt(i)
    if (name == 0) continue
    if (has(PLAIN, name) && isKind(i, KIND_STRING)) maskOne(i)
    else if (has(NESTED, name)) maskContent(i)
    else if (name == SOURCE && isKind(i, KIND_OBJECT)) maskSource(i)
  }
}

/** Masks a document: plain text, a text or parts. */
function maskSource(source: i32): void {
  const data = memberOf(source, DATA, KIND_STRING)
  if (data != 0 && !hasType(source, 'base64')) maskOne(data)
  const content = member(source, CONTENT)
  if (content != 0) maskContent(content)
}

/** A string in place of a message is an input of embeddings. */
function maskMessage(message: i32, skipsContent: bool = false): void {
  if (isKind(message, KIND_STRING)) return maskOne(message)
  if (!isKind(message, KIND_OBJECT)) return
  checkNames(message, GUARDED)
  for (let i = node(message).child; i != 0 && failure == 0; i = node(i).next) {
    const name = nameAt(i)
    if (name == 0) continue
    if (has(NESTED, name) && !(skipsContent && name == CONTENT)) maskContent(i)
    else if (name == REFUSAL && isKind(i, KIND_STRING)) maskOne(i)
  }
}

function maskMessages(list: i32): void {
  if (!isKind(list, KIND_ARRAY)) return maskContent(list)
  for (let i = node(list).child; i != 0 && failure == 0; i = node(i).next) {
    if (isStrict && isGuarded() && isKind(i, KIND_ARRAY)) return setFailure(TEXTS_NOT_TEXT)
    maskMessage(i)
  }
}

// --- requests ----------------------------------------------------------------------------------

function fieldsOf(format: i32): u64 {
  if (format == TEXTS_COMPLETIONS) return bit(MESSAGES) | bit(PREDICTION)
  if (format == TEXTS_MESSAGES || format == TEXTS_TOKEN_COUNT) return bit(SYSTEM) | bit(MESSAGES)
  if (format == TEXTS_RESPONSES) return bit(INSTRUCTIONS) | bit(PROMPT) | bit(INPUT)
  return bit(INPUT)
}

/** Masks the texts of a request. */
export function maskRequest(root: i32): void {
  const fields = fieldsOf(rw.format)
  isStrict = true
  checkNames(root, fields)
  for (let i = node(root).child; i != 0 && failure == 0; i = node(i).next) {
    const name = nameAt(i)
    if (!has(fields, name)) continue
    if (rw.format == TEXTS_EMBEDDINGS && isGuarded()) checkInput(i)
    if (name == PROMPT) maskVariables(i)
    else if (name == SYSTEM || name == INSTRUCTIONS) maskContent(i)
    else maskMessages(i)
  }
  isStrict = false
}

/** Refuses token numbers, which guards cannot read. */
function checkInput(input: i32): void {
  if (isKind(input, KIND_STRING)) return
  if (!isKind(input, KIND_ARRAY) || node(input).flags & NODE_SCALARS) return setFailure(TEXTS_NOT_TEXT)
  for (let i = node(input).child; i != 0; i = node(i).next) {
    if (!isKind(i, KIND_STRING)) return setFailure(TEXTS_NOT_TEXT)
  }
}

/** Masks the variables of a template that the vendor stores. */
function maskVariables(prompt: i32): void {
  if (isKind(prompt, KIND_OBJECT)) checkNames(prompt, GUARDED)
  const variables = memberOf(prompt, VARIABLES, KIND_OBJECT)
  if (variables == 0) return
  for (let i = node(variables).child; i != 0 && failure == 0; i = node(i).next) maskContent(i)
}

// --- answers -----------------------------------------------------------------------------------

/** Masks the texts of a whole answer: all texts of a message or choice are one text. */
export function maskAnswer(root: i32): void {
  if (!isKind(root, KIND_OBJECT)) return
  checkNames(root, 0)
  maskError(root)
  if (rw.format == TEXTS_COMPLETIONS) {
    const choices = member(root, CHOICES)
    if (isKind(choices, KIND_OBJECT)) maskChoice(choices)
    else eachItem(choices, EACH_CHOICE)
  } else if (rw.format == TEXTS_MESSAGES) {
    const content = member(root, CONTENT)
    if (content != 0) maskContent(content, true)
  } else if (rw.format == TEXTS_RESPONSES) maskOutput(member(root, OUTPUT))
}

const EACH_CHOICE: i32 = 0
const EACH_ITEM: i32 = 1

function eachItem(list: i32, what: i32): void {
  if (!isKind(list, KIND_ARRAY)) return
  for (let i = node(list).child; i != 0 && failure == 0; i = node(i).next) {
    if (what == EACH_CHOICE) maskChoice(i)
    else maskItem(i)
  }
}

function maskChoice(choice: i32): void {
  if (!isKind(choice, KIND_OBJECT)) return
  checkNames(choice, 0)
  maskError(choice)
  const message = member(choice, MESSAGE)
  if (isKind(message, KIND_OBJECT)) maskChoiceMessage(message)
  const text = memberOf(choice, TEXT, KIND_STRING)
  if (text != 0) maskOne(text)
}

function maskChoiceMessage(message: i32): void {
  const transcript = memberOf(memberOf(message, AUDIO, KIND_OBJECT), TRANSCRIPT, KIND_STRING)
  if (transcript != 0) maskOne(transcript)
  const content = memberOf(message, CONTENT, KIND_ARRAY)
  maskMessage(message, content != 0)
  if (content != 0) maskContent(content, true)
}

/** Masks the text parts of all items as one text. Empty parts stay, because events refer to positions. */
export function maskOutput(output: i32): void {
  beginGroup()
  for (let item = isKind(output, KIND_ARRAY) ? node(output).child : 0; item != 0; item = node(item).next) {
    addParts(memberOf(item, CONTENT, KIND_ARRAY), false)
  }
  maskGroup(false)
  eachItem(output, EACH_ITEM)
}

/** Masks what an item contains besides its text parts. */
export function maskItem(item: i32): void {
  const content = memberOf(item, CONTENT, KIND_ARRAY)
  maskMessage(item, content != 0)
  if (content != 0) maskOtherParts(content)
}

/** Adds the text parts of an item to the group. */
export function addItemParts(item: i32): void {
  addParts(memberOf(item, CONTENT, KIND_ARRAY), false)
}
