// Finds the texts in an event of a streamed answer of Chat Completions.
import { beginAsides, itemHash, takeAsides, takeAsidesOf, takeItems } from './asides'
import { failure } from './bytes'
import { isLabel, isSkipped, maskChoiceMessage, maskContent, maskMember, textOf } from './content'
import { addEdit, EDIT_REMOVE } from './edits'
import { maskError } from './forms'
import { AUDIO, CHOICES, CONTENT, DELTA, ERROR, FINISH_REASON, INDEX, MESSAGE, TEXT, TRANSCRIPT } from './names'
import { addChoice } from './queue'
import { current, fieldOf, indexOf, isNonEmpty, isType, needOnce, nonEmpty, stop, takePiece } from './stream'
import { isKind, KIND_ARRAY, KIND_NULL, KIND_OBJECT, KIND_STRING, member, memberOf, node, readText } from './tape'

export function readCompletions(root: i32): void {
  const choices = memberOf(root, CHOICES, KIND_ARRAY)
  for (let i = isKind(root, KIND_OBJECT) ? node(root).child : 0; i != 0 && failure == 0; i = node(i).next) {
    if (i != choices) maskMember(root, 0, i)
  }
  for (let choice = choices == 0 ? 0 : node(choices).child; choice != 0 && failure == 0; choice = node(choice).next) {
    if (isKind(choice, KIND_OBJECT)) readChoice(choice)
    else maskContent(choice)
  }
  const error = member(root, ERROR)
  if (error != 0 && !isKind(error, KIND_NULL)) return stop(-1)
  for (let choice = choices == 0 ? 0 : node(choices).child; choice != 0 && failure == 0; choice = node(choice).next) {
    const index = indexOf(choice, INDEX)
    addChoice(current.choices, index)
    if (isFinished(choice)) stop(index)
  }
}

/** Has the choice a reason why it ended? Some servers write an empty one, or "null", until then. */
function isFinished(choice: i32): bool {
  const reason = nonEmpty(choice, FINISH_REASON)
  if (reason == 0) return false
  readText(reason)
  return !isType('null')
}

function readChoice(choice: i32): void {
  needOnce(choice)
  maskError(choice)
  const index = indexOf(choice, INDEX)
  const text = memberOf(choice, TEXT, KIND_STRING)
  const delta = memberOf(choice, DELTA, KIND_OBJECT)
  const message = memberOf(choice, MESSAGE, KIND_OBJECT)
  if (text != 0 && isNonEmpty(text)) takePiece(text, index, TEXT, TEXT)
  if (delta != 0) readDelta(delta, index)
  // Before the choice is complete, a match in a message that is repeated so far may be undecided.
  if (message != 0 && isFinished(choice)) maskChoiceMessage(message)
  else if (message != 0) addEdit(message, EDIT_REMOVE)
  for (let i = node(choice).child; i != 0 && failure == 0; i = node(i).next) {
    if (i != text && i != delta && i != message) maskMember(choice, 0, i)
  }
}

/** Each string is a piece of a text of its own, unless it is no text. */
function readDelta(delta: i32, index: i32): void {
  needOnce(delta)
  const hash = beginAsides(index)
  for (let i = node(delta).child; i != 0 && failure == 0; i = node(i).next) {
    if (isKind(i, KIND_STRING)) {
      const field = fieldOf(i)
      if (isNonEmpty(i) && !isSkipped(delta, DELTA, i) && !isLabel(delta, i)) takePiece(i, index, field, field)
    } else if (isMember(i, AUDIO) && isKind(i, KIND_OBJECT)) {
      const transcript = nonEmpty(i, TRANSCRIPT)
      if (transcript != 0) takePiece(transcript, index, TRANSCRIPT, TRANSCRIPT)
      takeAsidesOf(i, AUDIO, itemHash(hash, AUDIO), transcript)
    } else if (isMember(i, CONTENT) && isKind(i, KIND_ARRAY)) readParts(i, index, itemHash(hash, CONTENT))
    else takeAsides(delta, DELTA, i, hash)
  }
}

function isMember(index: i32, name: i32): bool {
  return fieldOf(index) == name
}

function readParts(parts: i32, index: i32, hash: u32): void {
  let at = 0
  for (let part = node(parts).child; part != 0 && failure == 0; part = node(part).next) {
    const text = textOf(part)
    if (text != 0 && isNonEmpty(text)) takePiece(text, index, CONTENT, CONTENT)
    if (isKind(part, KIND_ARRAY)) takeItems(part, CONTENT, itemHash(hash, at))
    else takeAsidesOf(part, CONTENT, itemHash(hash, at), text)
    at++
  }
}
