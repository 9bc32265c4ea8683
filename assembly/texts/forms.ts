// Which objects are messages of a format. Guards read the members that a format has; another object may have its
// texts anywhere, so guards refuse it. The gateway has the same rules in src/engines/messages/mask/message-forms.ts.
import {
  TEXTS_COMPLETIONS, TEXTS_EMBEDDINGS, TEXTS_MESSAGES, TEXTS_OTHER_FORMAT, TEXTS_RESPONSES, TEXTS_TOKEN_COUNT,
} from './abi'
import { failure, isAscii, setFailure } from './bytes'
import { FIELD_OF, FIELD_PLAIN, FIELD_REQUEST_TEXT } from './fields'
import { maskOne } from './group'
import {
  CHOICES, CONTENT, DATA, ERROR, INPUT, INPUT_TOKENS, MESSAGE, MESSAGES, OUTPUT, PROMPT, RESPONSE, TYPE, flagsOf,
} from './names'
import { isGuarded, rw } from './state'
import {
  isKind, KIND_ARRAY, KIND_NULL, KIND_NUMBER, KIND_OBJECT, KIND_STRING, member, memberOf, node, NODE_FOLDED, NODE_SCALARS, readName, readText,
  textLength, textStart,
} from './tape'

/** Is the name one of the texts that requests of the format have? */
export function isOwn(name: i32): bool {
  return (flagsOf(name) & unchecked(FIELD_OF[rw.format])) != 0
}

/** Refuses an object that is not a request of the format, or that has a text that only other formats have. */
export function needRequest(root: i32): void {
  const format = rw.format
  const needed = format == TEXTS_EMBEDDINGS ? INPUT : format == TEXTS_RESPONSES ? 0 : MESSAGES
  if (needed == INPUT ? member(root, INPUT) == 0 : needed != 0 && memberOf(root, MESSAGES, KIND_ARRAY) == 0) {
    return setFailure(TEXTS_OTHER_FORMAT)
  }
  if (format == TEXTS_RESPONSES && memberOf(root, PROMPT, KIND_STRING) != 0) return setFailure(TEXTS_OTHER_FORMAT)
  for (let i = node(root).child; i != 0; i = node(i).next) {
    const name = <i32>node(i).name
    if (isKind(i, KIND_NULL) || (!(node(i).flags & NODE_FOLDED) && isOwn(name))) continue
    if (flagsOf(name) & FIELD_REQUEST_TEXT) return setFailure(TEXTS_OTHER_FORMAT)
  }
}

// --- answers -----------------------------------------------------------------------------------

/** Masks every string in a value. */
export function maskEvery(value: i32): void {
  if (isKind(value, KIND_STRING)) return maskOne(value)
  if (!isKind(value, KIND_OBJECT) && !isKind(value, KIND_ARRAY)) return
  for (let i = node(value).child; i != 0 && failure == 0; i = node(i).next) maskEvery(i)
}

/** Masks the error that an answer, an event or a choice contains. */
export function maskError(object: i32): void {
  const error = member(object, ERROR)
  if (error != 0 && isGuarded()) maskEvery(error)
}

/** Does the object have the type `error`? */
function isErrorType(object: i32): bool {
  const type = memberOf(object, TYPE, KIND_STRING)
  if (type == 0) return false
  readText(type)
  return isAscii(textStart, textLength, 'error')
}

/** Is it an error: `error`, `type: "error"`, or a text in `message`, `Message` or `detail`? */
function isError(root: i32): bool {
  const error = member(root, ERROR)
  if (error != 0 && !isKind(error, KIND_NULL)) return true
  if (isErrorType(root) || memberOf(root, MESSAGE, KIND_STRING) != 0) return true
  for (let i = node(root).child; i != 0; i = node(i).next) {
    readName(i)
    if (isAscii(textStart, textLength, 'detail')) return true
    if (isKind(i, KIND_STRING) && isAscii(textStart, textLength, 'Message')) return true
  }
  return false
}

/** Masks an error as a whole, but keeps its type. */
function maskErrorAnswer(root: i32): void {
  const type = isErrorType(root) ? member(root, TYPE) : 0
  for (let i = node(root).child; i != 0 && failure == 0; i = node(i).next) if (i != type) maskEvery(i)
}

/** Are the choices a list of objects? */
function hasChoices(root: i32): bool {
  const choices = member(root, CHOICES)
  if (!isKind(choices, KIND_ARRAY) || node(choices).flags & NODE_SCALARS) return false
  for (let i = node(choices).child; i != 0; i = node(i).next) if (!isKind(i, KIND_OBJECT)) return false
  return true
}

function hasAnswer(root: i32): bool {
  const format = rw.format
  if (format == TEXTS_COMPLETIONS) return hasChoices(root) || memberOf(root, CHOICES, KIND_OBJECT) != 0
  if (format == TEXTS_MESSAGES) return memberOf(root, CONTENT, KIND_ARRAY) != 0 || memberOf(root, CONTENT, KIND_STRING) != 0
  if (format == TEXTS_RESPONSES) return memberOf(root, OUTPUT, KIND_ARRAY) != 0
  if (format == TEXTS_TOKEN_COUNT) return memberOf(root, INPUT_TOKENS, KIND_NUMBER) != 0
  return memberOf(root, DATA, KIND_ARRAY) != 0
}

/**
 * True if the object is an answer of the format. An error is masked as a whole, and anything else is refused; neither
 * is to be read further.
 */
export function needAnswer(root: i32): bool {
  if (hasAnswer(root)) return true
  if (isError(root)) maskErrorAnswer(root)
  else setFailure(TEXTS_OTHER_FORMAT)
  return false
}

// --- events of streams -------------------------------------------------------------------------

/** Does the value have no text, besides what describes a message? */
function isBare(value: i32): bool {
  for (let i = node(value).child; i != 0; i = node(i).next) {
    if (isKind(i, KIND_STRING)) {
      if (isKind(value, KIND_ARRAY)) return false
      if (node(i).flags & NODE_FOLDED || !(flagsOf(<i32>node(i).name) & FIELD_PLAIN)) return false
    } else if (!isBare(i)) return false
  }
  return true
}

function hasEvent(root: i32): bool {
  if (rw.format == TEXTS_COMPLETIONS) return hasChoices(root)
  const type = memberOf(root, TYPE, KIND_STRING)
  if (type == 0) return rw.format == TEXTS_RESPONSES && memberOf(root, RESPONSE, KIND_OBJECT) != 0
  readText(type)
  if (rw.format == TEXTS_RESPONSES) return textLength > 9 && isAscii(textStart, 9, 'response.')
  return (
    isAscii(textStart, textLength, 'content_block_delta') || isAscii(textStart, textLength, 'content_block_start') ||
    isAscii(textStart, textLength, 'message_start') || isAscii(textStart, textLength, 'message_delta')
  )
}

/** True if the event is to be read. An error is masked as a whole, and what cannot be an event of the format is refused. */
export function needEvent(root: i32): bool {
  if (hasEvent(root) || isBare(root)) return true
  if (isError(root)) maskErrorAnswer(root)
  else setFailure(TEXTS_OTHER_FORMAT)
  return false
}
