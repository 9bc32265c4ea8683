// Finds the texts of requests and answers, and masks them. In requests, adjacent text parts are one text; in
// answers, all text parts of a message are. fields.ts says which strings are no texts.
import { TEXTS_COMPLETIONS, TEXTS_EMBEDDINGS, TEXTS_HIDDEN, TEXTS_MESSAGES, TEXTS_NOT_TEXT, TEXTS_RESPONSES } from './abi'
import { failure, isAscii, setFailure } from './bytes'
import { ENCODED_BINARY, ENCODED_NONE, encodedKind, maskEncoded } from './encoded'
import {
  FIELD_ARGUMENT, FIELD_CITATION, FIELD_CLIENT_CALL, FIELD_CONTENT, FIELD_DECIDED, FIELD_DETAIL, FIELD_GUARDED, FIELD_IMAGE_CALL,
  FIELD_LABEL, FIELD_REASONING, FIELD_SETTING,
} from './fields'
import { isOwn, maskError } from './forms'
import { addToGroup, beginGroup, maskGroup, maskOne } from './group'
import {
  AUDIO, CHOICES, CONTENT, CUSTOM, DATA, DELTA, flagsOf, INPUT, INPUT_AUDIO, MESSAGE, MESSAGES, OUTPUT, REFUSAL, ROLE, TEXT, TRANSCRIPT,
  TYPE, URL, VARIABLES,
} from './names'
import { isGuarded, rw } from './state'
import {
  isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, member, memberOf, node, NODE_FOLDED, NODE_SCALARS, readName, readText, textLength,
  textStart,
} from './tape'

/** True while a request is read, in which no text may be hidden. */
let isStrict: bool = false
/** True in messages of the assistant and in answers, whose reasoning is not read. */
let isAssistant: bool = true

/** The last object in which each name was seen, as its number in `objects`. */
const SEEN: usize = memory.data(256 * 4)
let objects: u32 = 0

/**
 * Refuses an object in which a provider could read another text than the guards: a name that occurs twice, or
 * that differs only in case from one that guards know (`flags`).
 */
export function checkNames(object: i32, flags: u32 = FIELD_GUARDED): void {
  if (!isGuarded()) return
  objects++
  for (let i = node(object).child; i != 0; i = node(i).next) {
    const name = <i32>node(i).name
    if (name == 0) continue
    if (node(i).flags & NODE_FOLDED) {
      if (isStrict && flagsOf(name) & flags) return setFailure(TEXTS_HIDDEN)
      continue
    }
    const seen = SEEN + (<usize>name << 2)
    if (load<u32>(seen) == objects) return setFailure(TEXTS_HIDDEN)
    store<u32>(seen, objects)
  }
}

/** Number of the member's name, 0 if it only could be read as it. */
// @ts-ignore: decorator
@inline
function nameAt(index: i32): i32 {
  return node(index).flags & NODE_FOLDED ? 0 : <i32>node(index).name
}

/** Is the member `type` this text? */
export function hasType(object: i32, text: string): bool {
  const type = memberOf(object, TYPE, KIND_STRING)
  if (type == 0) return false
  readText(type)
  return isAscii(textStart, textLength, text)
}

function endsWith(text: string): bool {
  return textLength >= text.length && isAscii(textStart + textLength - text.length, text.length, text)
}

// --- which strings are texts -------------------------------------------------------------------

/** Is a string of this name an id, a type, a role, a name, a URL or encrypted? */
export function isLabel(holder: i32, index: i32): bool {
  const name = nameAt(index)
  if (name == URL && hasType(holder, 'web_search_result')) return false
  if (flagsOf(name) & FIELD_LABEL) return true
  readName(index)
  if (textLength >= 10 && isAscii(textStart, 10, 'encrypted_')) return true
  return endsWith('_id') || endsWith('_ids') || endsWith('_url') || endsWith('_uri') || endsWith('_at') || endsWith('_signature')
}

/** Is nothing below the member a text that guards read here? `key` is the name of the member with the object. */
export function isSkipped(holder: i32, key: i32, index: i32): bool {
  const name = nameAt(index)
  const flags = flagsOf(name)
  if (flags & FIELD_ARGUMENT) return true
  if (isAssistant && isReasoning(holder, name, flags)) return true
  if (!isStrict) {
    if (flags & FIELD_DETAIL) return true
    // A `context` that is a string belongs to a document.
    if (flags & FIELD_CITATION) return !isKind(index, KIND_STRING)
  }
  if (name == INPUT) return key == CUSTOM || isCall(holder)
  if (name == DATA) return key == INPUT_AUDIO || key == AUDIO
  if (flags & FIELD_CLIENT_CALL && isClientCall(holder)) return true
  return (flags & FIELD_IMAGE_CALL) != 0 && hasType(holder, 'image_generation_call')
}

function isReasoning(holder: i32, name: i32, flags: u32): bool {
  if (name == TEXT) return hasType(holder, 'reasoning_text') || hasType(holder, 'summary_text')
  if (name == DATA) return hasType(holder, 'redacted_thinking')
  return (flags & FIELD_REASONING) != 0
}

/** Is it a call of a tool, whose `input` has the arguments? Searches and code that the vendor runs are read. */
function isCall(object: i32): bool {
  const type = memberOf(object, TYPE, KIND_STRING)
  if (type == 0) return false
  readText(type)
  return (endsWith('tool_use') && !isAscii(textStart, textLength, 'server_tool_use')) || endsWith('_call')
}

function isClientCall(object: i32): bool {
  return (
    hasType(object, 'computer_call') || hasType(object, 'shell_call') || hasType(object, 'local_shell_call') ||
    hasType(object, 'apply_patch_call')
  )
}

/** The string with the text of a part, or 0. A string is its own text. */
export function textOf(part: i32): i32 {
  if (isKind(part, KIND_STRING)) return part
  if (!isKind(part, KIND_OBJECT)) return 0
  const text = memberOf(part, TEXT, KIND_STRING)
  if (text != 0 && !(isAssistant && isReasoning(part, TEXT, 0))) return text
  const refusal = memberOf(part, REFUSAL, KIND_STRING)
  return refusal != 0 ? refusal : memberOf(part, TRANSCRIPT, KIND_STRING)
}

// --- values ------------------------------------------------------------------------------------

/** Masks the texts of an object except those in the member `skipped`. `key` is the name of the member with it. */
export function maskObject(object: i32, key: i32 = 0, skipped: i32 = 0): void {
  if (!isKind(object, KIND_OBJECT)) return
  checkObject(object)
  for (let i = node(object).child; i != 0 && failure == 0; i = node(i).next) {
    if (i != skipped) maskMember(object, key, i)
  }
}

function checkObject(object: i32): void {
  if (!isGuarded()) return
  checkNames(object)
  const text = member(object, TEXT)
  if (isStrict && (isKind(text, KIND_OBJECT) || isKind(text, KIND_ARRAY))) setFailure(TEXTS_NOT_TEXT)
}

/** Masks the texts of a member of an object. */
export function maskMember(holder: i32, key: i32, index: i32): void {
  const kind = node(index).kind
  if ((kind != KIND_STRING && kind != KIND_ARRAY && kind != KIND_OBJECT) || isSkipped(holder, key, index)) return
  const name = nameAt(index)
  if (kind == KIND_STRING) maskString(holder, index, name)
  else if (kind == KIND_ARRAY) {
    if (flagsOf(name) & FIELD_CONTENT) maskParts(index, name, false, true)
    else if (!isLabel(holder, index)) maskParts(index, name, false, false)
    else for (let i = node(index).child; i != 0 && failure == 0; i = node(i).next) maskObject(i, name)
  } else if (name != VARIABLES) maskObject(index, name)
  // Variables of a template have names of their own.
  else for (let i = node(index).child; i != 0 && failure == 0; i = node(i).next) maskContent(i)
}

function maskString(holder: i32, index: i32, name: i32): void {
  const encoded = encodedKind(holder, index, name)
  if (encoded == ENCODED_BINARY) return
  if (encoded != ENCODED_NONE) maskEncoded(index)
  else if (!isLabel(holder, index)) maskOne(index)
}

/** A text, a list of parts, or a single part. */
export function maskContent(content: i32, areOneText: bool = false): void {
  if (isKind(content, KIND_STRING)) maskOne(content)
  else if (isKind(content, KIND_OBJECT)) maskObject(content)
  else if (isKind(content, KIND_ARRAY)) maskParts(content, 0, areOneText, true)
}

/** Masks the texts of a list: of its text parts, and of everything else in them. */
function maskParts(list: i32, key: i32, areOneText: bool, removesEmpty: bool): void {
  beginGroup()
  for (let part = node(list).child; part != 0 && failure == 0; part = node(part).next) {
    if (removesEmpty && isStrict && isGuarded() && isKind(part, KIND_ARRAY)) return setFailure(TEXTS_NOT_TEXT)
    const text = textOf(part)
    if (text != 0) {
      addToGroup(text)
      if (removesEmpty) addToGroup(part)
    } else if (!areOneText) maskGroup(removesEmpty)
  }
  maskGroup(removesEmpty)
  for (let part = node(list).child; part != 0 && failure == 0; part = node(part).next) maskRest(part, key)
}

/** Masks what a part contains besides its text. */
export function maskRest(part: i32, key: i32): void {
  if (isKind(part, KIND_ARRAY)) maskParts(part, key, false, false)
  else if (isKind(part, KIND_OBJECT)) maskObject(part, key, textOf(part))
}

// --- requests ----------------------------------------------------------------------------------

/** Masks the texts of a request. */
export function maskRequest(root: i32): void {
  isStrict = true
  isAssistant = false
  checkNames(root, FIELD_DECIDED)
  for (let i = isGuarded() ? node(root).child : 0; i != 0; i = node(i).next) {
    if (node(i).flags & NODE_FOLDED && isOwn(node(i).name)) setFailure(TEXTS_HIDDEN)
  }
  for (let i = node(root).child; i != 0 && failure == 0; i = node(i).next) {
    const name = nameAt(i)
    if (isSetting(i, name)) continue
    if (rw.format == TEXTS_EMBEDDINGS && name == INPUT && isGuarded()) checkInput(i)
    if (name != MESSAGES && name != INPUT) maskMember(root, 0, i)
    else if (isKind(i, KIND_ARRAY)) maskMessages(i)
    else maskContent(i)
  }
  isStrict = false
  isAssistant = true
}

/** `text` is an object with settings, except in some requests for embeddings. */
function isSetting(index: i32, name: i32): bool {
  return (flagsOf(name) & FIELD_SETTING) != 0 && !(name == TEXT && isKind(index, KIND_STRING))
}

function maskMessages(list: i32): void {
  for (let i = node(list).child; i != 0 && failure == 0; i = node(i).next) {
    if (isGuarded() && isKind(i, KIND_ARRAY)) return setFailure(TEXTS_NOT_TEXT)
    if (isKind(i, KIND_STRING)) {
      // An input of embeddings.
      maskOne(i)
      continue
    }
    const role = member(i, ROLE)
    if (isKind(role, KIND_STRING)) readText(role)
    // A reasoning item has no role, and is written by the assistant.
    isAssistant = role == 0 ? hasType(i, 'reasoning') : isKind(role, KIND_STRING) && isAscii(textStart, textLength, 'assistant')
    maskObject(i)
    isAssistant = false
  }
}

/** Refuses token numbers, which guards cannot read. */
function checkInput(input: i32): void {
  if (isKind(input, KIND_STRING)) return
  if (!isKind(input, KIND_ARRAY) || node(input).flags & NODE_SCALARS) return setFailure(TEXTS_NOT_TEXT)
  for (let i = node(input).child; i != 0; i = node(i).next) {
    if (!isKind(i, KIND_STRING)) return setFailure(TEXTS_NOT_TEXT)
  }
}

// --- answers -----------------------------------------------------------------------------------

function mainField(): i32 {
  if (rw.format == TEXTS_COMPLETIONS) return CHOICES
  if (rw.format == TEXTS_MESSAGES) return CONTENT
  return rw.format == TEXTS_RESPONSES ? OUTPUT : -1
}

/** Masks the texts of a whole answer: all texts of a message or choice are one text. */
export function maskAnswer(root: i32): void {
  if (!isKind(root, KIND_OBJECT)) return
  checkNames(root)
  maskError(root)
  if (mainField() < 0) return
  const main = mainField()
  for (let i = node(root).child; i != 0 && failure == 0; i = node(i).next) {
    const name = nameAt(i)
    if (isSetting(i, name)) continue
    if (name != main) maskMember(root, 0, i)
    else if (rw.format == TEXTS_MESSAGES) maskContent(i, true)
    else if (rw.format == TEXTS_COMPLETIONS) maskChoices(i)
    else if (isKind(i, KIND_ARRAY)) maskOutput(i)
    else maskContent(i)
  }
}

function maskChoices(choices: i32): void {
  if (!isKind(choices, KIND_ARRAY)) return maskChoice(choices)
  for (let i = node(choices).child; i != 0 && failure == 0; i = node(i).next) maskChoice(i)
}

/** Servers put the text into `message`, or into `delta`, as in a stream. */
function maskChoice(choice: i32): void {
  if (!isKind(choice, KIND_OBJECT)) return maskContent(choice)
  checkNames(choice)
  maskError(choice)
  for (let i = node(choice).child; i != 0 && failure == 0; i = node(i).next) {
    const name = nameAt(i)
    if ((name == MESSAGE || name == DELTA) && isKind(i, KIND_OBJECT)) maskChoiceMessage(i)
    else maskMember(choice, 0, i)
  }
}

export function maskChoiceMessage(message: i32): void {
  checkObject(message)
  for (let i = node(message).child; i != 0 && failure == 0; i = node(i).next) {
    if (nameAt(i) == CONTENT && isKind(i, KIND_ARRAY)) maskParts(i, CONTENT, true, true)
    else maskMember(message, 0, i)
  }
}

/** Masks the text parts of all items as one text. Empty parts stay, because events refer to positions. */
function maskOutput(output: i32): void {
  beginGroup()
  for (let item = node(output).child; item != 0; item = node(item).next) addItemParts(item)
  maskGroup(false)
  for (let item = node(output).child; item != 0 && failure == 0; item = node(item).next) maskItem(item)
}

/** Masks what an item contains besides its text parts. */
export function maskItem(item: i32): void {
  if (!isKind(item, KIND_OBJECT)) return maskContent(item)
  const content = memberOf(item, CONTENT, KIND_ARRAY)
  maskObject(item, 0, content)
  for (let part = content == 0 ? 0 : node(content).child; part != 0 && failure == 0; part = node(part).next) maskRest(part, CONTENT)
}

/** Adds the text parts of an item to the group. */
export function addItemParts(item: i32): void {
  const content = memberOf(item, CONTENT, KIND_ARRAY)
  for (let part = content == 0 ? 0 : node(content).child; part != 0; part = node(part).next) {
    const text = textOf(part)
    if (text != 0) addToGroup(text)
  }
}
